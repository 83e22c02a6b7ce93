// The promises of docs/sandbox.md, tried from inside. Each escape also runs in a server without a sandbox, where it has to
// succeed, so that a refusal says something. Only the `wild` ones do not.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type ListenOptions, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';

const HOSTILE = fileURLToPath(new URL('../fixtures/servers/hostile.mjs', import.meta.url));

/** `wild`: without a sandbox the escape would harm the machine, or says nothing on some machines. */
type Escape = readonly [what: string, code: string, wild?: 'wild'];

const FILES: readonly Escape[] = [
  ['reads a key of the home folder', `return require('fs').readFileSync(t.key, 'utf8')`],
  ['lists the home folder', `return require('fs').readdirSync(t.home).includes('.ssh')`],
  ['asks whether a folder of the home folder exists', `return require('fs').existsSync(t.home + '/.ssh')`],
  [
    'reads a key through a symbolic link',
    `const fs = require('fs'); const at = t.home + '/link-' + process.pid; fs.symlinkSync(t.key, at); try { return fs.readFileSync(at, 'utf8') } finally { fs.rmSync(at) }`,
  ],
  [
    'makes a hard link to a key',
    `const fs = require('fs'); const at = t.home + '/hard-' + process.pid; fs.linkSync(t.key, at); try { return fs.readFileSync(at, 'utf8') } finally { fs.rmSync(at) }`,
  ],
  [
    'reads a key through the root of the first process',
    `return require('fs').readFileSync('/proc/1/root' + t.key, 'utf8')`,
    'wild',
  ],
  [
    'reads a key through the root of the gateway',
    `return require('fs').readFileSync('/proc/' + t.gateway + '/root' + t.key, 'utf8')`,
  ],
  [
    'reads a key through the root of its parent',
    `return require('fs').readFileSync('/proc/' + process.ppid + '/root' + t.key, 'utf8')`,
  ],
  [
    'reads a key through a descriptor of the client',
    `return require('fs').readFileSync('/proc/self/fd/20/.ssh/id', 'utf8')`,
    'wild',
  ],
  ['lists the working folder of the gateway', `return require('fs').readdirSync('/proc/' + t.gateway + '/cwd').length`],
  ['reads the configuration of Trunkline', `return require('fs').readFileSync(t.config, 'utf8')`],
  ['reads an environment file', `return require('fs').readFileSync(t.envFile, 'utf8')`],
  ['lists the data folder of Trunkline', `return require('fs').readdirSync(t.data).includes('run')`],
  ['reads the token of Trunkline', `return require('fs').readFileSync(t.data + '/token', 'utf8')`],
  [
    'reads the home folder of another confined server',
    `return require('fs').readdirSync(t.data + '/sandboxes').some((name) => name.startsWith('networked'))`,
  ],
  ['reads a file of another program in /tmp', `return require('fs').readFileSync(t.shared, 'utf8')`],
  ['lists /tmp', `return require('fs').readdirSync('/tmp').includes(t.sharedName)`],
  ['reads the hashes of passwords', `return require('fs').statSync('/etc/shadow').size`],
  ['lists the sockets of the system', `return require('fs').readdirSync('/run').length > 0`],
  ['lists /var', `return require('fs').existsSync('/var/lib')`],
  ['reads the settings of the kernel in /sys', `return require('fs').readdirSync('/sys').length > 0`],
  ['writes to a folder of the system', `require('fs').writeFileSync('/usr/escape', 'x'); return true`, 'wild'],
  ['writes to the root folder', `require('fs').writeFileSync('/escape', 'x'); return true`, 'wild'],
  ['writes to /etc', `require('fs').appendFileSync('/etc/hosts', ''); return true`],
  ['changes its own program', `require('fs').appendFileSync(t.program, ''); return true`],
  [
    'changes the library that the host loads next',
    `require('fs').appendFileSync(t.opened + '/readable', ''); return true`,
  ],
  ['names a program for crashes', `require('fs').appendFileSync('/proc/sys/kernel/core_pattern', ''); return true`],
  [
    'writes to a setting of the kernel',
    `const fs = require('fs'); fs.closeSync(fs.openSync('/proc/sys/vm/swappiness', 'r+')); return true`,
  ],
  [
    'opens the trigger of the kernel',
    `const fs = require('fs'); fs.closeSync(fs.openSync('/proc/sysrq-trigger', 'w')); return true`,
    'wild',
  ],
  [
    'mounts a folder again, writable',
    `return require('child_process').spawnSync('mount', ['-o', 'remount,rw', '/usr']).status === 0`,
    'wild',
  ],
  [
    'mounts the home folder elsewhere',
    `return require('child_process').spawnSync('mount', ['--bind', t.home, '/mnt']).status === 0`,
    'wild',
  ],
  ['takes a mount away', `return require('child_process').spawnSync('umount', ['/tmp']).status === 0`, 'wild'],
  [
    'makes a device',
    `return require('child_process').spawnSync('mknod', ['/tmp/escape-' + process.pid, 'b', '8', '0']).status === 0`,
    'wild',
  ],
  [
    'reads the memory of the machine',
    `return require('fs').existsSync('/dev/mem') || require('fs').existsSync('/dev/kmsg')`,
  ],
  [
    'reads a disk',
    `return require('fs').readdirSync('/dev').some((name) => /^(?:[sv]d[a-z]|nvme|loop|dm-)/.test(name))`,
  ],
];

const PROCESSES: readonly Escape[] = [
  [
    'sees the processes of the machine',
    `return require('fs').readdirSync('/proc').some((name) => { try { return /^\\d+$/.test(name) && require('fs').readFileSync('/proc/' + name + '/cmdline', 'utf8').includes('dist/cli.js') } catch { return false } })`,
  ],
  [
    'reads the variables of the gateway',
    `return require('fs').readFileSync('/proc/' + t.gateway + '/environ', 'utf8').includes('GATEWAY_SECRET')`,
  ],
  ['reads the descriptors of the gateway', `return require('fs').readdirSync('/proc/' + t.gateway + '/fd').length > 0`],
  [
    'reads the variables of another server',
    `return require('fs').readFileSync('/proc/' + t.neighbor + '/environ', 'utf8').length`,
  ],
  [
    'finds the secret of the gateway in any process',
    `return require('fs').readdirSync('/proc').some((name) => { try { return require('fs').readFileSync('/proc/' + name + '/environ', 'utf8').includes('GATEWAY_SECRET') } catch { return false } })`,
  ],
  ['signals the gateway', `return process.kill(t.gateway, 0)`],
  ['signals another server', `return process.kill(t.neighbor, 0)`],
  [
    'changes the memory of the process above it',
    `const fs = require('fs'); fs.closeSync(fs.openSync('/proc/' + process.ppid + '/mem', 'r+')); return true`,
  ],
  ['traces the process above it', `return system(101, 16, process.ppid, 0, 0)`, 'wild'],
  ['reads the memory of another process', `return system(310, process.ppid, 0, 0, 0, 0, 0)`],
  ['takes a descriptor of another process', `return system(438, 0, 0, 0)`],
  ['enters the namespaces of another process', `return system(308, 0, 0)`],
  ['makes a user namespace', `return system(272, 0x10000000)`],
  [
    'makes a user namespace with unshare',
    `return require('child_process').spawnSync('unshare', ['--user', '--map-root-user', 'true']).status === 0`,
  ],
  ['makes a process in new namespaces, past the filter', `return system(435, 0, 0)`],
  ['opens sockets past the filter', `return system(425, 0, 0)`],
  ['reads keys of the session', `return system(250, 0, -3, 0)`],
  ['lists the mounts of the host', `return system(458, 0, 0, 0, 0)`, 'wild'],
  ['lists the keys of the machine', `return require('fs').readFileSync('/proc/keys', 'utf8').length > 0`, 'wild'],
  [
    'reads paths of the host on the command line of the first process',
    `return require('fs').readFileSync('/proc/1/cmdline', 'utf8').includes(t.data)`,
    'wild',
  ],
  ['loads a program into the kernel', `return system(321, 0, 0, 0)`],
  ['opens a file by its handle', `return system(304, -100, 0, 0)`],
  ['makes the system calls of another kind of program', `return system(0x40000000 + 41, 1, 1, 0)`, 'wild'],
  [
    'has a capability',
    `return /^Cap(?:Inh|Prm|Eff|Bnd|Amb):\\s*0*[1-9a-f]/m.test(require('fs').readFileSync('/proc/self/status', 'utf8'))`,
    'wild',
  ],
  [
    'can get rights from a program',
    `return /^NoNewPrivs:\\s*0/m.test(require('fs').readFileSync('/proc/self/status', 'utf8'))`,
  ],
  ['becomes another user', `process.setuid(12345); return true`, 'wild'],
  [
    'has a descriptor that it did not open',
    `const fs = require('fs'); return fs.readdirSync('/proc/self/fd').filter((fd) => Number(fd) > 2).some((fd) => { try { return /^(?:socket:|\\/(?!dev\\/|proc\\/))/.test(fs.readlinkSync('/proc/self/fd/' + fd)) } catch { return false } })`,
    'wild',
  ],
  ['has a variable of the gateway', `return process.env.GATEWAY_SECRET`, 'wild'],
  ['has a variable of the channel to the gateway', `return process.env.NODE_CHANNEL_FD`, 'wild'],
];

const NETWORK: readonly Escape[] = [
  [
    'connects to a port of the machine',
    `return await new Promise((got, refused) => require('net').connect(t.port, '127.0.0.1', () => got(true)).on('error', refused))`,
  ],
  [
    'connects to a port of the machine over IPv6',
    `return await new Promise((got, refused) => require('net').connect(t.port6, '::1', () => got(true)).on('error', refused))`,
  ],
  [
    'sends a datagram to a port of the machine',
    `return await new Promise((got, refused) => { const socket = require('dgram').createSocket('udp4'); socket.on('message', () => got(true)); socket.on('error', refused); socket.send('x', t.datagrams, '127.0.0.1', (error) => error && refused(error)); setTimeout(() => refused(new Error('no answer')), 1000) }).finally(() => {})`,
  ],
  [
    'has a network device',
    `return Object.values(require('os').networkInterfaces()).flat().some(({ internal }) => !internal)`,
    'wild',
  ],
  [
    'connects to the service of a cloud',
    `return await new Promise((got, refused) => require('net').connect(80, '169.254.169.254', () => got(true)).on('error', refused).setTimeout(2000, () => refused(new Error('no answer'))))`,
    'wild',
  ],
  [
    'asks a name server',
    `return await new Promise((got, refused) => require('dns').resolve4('example.com', (error, found) => error ? refused(error) : got(found)))`,
    'wild',
  ],
  [
    'connects to a socket in a folder that it may read',
    `return await new Promise((got, refused) => require('net').connect(t.socket, () => got(true)).on('error', refused))`,
  ],
  [
    'connects to an abstract socket',
    `return require('child_process').spawnSync('perl', ['-MSocket', '-e', 'my $s; socket($s, AF_UNIX, SOCK_STREAM, 0) && connect($s, pack("S a*", AF_UNIX, "\\\\0" . shift)) or exit 1', t.abstract]).status === 0`,
  ],
  ['opens a local socket', `return system(41, 1, 1, 0).result >= 0`],
  ['opens a socket to the host of a virtual machine', `return system(41, 40, 1, 0)`],
  ['opens a socket of packets', `return system(41, 17, 3, 0)`],
  ['opens a socket of the cryptography of the kernel', `return system(41, 38, 5, 0)`],
];

/** Sends a request to the proxy of the sandbox, and returns the status. */
const VIA_PROXY = `const via = (target, method = 'GET', headers = {}) => new Promise((got, refused) => { const url = new URL(process.env.HTTP_PROXY); const request = require('http').request({ host: url.hostname, port: url.port, method, path: target, headers }); request.on('connect', ({ statusCode }, socket) => { socket.destroy(); got(statusCode) }); request.on('response', (response) => { response.resume(); got(response.statusCode) }); request.on('error', refused); request.end() });`;

/** Requests for another name than the one that is allowed. The proxy must answer 403 to each. */
const NAMES: readonly (readonly [what: string, target: string, method?: string])[] = [
  ['another port of the allowed name', 'http://localhost:OTHER/'],
  ['the address of the allowed name', 'http://127.0.0.1:PORT/'],
  ['the address, as one number', 'http://2130706433:PORT/'],
  ['the address, in hexadecimal', 'http://0x7f.0.0.1:PORT/'],
  ['the address, shortened', 'http://127.1:PORT/'],
  ['the address in IPv6', 'http://[::1]:PORT/'],
  ['the address in IPv6 that stands for one in IPv4', 'http://[::ffff:127.0.0.1]:PORT/'],
  ['the unspecified address', 'http://0.0.0.0:PORT/'],
  ['a name that ends in the allowed one', 'http://evil.localhost:PORT/'],
  ['a name that begins with the allowed one', 'http://localhost.example.com:PORT/'],
  ['the allowed name as a user name', 'http://localhost@127.0.0.1:PORT/'],
  ['another name, with the allowed one as the host', 'http://example.com/'],
  ['a tunnel to another port', 'localhost:OTHER', 'CONNECT'],
  ['a tunnel to the address', '127.0.0.1:PORT', 'CONNECT'],
  ['a tunnel to the address in IPv6', '[::1]:PORT', 'CONNECT'],
  ['a tunnel to the service of a cloud', '169.254.169.254:80', 'CONNECT'],
  ['a tunnel to another name', 'example.com:443', 'CONNECT'],
];

describe('a hostile server in a sandbox', () => {
  const folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  const home = join(folder, 'home');
  const open = join(folder, 'open');
  const shared = join(tmpdir(), `shared-${randomUUID()}`);
  const servers: Server[] = [];
  const datagrams = createSocket('udp4');
  const requests: string[] = [];
  let gateway: GatewayProcess;
  let targets: Record<string, string | number>;
  let abstractHolder: ReturnType<typeof spawn>;

  const listen = async (server: Server, where: ListenOptions): Promise<number> => {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(where, resolve));
    return (server.address() as AddressInfo).port;
  };

  beforeAll(async () => {
    mkdirSync(join(home, '.ssh'), { recursive: true });
    mkdirSync(open);
    mkdirSync(join(folder, 'data/trunkline'), { recursive: true });
    writeFileSync(join(home, '.ssh/id'), 'a private key');
    writeFileSync(join(folder, 'data/trunkline/token'), 'a token');
    writeFileSync(join(folder, 'servers.env'), 'NAME=value\n', { mode: 0o600 });
    writeFileSync(join(open, 'readable'), 'readable');
    writeFileSync(shared, 'of another program');
    const port = await listen(createServer(), { host: '127.0.0.1', port: 0 });
    const port6 = await listen(createServer(), { host: '::1', port: 0 });
    await listen(createServer(), { path: join(open, 's') });
    const other = await listen(createServer(), { host: '127.0.0.1', port: 0 });
    const allowed = await listen(
      createHttpServer(({ url = '' }, response) => {
        requests.push(url);
        response.writeHead(url === '/away' ? 302 : 200, { location: `http://127.0.0.1:${other}/` }).end('hello');
      }),
      { host: '127.0.0.1', port: 0 },
    );
    datagrams.on('message', (_, { port: from, address }) => datagrams.send('x', from, address));
    await new Promise<void>((resolve) => datagrams.bind(0, '127.0.0.1', resolve));
    const abstract = `trunkline-${randomUUID()}`;
    const script = `my $s; socket($s, AF_UNIX, SOCK_STREAM, 0) && bind($s, pack("S a*", AF_UNIX, "\\0" . shift)) && listen($s, 5) or die; $| = 1; print "on"; sleep`;
    abstractHolder = spawn('perl', ['-MSocket', '-e', script, abstract], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve) => abstractHolder.stdout?.once('data', resolve));
    const server = { program: HOSTILE, envFile: 'servers.env', env: { OWN: '$' + '{NAME}' } };
    gateway = await GatewayProcess.start({
      folder,
      servers: {
        free: server,
        confined: { ...server, sandbox: { read: [open] } },
        networked: { ...server, sandbox: { network: [`localhost:${allowed}`] } },
      },
      args: ['-v'],
      // A client may leave a descriptor open, here that of a folder.
      via: ['bash', '-c', 'exec 20<"$HOME"; exec "$0" "$@"'],
      env: { HOME: home, GATEWAY_SECRET: 'of the gateway' },
    });
    await gateway.listTools();
    for (const key of ['free', 'confined', 'networked']) await gateway.untilState(key, 'ready');
    const { pid: neighbor } = await gateway.status('free');
    targets = {
      ...{ home, key: join(home, '.ssh/id'), config: gateway.file, envFile: join(folder, 'servers.env') },
      ...{
        data: join(folder, 'data/trunkline'),
        shared,
        sharedName: shared.slice(tmpdir().length + 1),
        program: HOSTILE,
      },
      ...{ opened: open, gateway: gateway.pid, neighbor, port, port6, abstract, socket: join(open, 's') },
      ...{ datagrams: datagrams.address().port, allowed, other },
    };
  });

  afterAll(async () => {
    for (const server of servers) server.close();
    datagrams.close();
    abstractHolder.kill();
    await gateway.dispose();
  });

  const attempt = async (server: string, code: string): Promise<{ got?: unknown; refused?: string }> => {
    const { message } = await gateway.call(`${server}__attempt`, { code, targets });
    return JSON.parse(message.result.content[0].text);
  };

  it.each([...FILES, ...PROCESSES, ...NETWORK])('F330: %s, and gets nothing', async (_, code = '', wild) => {
    const [free, confined] = await Promise.all([wild ? undefined : attempt('free', code), attempt('confined', code)]);
    expect(confined.got ?? false).toBe(false);
    // Without a sandbox the same code succeeds, so the refusal is that of the sandbox.
    if (free !== undefined) expect(free.got ?? false).not.toBe(false);
  });

  it.each(NAMES)('F331: asks the proxy for %s, and is refused', async (_, target, method = 'GET') => {
    const path = String(target).replace('PORT', String(targets.allowed)).replace('OTHER', String(targets.other));
    const headers = `{ host: 'localhost:${targets.allowed}' }`;
    const before = requests.length;
    const { got } = await attempt(
      'networked',
      `${VIA_PROXY} return await via(${JSON.stringify(path)}, '${method}', ${headers})`,
    );
    expect(got).toBe(403);
    expect(requests).toHaveLength(before);
  });

  it('F331: reaches the allowed name, and not the one that it redirects to', async () => {
    const base = `http://localhost:${targets.allowed}`;
    const follow = `${VIA_PROXY} return [await via('${base}/'), await via('${base}/away'), await via('http://127.0.0.1:${targets.other}/')]`;
    expect((await attempt('networked', follow)).got).toEqual([200, 302, 403]);
    expect(
      (await attempt('networked', `${VIA_PROXY} return await via('localhost:${targets.allowed}', 'CONNECT')`)).got,
    ).toBe(200);
  });

  it('F331: with the network, still has no other way out than the proxy', async () => {
    for (const [, code, wild] of NETWORK)
      if (!wild) expect((await attempt('networked', code)).got ?? false).toBe(false);
    const left = `return require('fs').readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).length`;
    // Its own process and that of bubblewrap: what has opened the port of the proxy is gone.
    expect((await attempt('networked', left)).got).toBe(2);
  });

  it('F332: tells in status, log and the error of a tool what was refused, with the line that allows it', async () => {
    const code = `${VIA_PROXY} return await via('refused.example:443', 'CONNECT')`;
    const { message } = await gateway.call('networked__attempt', { code, targets, isError: true });
    const allow = `network: ["localhost:${targets.allowed}", refused.example]`;
    expect(message.result.content).toHaveLength(2);
    expect(message.result.content[1].text).toContain(allow);
    const failed = await gateway.call('networked__attempt', { code, targets, isRefused: true });
    expect(failed.message.error.message).toMatch(
      /^fetch failed\. The sandbox refused the server a connection to refused\.example/,
    );
    const { advice, log } = await gateway.status('networked');
    expect(advice).toContain(allow);
    expect(log.join('\n')).toContain('refused.example');
    expect(gateway.stderr).toContain('the sandbox refused a connection');
  });

  it('F333: keeps its home folder, and not its temporary files, from one process to the next', async () => {
    const write = `const fs = require('fs'); fs.writeFileSync(process.env.HOME + '/kept', 'x'); fs.writeFileSync('/tmp/lost', 'x'); return require('os').homedir()`;
    expect((await attempt('confined', write)).got).toBe(home);
    process.kill((await gateway.status('confined')).pid, 'SIGKILL');
    await gateway.untilServer('confined', 'runs again', ({ generation, state }) => generation > 1 && state === 'ready');
    const look = `const fs = require('fs'); return [fs.existsSync(process.env.HOME + '/kept'), fs.existsSync('/tmp/lost')]`;
    expect((await attempt('confined', look)).got).toEqual([true, false]);
    expect(() => readFileSync(join(home, 'kept'))).toThrow('ENOENT');
  });

  it('F334: is counted with its processes, although it lives in a namespace of its own', async () => {
    const code = `const { spawn } = require('child_process'); for (let each = 0; each < 3; each += 1) spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }); return true`;
    await attempt('confined', code);
    // Its own, two of bubblewrap and three of its children.
    await gateway.untilServer('confined', 'has six processes', ({ usage }) => usage?.processes === 6);
  });
});
