import { readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openControl } from '../../src/hub/attach/control-client.js';
import { gatewayFolders } from '../../src/hub/hub-folder.js';
import { VERSION } from '../../src/version.js';
import { LAB } from '../support/gateway-process.js';
import { INITIALIZE, Place, type Running } from '../support/http-place.js';
import { WITH_HUB } from '../support/hub-place.js';
import { killAll, until } from '../support/processes.js';

// The commands that ask a running gateway: a hub, gateways over HTTP, and one for the client on stdin.

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(async () => {
  await place.run(['stop', '--all']);
  await place.dispose();
  killAll(place.folder);
});

/** Writes a configuration with one shared server, and returns its path. */
function config(name: string, server: string, more: object = {}): string {
  const file = place.file(name);
  const lab = { command: 'node', args: [LAB, `run=${place.folder}`], sharing: 'all' };
  writeFileSync(file, JSON.stringify({ servers: { [server]: lab, ...more }, gateway: { drain: '0s' } }));
  return file;
}

async function overHttp(file: string): Promise<Running> {
  const running = await place.serve({ config: file });
  await running.untilReady();
  return running;
}

/** A client on stdin that stays; resolves when a tool of `server` has answered. */
async function onStdin(file: string, server: string, args: readonly string[] = []): Promise<Running> {
  const client = place.start(['--config', file, ...args], undefined, WITH_HUB);
  await client.say(INITIALIZE);
  await client.say({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: `${server}__echo`, arguments: {} } });
  return client;
}

async function run(...args: string[]) {
  return await place.run(args);
}

const origin = (running: Running) => new URL(running.url).origin;

describe('a gateway over HTTP', () => {
  it('answers the commands that a hub answers, to the user who owns it', async () => {
    const file = config('a.yaml', 'one', { three: { command: 'node', args: [LAB], sharing: 'folder' } });
    const running = await overHttp(file);
    const { pid } = running.process;
    const name = `This is the gateway over HTTP at ${origin(running)} (pid ${pid}), of ${file}.\n`;
    const status = await run('status', '--config', file);
    expect(status).toMatchObject({ code: 0, stderr: name });
    expect(status.stdout).toMatch(/ 2 servers: 1 started by each session, 1 up\.\n/);
    expect(status.stdout).toContain('\nWith a process for each session: three (none now)\n');
    await place.initialize(running);
    const one = await run('status', 'one', '--config', file);
    expect(one.stdout).toMatch(/\n- one: up, 9 tools\n {4}list of its tools: /);
    const none = await run('status', 'onne', '--config', file);
    expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('Did you mean "one"?') });
    const { hub } = JSON.parse((await run('ps', '--json', '--config', file)).stdout);
    expect(hub).toMatchObject({ kind: 'http', url: origin(running), pid, number: 0, configFile: file });
    expect(hub.clients).toMatchObject([{ name: 'test', version: '1', pid: null, inFlight: 0, user: null }]);
    expect((await run('metrics', '--config', file)).stdout).toContain('trunkline_in_flight{server="one"} 0');
    const restarted = await run('restart', 'one', '--config', file, '--json');
    expect(JSON.parse(restarted.stdout)).toEqual({ server: 'one', restarting: true });
    const logs = await run('logs', '--config', file);
    expect(logs).toMatchObject({ code: 0, stderr: expect.stringContaining('has logged nothing since its start') });
    const [folder = ''] = gatewayFolders(place.environment.TRUNKLINE_HUB_DIR);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it('serves `call`, `tools` and `doctor`, which start no server of their own', async () => {
    const file = config('a.yaml', 'one');
    const running = await overHttp(file);
    const called = await run('call', 'one.echo', 'marker=m', '--config', file);
    expect(called).toMatchObject({ code: 0, stdout: expect.stringContaining('"marker":"m"') });
    const { tools } = JSON.parse((await run('tools', '--json', '--config', file)).stdout);
    expect(tools.map(({ name }: { name: string }) => name)).toContain('one__echo');
    // A server that the doctor has started is "ready after 100 ms".
    for (const named of [
      ['--config', file],
      ['--gateway', origin(running)],
    ])
      expect((await run('doctor', ...named)).stdout).toContain('server `one`: ready, ');
    const alone = await run('call', 'one.echo', 'marker=m', '--alone', '--config', file);
    expect(alone.code).toBe(0);
    const hub = async () => JSON.parse((await run('ps', '--json', '--config', file)).stdout).hub;
    // The gateway notices a little later that the commands have left.
    await expect.poll(hub).toMatchObject({ pid: running.process.pid, clients: [], servers: [{ calls: 1 }] });
  });

  it('prints the latest records that it has logged to stderr', async () => {
    const file = config('a.yaml', 'one');
    await overHttp(file);
    writeFileSync(file, '{');
    await expect
      .poll(async () => (await run('logs', '--config', file)).stdout)
      .toContain('the changed configuration file has mistakes');
  });

  it('is named beside the hub of its configuration, and goes on when all hubs are stopped', async () => {
    const file = config('a.yaml', 'one');
    const http = await overHttp(file);
    const client = await onStdin(file, 'one');
    const shown = await run('status', '--config', file);
    expect(shown.stderr).toMatch(/^This is the hub \(pid \d+\), of \S+\/a\.yaml\. To name another one /);
    expect(shown.stderr).toContain(`\n  --gateway ${http.process.pid}  over HTTP at ${origin(http)}, of ${file}\n`);
    const named = await run('status', '--json', '--gateway', `${http.url}`);
    expect(named.stderr).toContain(`This is the gateway over HTTP at ${origin(http)}`);
    expect(JSON.parse(named.stdout).hub).toBeUndefined();
    const stopped = await run('stop', '--all');
    expect(stopped).toMatchObject({ code: 0, stderr: expect.stringContaining(`Stopped the hub of ${file}`) });
    expect(stopped.stderr).toContain(`goes on: \`trunkline drain ${origin(http)}\` ends it after its calls.`);
    // Its client keeps a process, which no hub knows now.
    const { gateways, attached } = JSON.parse((await run('ps', '--all', '--json')).stdout);
    expect(gateways).toMatchObject([{ kind: 'http', pid: http.process.pid, configExists: true, state: 'running' }]);
    expect(attached).toContainEqual({
      ...{ pid: client.process.pid, client: null, hub: null },
      ...{ configFile: file, configExists: true },
    });
    expect((await run('hub', 'status', '--config', file)).stderr).toMatch(/ serves \S+, without a hub\. /);
  });

  it('is named by each command that asks it, with the option that names another one of the configuration', async () => {
    const file = config('a.yaml', 'one');
    const [first, second] = [await overHttp(file), await overHttp(file)];
    for (const words of [['call', 'one.echo'], ['tools'], ['list'], ['ps']]) {
      const { stderr } = await run(...words, '--config', file);
      expect(stderr, words[0]).toContain(`This is the gateway over HTTP at ${origin(second)}`);
      expect(stderr, words[0]).toContain(`\n  --gateway ${first.process.pid}  over HTTP at ${origin(first)}`);
    }
    const { stderr } = await run('call', 'one.echo', '--gateway', origin(first), '--config', file);
    expect(stderr).toBe('');
    const { hub } = JSON.parse((await run('ps', '--json', '--gateway', origin(first))).stdout);
    expect(hub.servers).toMatchObject([{ server: 'one', calls: 1 }]);
  });

  it('ends with `stop` after its calls, if no hub serves its configuration', async () => {
    const file = config('a.yaml', 'one');
    const running = await overHttp(file);
    const stopped = await run('stop', '--config', file);
    expect(stopped).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`Stopped the gateway at ${origin(running)}`),
    });
    expect((await running.finished).code).toBe(0);
    const none = await run('stop', '--config', file);
    expect(none).toMatchObject({ code: 0, stderr: expect.stringMatching(/^No gateway of yours runs for /) });
  });

  it('of another configuration is named where none runs for the one that is asked for', async () => {
    const [a, b] = [config('a.yaml', 'one'), config('b.yaml', 'two')];
    const [first, second] = [await overHttp(a), await overHttp(b)];
    const shown = await run('status', '--config', b);
    expect(shown.stdout).toContain('Up: two');
    expect(shown.stderr).toContain('`trunkline ps --all` lists 1 gateway of other configurations.');
    const other = await run('status', '--config', config('c.yaml', 'three'));
    expect(other).toMatchObject({ code: 3, stdout: '' });
    for (const { process: running } of [first, second])
      expect(other.stderr).toContain(`\n  --gateway ${running.pid}  over HTTP at `);
    const wrong = await run('status', '--gateway', '1');
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no gateway of yours has the pid or the URL 1'),
    });
    const drained = await run('drain', String(first.process.pid), '--json');
    expect(JSON.parse(drained.stdout)).toEqual({ drained: [{ url: origin(first), pid: first.process.pid }] });
    expect(gatewaysLeft()).toHaveLength(1);
  });

  it('ends after its calls when it is asked where no process gets signals, as on Windows', async () => {
    const running = await overHttp(config('a.yaml', 'one'));
    const [gateways = ''] = gatewayFolders(place.environment.TRUNKLINE_HUB_DIR);
    const [name = ''] = readdirSync(gateways);
    const control = await openControl(gateways, VERSION, name);
    if (typeof control === 'string') throw new Error(control);
    await control.request('drain');
    control.close();
    expect((await running.finished).code).toBe(0);
  });

  function gatewaysLeft(): string[] {
    return place.leftovers().flatMap(({ args }) => (args.includes('--http') ? [args] : []));
  }
});

describe('a hub whose configuration was moved', () => {
  it('is found by the old path, by its pid and in the list of all, and ends with `stop --gateway`', async () => {
    const file = config('a.yaml', 'one');
    const client = await onStdin(file, 'one');
    renameSync(file, place.file('moved.yaml'));
    const old = await run('status', '--config', file);
    expect(old).toMatchObject({ code: 0, stdout: expect.stringContaining('Served by the hub: pid ') });
    const [hub] = JSON.parse((await run('ps', '--all', '--json')).stdout).gateways;
    expect(hub).toMatchObject({ kind: 'hub', configFile: file, configExists: false });
    const moved = await run('stop', '--config', place.file('moved.yaml'));
    expect(moved.stderr).toContain(`\n  --gateway ${hub.pid}  the hub, of ${file} (does not exist any more)\n`);
    const all = await run('ps', '--all');
    expect(all.stdout).toContain(`The hub (pid ${hub.pid}) runs on with ${file}, which does not exist any more: `);
    const stopped = await run('stop', '--gateway', String(hub.pid));
    expect(stopped).toMatchObject({ code: 0, stderr: expect.stringContaining(`Stopped the hub of ${file}`) });
    client.process.stdin.end();
    await client.finished;
  });
});

describe('a gateway for the client on stdin', () => {
  it('answers the commands, and takes its socket with it when it ends', async () => {
    const file = config('a.yaml', 'one');
    const client = await onStdin(file, 'one', ['--no-hub']);
    const { pid } = client.process;
    const { hub } = JSON.parse((await run('ps', '--json', '--config', file)).stdout);
    expect(hub).toMatchObject({ kind: 'stdio', pid, clients: [{ name: 'test', pid }] });
    const status = await run('status', '--config', file);
    expect(status.stderr).toBe(`This is the gateway of one client on stdin (pid ${pid}), of ${file}.\n`);
    const stopped = await run('stop', '--config', file);
    expect(stopped).toMatchObject({ code: 1, stderr: expect.stringContaining('goes on: it ends with its client.') });
    client.process.stdin.end();
    await client.finished;
    const after = await run('status', '--config', file);
    expect(after).toMatchObject({ code: 3, stderr: expect.stringMatching(/^No gateway runs for /) });
    await until('no folder is left', () => place.leftovers().length === 0);
  });
});

describe('trunkline list', () => {
  it('has every server of the configuration, from the gateway or from earlier runs, and starts nothing', async () => {
    const file = config('a.yaml', 'one', {
      off: { command: 'node', disabled: true },
      web: { url: 'https://mcp.example.com/secret-path', disabled: true },
    });
    const before = JSON.parse((await run('list', '--json', '--config', file)).stdout);
    const row = (server: string, state: string, runs: string) => ({
      ...{ server, state, disabled: state === 'disabled', version: null, tools: null, known: null, runs },
    });
    const off = [row('off', 'disabled', 'node'), row('web', 'disabled', 'https://mcp.example.com')];
    expect(before).toEqual({ configFile: file, gateway: null, servers: [row('one', 'not running', 'node'), ...off] });
    expect(place.leftovers()).toEqual([]);
    const running = await overHttp(file);
    const now = JSON.parse((await run('list', '--json', '--config', file)).stdout);
    expect(now.gateway).toEqual({ kind: 'http', pid: running.process.pid, url: origin(running) });
    expect(now.servers[0]).toMatchObject({ server: 'one', state: 'ready', tools: 9, known: 'now' });
    await run('drain', '--config', file);
    const after = await run('list', '--config', file);
    expect(after.stdout).toMatch(/\none +not running +- +(?:9 earlier|-) +node\n/);
    expect(after.stderr).toContain(`No gateway runs for ${file}.`);
  });
});
