import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { GatewayProcess, LAB, type Message, type StartOptions } from '../support/gateway-process.js';
import { FAULTY } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

const STRICT = fileURLToPath(new URL('../fixtures/servers/strict.mjs', import.meta.url));
const CHANGED = 'notifications/tools/list_changed';

const running: GatewayProcess[] = [];
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.dispose();
});

async function start(options: StartOptions): Promise<GatewayProcess> {
  // The earlier run in the same folder has ended.
  if (options.folder !== undefined) running.pop();
  const gateway = await GatewayProcess.start(options);
  running.push(gateway);
  return gateway;
}

const names = (tools: readonly Message[]) => tools.map(({ name }) => name);

describe('the second run', () => {
  it('lists at once what a slow server offered in the first run, byte for byte, and calls wait for the server', async () => {
    const options = { servers: { slow: { args: ['slow=1500'] }, quick: {} } };
    const first = await start(options);
    const before = await first.request('tools/list');
    for (const server of ['slow', 'quick']) await first.untilState(server, 'ready');
    await first.end();

    const second = await start({ ...options, folder: first.folder });
    const list = await second.request('tools/list');
    const callSlow = second.call('slow__echo', { text: 'x' });
    expect(list.raw.replace(/"id":\d+/, '')).toBe(before.raw.replace(/"id":\d+/, ''));
    expect(await second.status('slow')).toMatchObject({ state: 'starting', fromLastRun: true });
    const { result } = (await second.call('trunkline__status')).message;
    expect(result.content[0].text).toContain(
      'Starting, with the tools of the last run. Calls wait until the server is ready: slow (',
    );
    const quick = await second.call('quick__echo', { text: 'y' });
    expect(quick.message.result.isError).toBeUndefined();
    const slow = await callSlow;
    expect(slow.message.result.isError).toBeUndefined();
    expect(slow.at).toBeGreaterThan(quick.at);
    expect(await second.status('slow')).toMatchObject({ state: 'ready', fromLastRun: false });
    expect(second.notifications(CHANGED)).toEqual([]);
  });

  it('F135: does not wait for a server that failed or hung in the last run, even if that was ended by SIGKILL', async () => {
    // The list would wait for longer than any test may take.
    const options = {
      servers: {
        hangs: { args: ['slow=600000'] },
        unlisted: { program: FAULTY, args: ['ignore=tools/list'] },
        fails: { command: 'node', args: ['-e', 'process.exit(1)'] },
        lab: {},
      },
      gateway: { startupWait: '300s' },
    };
    const first = await start(options);
    const catalogue = join(first.folder, 'data', 'trunkline', 'catalogue');
    const recorded = () => (existsSync(catalogue) ? readdirSync(catalogue) : []);
    // The era of a server has a file of its own, which comes before the end of its start.
    const isRecorded = (key: string) =>
      recorded().some((name) => name.startsWith(`${key}-`) && !name.endsWith('-era') && !name.includes('.'));
    await until('all are recorded', () => Object.keys(options.servers).every(isRecorded));
    expect(await first.status('hangs')).toMatchObject({ state: 'starting' });
    first.kill('SIGKILL');
    await first.exited;
    const second = await start({ ...options, folder: first.folder });
    expect(names(await second.listTools())).toContain('lab__echo');
    for (const server of ['hangs', 'unlisted'])
      expect(await second.status(server)).toMatchObject({ state: 'starting' });
  });
});

describe('the first run after `trunkline check`', () => {
  it('lists the tools of a server that is not ready yet, as the command has read them', async () => {
    const place = new Workplace();
    place.env.XDG_DATA_HOME = join(place.folder, 'data');
    const slow = { command: 'node', args: [LAB, 'slow=1000', `run=${place.folder}`] };
    place.configure({ slow });
    expect(await place.run(['check'])).toMatchObject({ code: 0 });
    const { folder } = place;
    const gateway = await GatewayProcess.start({ servers: { slow }, gateway: { startupWait: '0s' }, folder });
    running.push(gateway);
    expect(names(await gateway.listTools())).toContain('slow__echo');
  });
});

describe('the instructions', () => {
  const options: StartOptions = { servers: { lab: {}, other: { prefix: '' } } };

  /** Runs until the tools are listed and a signal ends it; resolves with the instructions. */
  async function run(more: Partial<StartOptions>): Promise<string> {
    if (more.folder !== undefined) running.pop();
    const gateway = await GatewayProcess.start({ ...options, ...more }, { handshake: false });
    running.push(gateway);
    const { message } = await gateway.initialize();
    await gateway.listTools();
    gateway.kill('SIGTERM');
    await gateway.exited;
    return message.result.instructions;
  }

  it('are those of all servers from the second run on, unless the configuration has changed since', async () => {
    expect(await run({})).not.toContain('lab');
    const folder = running[0]?.folder ?? '';
    const told = await run({ folder });
    expect(told).toMatch(/\n- lab: tools echo, .*\n- other \(its tools keep their own names\): tools echo, /);
    expect(told).toContain('<server-instructions server="lab');
    // Of the same size, as when a letter is replaced.
    const servers = { lab: {}, third: { prefix: '' } };
    expect(await run({ folder, servers })).not.toContain('lab');
  });
});

describe('a server that exits when it is asked for its era', () => {
  it('F148: is started again at once, without a failure, and is not asked in the next run', async () => {
    const options = { servers: { s: { program: STRICT } } };
    const first = await start(options);
    // The first list waits for that start as for any other.
    expect(names(await first.listTools())).toContain('s__answer');
    const status = await first.untilState('s', 'ready');
    expect(status).toMatchObject({ generation: 2, restarts: 0, lastFailure: null, protocolVersion: '2025-06-18' });
    await first.end();
    const { folder } = first;
    const handshake = ['initialize', 'notifications/initialized', 'tools/list'];
    const lines = () => readFileSync(join(folder, 'heard'), 'utf8').trim().split('\n');
    expect(lines()).toEqual(['server/discover', ...handshake]);

    const second = await start({ ...options, folder });
    expect(await second.untilState('s', 'ready')).toMatchObject({ generation: 1 });
    expect(lines().slice(4)).toEqual(handshake);
  });
});

describe('a server that runs only while it is needed', () => {
  it('is started in the first run to learn what it offers, later by a call, and stopped when it had none for long', async () => {
    const first = await start({ servers: { lab: { start: 'lazy', idleStop: '300ms' } } });
    const tools = names(await first.listTools());
    expect(tools).toContain('lab__echo');
    await first.untilState('lab', 'idle');
    await first.end();

    const second = await start({ servers: { lab: { start: 'lazy', idleStop: '300ms' } }, folder: first.folder });
    expect(names(await second.listTools())).toEqual(tools);
    expect(await second.untilState('lab', 'idle')).toMatchObject({ pid: null, generation: 0 });
    const { message } = await second.call('lab__echo', { text: 'x' });
    expect(message.result.isError).toBeUndefined();
    const status = await second.untilState('lab', 'idle');
    expect(status).toMatchObject({ pid: null, generation: 1, restarts: 0, lastFailure: null });
    expect(second.leftovers().filter(({ args }) => args.includes('lab.mjs'))).toEqual([]);
    expect(names(await second.listTools())).toEqual(tools);
    expect(second.notifications(CHANGED)).toEqual([]);
  });
});
