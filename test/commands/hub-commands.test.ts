import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VERSION } from '../../src/version.js';
import { type Finished, Workplace } from '../cli/cli-run.js';
import { LAB } from '../support/gateway-process.js';
import { WITH_HUB } from '../support/hub-place.js';
import { killAll, processesOf, processesWith, until } from '../support/processes.js';

let place: Workplace;
/** The folders of hubs; short, because the path of a socket is. */
let hubs: string;
let clients: ChildProcessWithoutNullStreams[];
beforeEach(() => {
  place = new Workplace();
  hubs = mkdtempSync(join(tmpdir(), 'tl-'));
  clients = [];
  Object.assign(place.env, { ...WITH_HUB, TRUNKLINE_HUB_DIR: hubs });
  const lab = { command: 'node', args: [LAB, `run=${place.folder}`], sharing: 'profile' };
  place.configure({ one: lab, two: lab });
});
afterEach(async () => {
  for (const client of clients) client.stdin.end();
  await until('the clients have left', () => clients.every(({ exitCode }) => exitCode !== null));
  await place.run(['stop']);
  try {
    // A hub that ends by itself takes no command, and a guardian ends the servers of one that was killed.
    await until('nothing is left', () => processesWith(hubs).length + place.leftovers().length === 0);
    expect(processesWith(hubs)).toEqual([]);
    expect(place.leftovers()).toEqual([]);
  } finally {
    killAll(hubs);
    place.dispose();
    rmSync(hubs, { recursive: true, force: true });
  }
});

/** Connects a client that introduces itself with this name; resolves when it is served and both servers run. */
async function connect(name: string): Promise<ChildProcessWithoutNullStreams> {
  const { process: client } = place.start([]);
  clients.push(client);
  let out = '';
  client.stdout.on('data', (chunk: Buffer) => {
    out += chunk;
  });
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { sampling: {} },
    clientInfo: { name, version: '7.8' },
  };
  write(client, { id: 1, method: 'initialize', params });
  write(client, { method: 'notifications/initialized' });
  write(client, { id: 2, method: 'tools/call', params: { name: 'one__echo', arguments: {} } });
  await until('the client is served', () => /"id": ?2\b/.test(out));
  // A server that is called starts before the others.
  await until('both servers run', () => serverPids().length >= 2);
  return client;
}

function write({ stdin }: ChildProcessWithoutNullStreams, message: object): void {
  stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

/** The running hubs. */
function hubPids(): number[] {
  return processesWith(hubs)
    .filter(({ args }) => args.includes('hub serve'))
    .map(({ pid }) => pid);
}

function serverPids(): number[] {
  return processesOf(`run=${place.folder}`);
}

async function json(args: readonly string[]) {
  const { stdout, stderr, code } = await place.run(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

describe('without a running hub', () => {
  it.each([[['status']], [['metrics']], [['restart', 'one']], [['hub', 'restart']]])(
    '%j says in one line that none runs and what starts one, and starts none',
    async (args) => {
      const { code, stdout, stderr } = await place.run(args);
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toBe(
        `No gateway runs for ${join(place.folder, 'trunkline.yaml')}. The next client that connects starts one; \`trunkline check\` starts the servers once without it.\n`,
      );
      expect(processesWith(hubs)).toEqual([]);
    },
  );

  it('status names the setting that makes clients share one, where they do not', async () => {
    place.write('trunkline.yaml', 'servers: { one: { command: node } }\ngateway: { hub: off }\n');
    const { code, stderr } = await place.run(['status']);
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('`gateway: { hub: auto }`') });
    expect(stderr).not.toContain('The next client that connects starts one');
    expect((await place.run(['logs'])).stderr).toContain('`gateway: { hub: auto }`');
  });

  it('logs says that there is no log, and stop that there is nothing to stop', async () => {
    const logs = await place.run(['logs']);
    expect(logs.code).toBe(3);
    expect(logs.stderr).toMatch(/^There is no log at \S+\/hub\.log yet: .*\n$/);
    const nothing = `No gateway of yours runs for ${join(place.folder, 'trunkline.yaml')}, so there is nothing to stop.\n`;
    expect(await place.run(['stop'])).toEqual({ code: 0, stdout: '', stderr: nothing });
    const all = 'No hub of yours runs, so there is nothing to stop.\n';
    expect(await place.run(['stop', '--all'])).toEqual({ code: 0, stdout: '', stderr: all });
    expect(await place.run(['stop', '--json'])).toEqual({
      code: 0,
      stdout: '{"hubs":[],"gateways":[],"left":[]}\n',
      stderr: '',
    });
  });
});

describe('with a running hub', () => {
  it('call prints a result that comes in several pieces', async () => {
    await connect('claude');
    const { code, stdout } = await place.run(['call', 'one__big', '{"bytes":1000000,"mark":"0123456789"}']);
    expect({ code, isWhole: stdout === `${'0123456789'.repeat(100_000)}\n` }).toEqual({ code: 0, isWhole: true });
  });

  it('ps lists the hub, its clients and the processes of its servers', async () => {
    const client = await connect('claude');
    const { hub, draining } = await json(['ps', '--json']);
    expect(draining).toEqual([]);
    const [pid] = hubPids();
    expect(hub).toMatchObject({ pid, version: VERSION, number: 1, configFile: join(place.folder, 'trunkline.yaml') });
    expect(hub.clients).toEqual([
      expect.objectContaining({ name: 'claude', version: '7.8', pid: client.pid, inFlight: 0 }),
    ]);
    expect(hub.servers.map((each: { server: string }) => each.server)).toEqual(['one', 'two']);
    expect(serverPids()).toContain(hub.servers[0].pid);
    expect(hub.servers[0]).toMatchObject({ state: 'ready', calls: 1, clients: 1, processes: 1 });
    expect(hub.servers[0].memoryBytes).toBeGreaterThan(1_000_000);
    const { stdout } = await place.run(['ps']);
    expect(stdout).toMatch(/^HUB +VERSION +UP +CONFIGURATION\n/);
    expect(stdout).toMatch(new RegExp(`\nclaude +7\\.8 +${client.pid} `));
    expect(stdout).toMatch(new RegExp(`\none +ready +${hub.servers[0].pid} .*MiB`));
  });

  it('status is that of the hub, and says how clients are served', async () => {
    await connect('claude');
    await connect('cursor');
    const [pid] = hubPids();
    const { hub, servers } = await json(['status', '--json']);
    expect(hub).toMatchObject({ pid, clients: 2 });
    expect(servers.map((each: { server: string }) => each.server)).toEqual(['one', 'two']);
    const { stdout } = await place.run(['status']);
    expect(stdout).toMatch(new RegExp(`\nServed by the hub: pid ${pid}, up \\d+ s, 2 clients\\.\n`));
  });

  it('status --watch writes one text for each change to a pipe, until the hub ends', async () => {
    await connect('claude');
    const { process: watching, finished } = place.start(['status', '--watch']);
    let out = '';
    watching.stdout.on('data', (chunk: Buffer) => {
      out += chunk;
    });
    await until('the first text', () => out.includes('1 client.'));
    await connect('cursor');
    await until('the second text', () => out.includes('2 clients.'));
    for (const client of clients) client.stdin.end();
    await until('the clients have left', () => clients.every(({ exitCode }) => exitCode !== null));
    await place.run(['stop']);
    const { code, stderr } = await finished;
    expect(code).toBe(3);
    expect(stderr).toBe(
      'The hub has ended. The next client that connects, or has something to send, starts another one.\n',
    );
  });

  it('call and tools use its servers, and --alone does not', async () => {
    await connect('claude');
    const before = serverPids();
    const called = await place.run(['call', 'one__echo', '{"n":9007199254740993}']);
    expect(called).toMatchObject({ code: 0, stderr: '' });
    expect(called.stdout).toContain('9007199254740993');
    const { code, stdout } = await place.run(['tools', 'two']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^TOOL +SERVER +DESCRIPTION\ntwo__echo +two /);
    expect(stdout).not.toContain('one__');
    // The command uses the processes that run for the client.
    expect(serverPids().sort()).toEqual(before.sort());
    const { hub } = await json(['ps', '--json']);
    expect(hub.servers[0].calls).toBe(2);
    expect((await place.run(['call', 'one__echo', '{}', '--alone'])).code).toBe(0);
    expect((await json(['ps', '--json'])).hub.servers[0].calls).toBe(2);
  });

  it('restart replaces the process of one server, and refuses a server that the hub does not have', async () => {
    const lab = { command: 'node', args: [LAB, `run=${place.folder}`], sharing: 'profile' };
    place.configure({ one: lab, two: lab, off: { ...lab, disabled: true } });
    await connect('claude');
    const { servers } = (await json(['ps', '--json'])).hub;
    expect(await json(['restart', 'one', '--json'])).toEqual({ server: 'one', restarting: true });
    await until(
      'the process is another one',
      () => !serverPids().includes(servers[0].pid) && serverPids().length === 2,
    );
    expect(serverPids()).toContain(servers[1].pid);
    const { code, stderr } = await place.run(['restart', 'none']);
    expect(code).toBe(1);
    expect(stderr).toBe('trunkline: There is no server "none". Did you mean "one"?\n');
    const cure = 'trunkline: The server "off" is disabled in the configuration; run: trunkline enable off\n';
    expect((await place.run(['restart', 'off'])).stderr).toBe(cure);
    expect((await place.run(['status', 'off'])).stderr).toBe(cure);
  });

  it('F111: logs prints what the hub logged about a server, and follows the log through a rotation', async () => {
    await connect('claude');
    await place.run(['call', 'one__die']);
    const { logFile } = (await json(['hub', 'status', '--json'])).hub;
    const { process: following } = place.start(['logs', '-f']);
    let out = '';
    following.stdout.on('data', (chunk: Buffer) => {
      out += chunk;
    });
    const record = (msg: string, server?: string) => `${JSON.stringify({ level: 40, server, msg })}\n`;
    appendFileSync(logFile, record('before'));
    await until('the line before', () => out.includes('"before"'));
    renameSync(logFile, `${logFile}.1`);
    appendFileSync(`${logFile}.1`, record('late', 'one'));
    appendFileSync(logFile, record('after', 'two'));
    await until('the lines after', () => out.includes('"after"'));
    expect(out.indexOf('"late"')).toBeGreaterThan(out.indexOf('"before"'));
    expect(out.indexOf('"after"')).toBeGreaterThan(out.indexOf('"late"'));
    following.kill();
    const one = await place.run(['logs', 'one']);
    expect(one.stdout).toContain('"late"');
    expect(one.stdout).not.toContain('"after"');
    const misspelled = await place.run(['logs', 'onne']);
    expect(misspelled).toMatchObject({ code: 2 });
    expect(misspelled.stderr).toContain('did you mean `one`?');
  });

  it('hub restart starts another hub, to which the clients move', async () => {
    const client = await connect('claude');
    const [old] = hubPids();
    const { code, stderr } = await place.run(['hub', 'restart']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(
        /^A new hub \(pid \d+, version \S+\) serves from now on\. .* when its 1 client has no call in flight\.\n$/,
      ),
    });
    await until('the old hub has ended', () => !hubPids().includes(old ?? 0));
    let moved: { pid: number; number: number; clients: { pid: number }[] };
    do moved = (await json(['hub', 'status', '--json'])).hub;
    while (moved.clients.length === 0);
    expect(moved).toMatchObject({ number: 2, clients: [{ pid: client.pid, name: 'claude' }] });
  });

  it('F110: hub status shows an earlier hub that waits for a call in flight', async () => {
    const client = await connect('claude');
    const [old] = hubPids();
    write(client, { id: 3, method: 'tools/call', params: { name: 'two__wait', arguments: { delayMs: 600_000 } } });
    let inFlight = 0;
    do inFlight = (await json(['ps', '--json'])).hub.clients[0].inFlight;
    while (inFlight === 0);
    expect(await json(['hub', 'restart', '--json'])).toMatchObject({ result: 'replaced', pid: old, moving: 1 });
    const { hub, draining } = await json(['hub', 'status', '--json']);
    expect(hub.number).toBe(2);
    expect(draining).toEqual([expect.objectContaining({ pid: old, number: 1, isDraining: true })]);
    const { stdout } = await place.run(['hub', 'status']);
    expect(stdout).toContain(`An earlier hub (pid ${old}, version ${VERSION}, number 1) still serves 1 client`);
    expect((await json(['stop', '--json'])).hubs).toMatchObject([{ result: 'stopped' }, { result: 'stopped' }]);
    await until('both hubs have ended', () => hubPids().length === 0);
  });

  it('hub restart without a client ends the hub, since the next client starts another one', async () => {
    const client = await connect('claude');
    client.stdin.end();
    await until('the client has left', () => client.exitCode !== null);
    const { code, stderr } = await place.run(['hub', 'restart']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^Stopped the hub \(pid \d+\), which had no client\./);
    expect(hubPids()).toEqual([]);
  });

  it.each([[['hub', 'stop']], [['stop', '--all']]])('%j ends it with its servers', async (args) => {
    await connect('claude');
    const [pid] = hubPids();
    const servers = serverPids();
    const { code, stderr } = await place.run(args);
    expect(code).toBe(0);
    expect(stderr).toContain(
      `Stopped the hub of ${join(place.folder, 'trunkline.yaml')} (pid ${pid}) and its servers.`,
    );
    expect(stderr).toContain('1 client stays connected');
    expect(hubPids()).not.toContain(pid);
    for (const server of servers) expect(serverPids()).not.toContain(server);
  });
});

describe('a hub that is suspended', () => {
  let suspended: number;
  beforeEach(async () => {
    const client = await connect('claude');
    [suspended = 0] = hubPids();
    client.stdin.end();
    await until('the client has left', () => client.exitCode !== null);
    process.kill(suspended, 'SIGSTOP');
  });

  it('F101: is named with what to do, and call goes on alone', async () => {
    const { code, stderr } = await place.run(['status']);
    expect(code).toBe(1);
    expect(stderr).toBe(
      `The hub (pid ${suspended}) does not answer. If it was suspended, \`kill -CONT ${suspended}\` resumes it; \`trunkline hub stop\` ends it and its servers.\n`,
    );
    const called: Finished = await place.run(['call', 'one__echo', '{"a":1}']);
    expect(called.code).toBe(0);
    expect(called.stderr).toBe(
      'trunkline: the running gateway cannot be used, because it does not answer; this command starts servers of its own\n',
    );
  });

  it('F102: is killed by stop, with its servers', async () => {
    const { code, stderr } = await place.run(['stop']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `The hub (pid ${suspended}) did not answer, so it was killed. Its servers end with it.\n`,
    });
    await until('the servers have ended', () => place.leftovers().length === 0 && processesWith(hubs).length === 0);
  });
});

describe('a client that cannot use the hub', () => {
  it('F109: is served alone; the status and one warning say why', async () => {
    const file = join(hubs, 'file');
    writeFileSync(file, '');
    place.env.TRUNKLINE_HUB_DIR = file;
    const { process: client } = place.start([]);
    let [out, err] = ['', ''];
    client.stdout.on('data', (chunk: Buffer) => {
      out += chunk;
    });
    client.stderr.on('data', (chunk: Buffer) => {
      err += chunk;
    });
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    write(client, { id: 1, method: 'initialize', params });
    write(client, { id: 2, method: 'tools/call', params: { name: 'trunkline__status', arguments: {} } });
    await until('the status', () => /"id": ?2\b/.test(out));
    const because = `${file} is not a folder`;
    expect(out).toContain(`Not shared: this client has servers of its own, because ${because}.`);
    await until('the warning', () => err.includes('this client does not share its servers'));
    expect(err.split('does not share its servers').length).toBe(2);
    client.stdin.end();
    await until('the client has left', () => client.exitCode !== null);
    place.env.TRUNKLINE_HUB_DIR = hubs;
  });
});

describe('a call about which a rule asks', () => {
  it('waits in the hub for `trunkline allow` and `trunkline deny`, which name no call that is over', async () => {
    // biome-ignore lint/suspicious/noThenProperty: a key of the file, whose value is no function
    const rules = [{ tools: ['echo'], args: { a: [10, 11] }, then: 'ask', say: 'Echoes are dear' }];
    const lab = { command: 'node', args: [LAB, `run=${place.folder}`], sharing: 'profile' };
    place.configure({ one: { ...lab, rules }, two: lab });
    const client = await connect('t');
    const answers: string[] = [];
    client.stdout.on('data', (chunk: Buffer) => answers.push(String(chunk)));
    const waiting = async (id: number) => {
      write(client, { id, method: 'tools/call', params: { name: 'one__echo', arguments: { a: id, b: 1 } } });
      let asked: { id: string }[] = [];
      while (asked.length === 0) asked = await json(['allow', '--json']);
      expect(asked).toMatchObject([{ server: 'one', name: '"echo"', arguments: `{"a":${id},"b":1}`, client: '"t"' }]);
      return asked[0]?.id ?? '';
    };
    const first = await waiting(10);
    expect((await place.run(['status'])).stdout).toContain(`(Echoes are dear). Answer within`);
    expect(await json(['allow', first, '--json'])).toEqual({ id: first, allowed: true });
    await until('the call is answered', () => /"id": ?10\b/.test(answers.join('')));
    expect(answers.join('')).not.toContain('trunkline/failure');
    const second = await waiting(11);
    expect(await json(['deny', second, '--json'])).toEqual({ id: second, allowed: false });
    await until('the call is refused', () => answers.join('').includes('who said no: Echoes are dear'));
    const { code, stderr } = await place.run(['allow', second]);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('waits for a person any more') });
  });
});
