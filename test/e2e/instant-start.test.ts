import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type Message, type StartOptions } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

const FAULTY = fileURLToPath(new URL('../fixtures/servers/faulty.mjs', import.meta.url));
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

/** Runs a configuration until its lists are cached, and then runs it again. */
async function twice(options: StartOptions, between: (folder: string) => void = () => {}): Promise<GatewayProcess> {
  const first = await start(options);
  for (const server of Object.keys(options.servers)) await first.untilState(server, 'ready');
  await first.end();
  between(first.folder);
  return await start({ ...options, folder: first.folder });
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

  it('writes its cache for its user only', async () => {
    const gateway = await twice({ servers: { lab: { env: { API_KEY: 'canary-secret' } } } });
    const data = join(gateway.folder, 'data', 'trunkline');
    for (const folder of ['catalogue', 'checked'].map((name) => join(data, name))) {
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      const files = readdirSync(folder).map((name) => join(folder, name));
      // The catalogue, and the era of the server.
      expect(files).toHaveLength(folder.endsWith('catalogue') ? 2 : 1);
      for (const file of files) {
        expect(statSync(file).mode & 0o777).toBe(0o600);
        expect(readFileSync(file, 'latin1')).not.toContain('canary');
      }
    }
  });

  it('announces once what has changed since, and lists that', async () => {
    const gateway = await twice({ servers: { lab: { args: ['slow=300'] } } }, (folder) => {
      const catalogue = join(folder, 'data', 'trunkline', 'catalogue');
      const name = readdirSync(catalogue).find((each) => !each.endsWith('-era')) ?? '';
      const cached = readFileSync(join(catalogue, name), 'utf8');
      writeFileSync(join(catalogue, name), cached.replace('"name":"verbatim"', '"name":"of-old"'));
    });
    expect(names(await gateway.listTools())).toContain('lab__of-old');
    await until('the notification', () => gateway.notifications(CHANGED).length > 0);
    const now = names(await gateway.listTools());
    expect(now).toContain('lab__verbatim');
    expect(now).not.toContain('lab__of-old');
    expect(gateway.notifications(CHANGED)).toHaveLength(1);
  });

  it('removes the cached list of a server that does not start any more, and notifies clients', async () => {
    const lab = new URL('../fixtures/servers/lab.mjs', import.meta.url).href;
    const place = await start({ servers: { lab: {} } });
    await place.end();
    const { folder } = place;
    const script = join(folder, 'server.mjs');
    const options: StartOptions = {
      folder,
      servers: { gone: { command: 'node', args: [script, folder], restart: { budget: 1 } }, lab: {} },
    };
    // By all that can be seen from outside it is the same program, only that it does not work any more.
    const write = (text: string) => {
      writeFileSync(script, text.padEnd(1_000));
      utimesSync(script, 1_000_000_000, 1_000_000_000);
    };
    write(`await import(${JSON.stringify(lab)});`);
    const first = await start(options);
    await first.untilState('gone', 'ready');
    await first.end();
    const gate = join(folder, 'gate');
    write(`
      import { existsSync } from 'node:fs';
      setInterval(() => existsSync(${JSON.stringify(gate)}) && process.exit(1), 5);
    `);

    const second = await start(options);
    expect(names(await second.listTools())).toContain('gone__echo');
    writeFileSync(gate, '');
    await until('the notification', () => second.notifications(CHANGED).length > 0);
    expect(names(await second.listTools())).not.toContain('gone__echo');
  });

  it('ignores a cache that cannot be read', async () => {
    const gateway = await twice({ servers: { lab: {} } }, (folder) => {
      for (const part of ['catalogue', 'checked']) {
        const place = join(folder, 'data', 'trunkline', part);
        for (const name of readdirSync(place)) writeFileSync(join(place, name), 'rubbish');
      }
    });
    expect(names(await gateway.listTools())).toContain('lab__echo');
    expect(gateway.stderr).toBe('');
  });
});

describe('a server with `start: lazy`', () => {
  it('is started in the first run to learn what it offers, and in the next one by its first call', async () => {
    const gateway = await twice({ servers: { lab: { start: 'lazy' } } });
    expect(names(await gateway.listTools())).toContain('lab__echo');
    expect(await gateway.untilState('lab', 'idle')).toMatchObject({ pid: null, generation: 0 });
    const { message } = await gateway.call('lab__echo', { text: 'x' });
    expect(message.result.isError).toBeUndefined();
    expect(await gateway.status('lab')).toMatchObject({ state: 'ready', generation: 1, restarts: 0 });
  });
});

describe('a server with `idleStop`', () => {
  it('is stopped when it had no call for that long, stays listed, and the next call starts it again', async () => {
    const gateway = await start({ servers: { lab: { idleStop: '300ms' } } });
    const tools = names(await gateway.listTools());
    await gateway.untilState('lab', 'idle');
    expect(gateway.leftovers().filter(({ args }) => args.includes('lab.mjs'))).toEqual([]);
    expect(names(await gateway.listTools())).toEqual(tools);
    const { message } = await gateway.call('lab__echo', { text: 'x' });
    expect(message.result.isError).toBeUndefined();
    expect(await gateway.status('lab')).toMatchObject({ generation: 2, restarts: 0, lastFailure: null });
    expect(gateway.notifications(CHANGED)).toEqual([]);
  });
});
