import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { GatewayProcess, LAB, type StartOptions } from '../support/gateway-process.js';
import { guardiansOf, processesWith, until } from '../support/processes.js';

const gateways: GatewayProcess[] = [];
const places: Workplace[] = [];
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.dispose();
  for (const place of places.splice(0)) place.dispose();
});

async function start(options: StartOptions): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start(options);
  gateways.push(gateway);
  return gateway;
}

function workplace(servers: Parameters<Workplace['configure']>[0]): Workplace {
  const place = new Workplace();
  places.push(place);
  place.configure(servers);
  return place;
}

const HARD = { args: ['daemons', 'grandchild'], stopGrace: '50ms', restart: { firstDelay: '1ms' } };
const lab = (place: Workplace, rest: object = {}) => ({ command: 'node', args: [LAB, `run=${place.folder}`], ...rest });

/** Starts a program as on a machine without bubblewrap, and as on one that forbids user namespaces. */
const WITHOUT_IT = ['bwrap', '--dev-bind', '/', '/', '--ro-bind', '/dev/null', '/usr/bin/bwrap', '--'];
const FORBIDDEN = [
  ...['bwrap', '--unshare-user', '--cap-add', 'ALL', '--dev-bind', '/', '/', '--'],
  ...['sh', '-c', 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', 'sh'],
];

describe('a confined server', () => {
  it('F335: answers byte for byte as it does unconfined', async () => {
    const gateway = await start({ servers: { one: {}, two: { sandbox: true } } });
    await gateway.listTools();
    for (const [tool, args] of [
      ['echo', { text: 'a\u00e9\u{1F600}' }],
      ['verbatim', {}],
      ['big', { bytes: 3_000_000 }],
      ['progress', {}],
    ] as const) {
      const [one, two] = await Promise.all([gateway.call(`one__${tool}`, args), gateway.call(`two__${tool}`, args)]);
      const withoutId = ({ raw }: { raw: string }) => raw.replace(/"id": ?\d+/, '');
      expect(withoutId(two)).toBe(withoutId(one));
    }
    const tools = await gateway.listTools();
    const named = (key: string) =>
      tools.filter(({ name }) => name.startsWith(key)).map((tool) => ({ ...tool, name: tool.name.slice(key.length) }));
    expect(named('two__')).toEqual(named('one__'));
  });

  it('F336: leaves nothing behind when it is killed, when the gateway ends, and when the gateway is killed', async () => {
    const servers = { lab: { ...HARD, sandbox: true }, other: { ...HARD, sandbox: { network: ['example.com'] } } };
    const gateway = await start({ servers });
    await gateway.listTools();
    for (const key of ['lab', 'other']) {
      await gateway.untilState(key, 'ready');
      const before = await gateway.status(key);
      process.kill(before.pid, 'SIGKILL');
      await gateway.untilServer(key, 'runs again', ({ generation, state }) => generation > 1 && state === 'ready');
      expect(processesWith(`run=${gateway.folder}`).some(({ pgid }) => pgid === before.pid)).toBe(false);
    }
    gateway.kill('SIGKILL');
    await until('everything is gone', () => gateway.leftovers().length + guardiansOf(gateway.pid).length === 0);
    const next = await start({ servers });
    await next.listTools();
    expect(await next.end()).toBe(0);
    expect(next.leftovers()).toEqual([]);
  });

  it('F336: is ended by the next start when gateway and guardian are killed', async () => {
    const gateway = await start({ servers: { lab: { ...HARD, args: ['daemons', 'stubborn'], sandbox: true } } });
    await gateway.listTools();
    await gateway.untilState('lab', 'ready');
    for (const guardian of guardiansOf(gateway.pid)) process.kill(guardian.pid, 'SIGKILL');
    gateway.kill('SIGKILL');
    await gateway.exited;
    const next = await start({ servers: {}, env: { XDG_DATA_HOME: join(gateway.folder, 'data') } });
    await until('everything is gone', () => gateway.leftovers().length === 0);
    expect(next.stderr).toContain('ending what a killed Trunkline left behind');
  });

  it('F337: does not start where bubblewrap is missing, and status, call, check and doctor name the remedy', async () => {
    const gateway = await start({ servers: { lab: { sandbox: true } }, via: WITHOUT_IT });
    const { advice, problem, code } = await gateway.untilServer('lab', 'has failed', (status) => status.problem !== '');
    expect(code).toBe('TL-SANDBOX-MISSING');
    expect(problem).toContain('bubblewrap is not installed');
    expect(advice).toContain('never starts the server unconfined');
    const called = await gateway.call('lab__echo', {});
    expect(JSON.stringify(called.message)).toContain('TL-SANDBOX-MISSING');
    expect(processesWith(LAB).filter(({ args }) => args.includes(`run=${gateway.folder}`))).toEqual([]);

    const place = workplace({});
    place.configure({ lab: lab(place, { sandbox: true }) });
    const check = await place.run(['check'], '', WITHOUT_IT);
    expect(check.code).toBe(1);
    expect(check.stdout).toMatch(/lab: it must be confined, and bubblewrap is not installed.*\n.*bubblewrap`/);
    const doctor = await place.run(['doctor', '--offline'], '', WITHOUT_IT);
    expect(doctor.stdout).toContain('TL-SANDBOX-MISSING');
    expect(doctor.stdout).toContain('servers that do not start: lab');
  });

  it('F337: does not start where the system forbids its namespaces', async () => {
    const place = workplace({});
    place.configure({ lab: lab(place, { sandbox: true }) });
    const check = await place.run(['check'], '', FORBIDDEN);
    expect(check.code).toBe(1);
    expect(check.stdout).toContain('the system does not let bubblewrap make its namespaces');
    expect(check.stdout).toContain('sudo sysctl user.max_user_namespaces=15000');
  });

  it('does not start if its entry opens the files of Trunkline for writing, or a folder that is missing', async () => {
    const place = workplace({});
    place.configure({
      wide: lab(place, { sandbox: { write: [place.folder] } }),
      lost: lab(place, { sandbox: { read: ['no-such-folder'] } }),
    });
    const { stdout } = await place.run(['check']);
    expect(stdout).toContain('which has files of Trunkline itself');
    expect(stdout).toContain('`sandbox` opens no-such-folder, which does not exist');
  });

  it('sees nothing through a link that it has put in place of its working folder', async () => {
    const root = mkdtempSync(join(tmpdir(), 'trunkline-link-'));
    const [inner, secret] = [join(root, 'mine/inner'), join(root, 'secret')];
    for (const folder of [inner, secret]) mkdirSync(folder, { recursive: true });
    const program = LAB.replace('lab.mjs', 'hostile.mjs');
    const servers = { lab: { program, cwd: inner, sandbox: { write: [join(root, 'mine')] } } };
    const gateway = await start({ servers });
    await gateway.listTools();
    await gateway.untilState('lab', 'ready');
    const swap = `const fs = require('fs'); fs.rmdirSync('${inner}'); fs.symlinkSync('${secret}', '${inner}'); return true`;
    expect(JSON.stringify((await gateway.call('lab__attempt', { code: swap })).message)).toContain('true');
    process.kill((await gateway.status('lab')).pid, 'SIGKILL');
    await gateway.untilServer('lab', 'names the link', ({ log }) =>
      log.join('\n').includes(`${inner} is a link to ${secret}, which stays closed`),
    );
    rmSync(root, { recursive: true });
  });

  it('F339: is restarted with all of its processes if these exceed their limit', async () => {
    const program = LAB.replace('lab.mjs', 'hostile.mjs');
    const servers = { lab: { program, sandbox: true, limits: { processes: 20 } } };
    const gateway = await start({ servers });
    await gateway.listTools();
    await gateway.untilState('lab', 'ready');
    const bomb = `const { spawn } = require('child_process');
      for (let each = 0; each < 40; each += 1) spawn('sleep', ['1000'], { detached: true, stdio: 'ignore', env: {} });`;
    void gateway.call('lab__attempt', { code: bomb });
    await gateway.untilServer('lab', 'runs again', ({ generation, state }) => generation > 1 && state === 'ready');
    expect((await gateway.status('lab')).log.join('\n')).toContain('limit 20');
    await gateway.untilServer('lab', 'has its three processes', ({ usage }) => usage?.processes === 3);
  });

  it('F338: creates nothing through a link that it has left in its home folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-links-'));
    const home = join(folder, 'home');
    mkdirSync(join(home, 'deep/opened'), { recursive: true });
    mkdirSync(join(folder, 'victim'));
    const servers = { lab: { sandbox: { read: [join(home, 'deep/opened')] } } };
    const first = await GatewayProcess.start({ folder, servers, env: { HOME: home } });
    await first.untilState('lab', 'ready');
    await first.end();
    const sandboxes = join(folder, 'data/trunkline/sandboxes');
    const own = join(sandboxes, String(readdirSync(sandboxes)[0]));
    expect(readdirSync(own)).toEqual(['deep']);
    rmSync(join(own, 'deep'), { recursive: true });
    symlinkSync(join(folder, 'victim'), join(own, 'deep'));
    const second = await start({ folder, servers, env: { HOME: home } });
    await second.untilState('lab', 'ready');
    expect(readdirSync(join(folder, 'victim'))).toEqual([]);
    expect(lstatSync(join(own, 'deep')).isDirectory()).toBe(true);
  });
});

describe('`trunkline sandbox`', () => {
  it('shows what is open and why, and what the entry names and stays closed', async () => {
    const place = workplace({});
    mkdirSync(join(place.folder, 'notes'));
    place.configure({
      lab: lab(place, { args: [LAB, 'notes', join(place.folder, 'notes')], sandbox: { network: ['a.example'] } }),
    });
    const { code, stdout, stderr } = await place.run(['sandbox', 'lab']);
    expect(code).toBe(0);
    expect(stderr).toContain('lab runs confined');
    expect(stdout).toMatch(/write +\S+ +a home folder of its own/);
    expect(stdout).toMatch(/network +a\.example +`network` of its entry/);
    expect(stderr).toContain(`names ${join(place.folder, 'notes')}, which is closed`);
  });

  it('says what a server without `sandbox` would see', async () => {
    const place = workplace({});
    place.configure({ lab: lab(place) });
    const { stderr } = await place.run(['sandbox', 'lab']);
    expect(stderr).toContain('lab runs unconfined. With `sandbox: true` in its entry, it would see this');
  });

  it('proposes an entry from what a trial used, in which nothing was changed', async () => {
    const place = workplace({});
    const [read, written, unused] = ['read', 'written', 'unused'].map((name) => join(place.folder, name));
    for (const folder of [read, written, unused]) {
      mkdirSync(String(folder));
      writeFileSync(join(String(folder), 'file'), 'before');
    }
    const hostile = LAB.replace('lab.mjs', 'hostile.mjs');
    place.configure({
      s: { command: 'node', args: [hostile, String(read), String(written), String(unused)], sandbox: true },
    });
    const code = `const fs = require('fs'); fs.readFileSync(t[0] + '/file'); fs.writeFileSync(t[1] + '/new', 'x');
      const url = new URL(process.env.HTTPS_PROXY);
      await new Promise((done) => require('http').request({ host: url.hostname, port: url.port, method: 'CONNECT', path: 'api.example.com:443' }).on('error', done).on('connect', done).on('response', done).end());`;
    const targets = JSON.stringify([read, written]);
    const result = await place.run(['sandbox', 's', '--try', 'attempt', `code=${code}`, `targets:=${targets}`]);
    expect(result.stderr).toContain('This entry of s allows what it used');
    expect(result.stdout.trim()).toBe('sandbox: { read: [~/read], write: [~/written], network: [api.example.com] }');
    expect(readdirSync(String(written))).toEqual(['file']);
    expect(result.code).toBe(0);
  });
});
