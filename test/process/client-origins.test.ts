import { mkdirSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { processReports } from '../../src/status/status.js';
import { type Entries, type InProcessClient, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';
import type { Message } from '../support/wire.js';

const PROGRAM = fileURLToPath(new URL('../fixtures/servers/origin.mjs', import.meta.url));

/** Servers that report where they run. The last argument marks their processes. */
function reporting(entries: Entries): Entries {
  const withProgram = Object.entries(entries).map(([key, { args = [], ...entry }]) => [
    key,
    { command: 'node', args: [PROGRAM, ...(args as string[]), 'run=RUN'], sharing: 'profile', ...entry },
  ]);
  return Object.fromEntries(withProgram);
}

/** A gateway that has these variables itself. */
function start(entries: Entries, own: Readonly<Record<string, string>> = {}): InProcessGateway {
  const environment = { PATH: process.env.PATH, HOME: process.env.HOME, ...own };
  const gateway = { restartTool: true };
  return InProcessGateway.start({ servers: reporting(entries), gateway, environment, mayHaveProblems: true });
}

const OWN_TOOLS = ['trunkline__status', 'trunkline__restart'];

interface Where {
  readonly pid: number;
  readonly folder: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function where(client: InProcessClient, server = 'a', tool = 'where'): Promise<Where> {
  return JSON.parse(textOf(await client.call(`${server}__${tool}`)));
}

async function statusOf(client: InProcessClient, server: string): Promise<Message> {
  const { structuredContent } = await client.call('trunkline__status', { server });
  return structuredContent.servers[0];
}

function folderIn(gateway: InProcessGateway, name: string): string {
  mkdirSync(gateway.file(name));
  return realpathSync(gateway.file(name));
}

const NAMING: Entries = {
  a: { args: [`--key=\${SECRET_KEY}`], env: { SECRET_KEY: `\${SECRET_KEY}` } },
  plain: {},
};

describe('clients with different environments', () => {
  it('F87: each get a process with their own variables, and share the servers that name none', async () => {
    const gateway = start(NAMING, { SECRET_KEY: 'of-the-gateway-1' });
    const from = (key: string) => ({ environment: { SECRET_KEY: key }, folder: gateway.folder });
    const one = await gateway.connect({}, from('of-client-one-1'));
    const other = await gateway.connect({}, from('of-client-two-2'));
    const same = await gateway.connect({}, from('of-client-one-1'));
    const own = await gateway.connect();
    const all = await Promise.all([one, other, same, own].map((client) => where(client)));
    expect(all.map(({ env }) => env.SECRET_KEY)).toEqual([
      'of-client-one-1',
      'of-client-two-2',
      'of-client-one-1',
      'of-the-gateway-1',
    ]);
    expect(all.map(({ args }) => args[0])).toEqual(all.map(({ env }) => `--key=${env.SECRET_KEY}`));
    expect(all[2]?.pid).toBe(all[0]?.pid);
    expect(new Set(all.map(({ pid }) => pid)).size).toBe(3);
    const plain = await Promise.all([one, other, same, own].map((client) => where(client, 'plain')));
    expect(new Set(plain.map(({ pid }) => pid)).size).toBe(1);
  });

  it('F87: find none of their secrets in the log or in the status', async () => {
    const gateway = start(NAMING, { SECRET_KEY: 'of-the-gateway-1' });
    const keys = ['of-client-one-1', 'of-client-two-2'];
    const connect = (SECRET_KEY: string) =>
      gateway.connect({}, { environment: { SECRET_KEY }, folder: gateway.folder });
    const clients = await Promise.all(keys.map(connect));
    await Promise.all(clients.map((client) => where(client)));
    const outputs = () => gateway.log.filter((line) => line.includes('"msg":"output"') && line.includes('key ['));
    await until('each process has written its key', () => outputs().length === 3);
    const statuses = await Promise.all(clients.map((client) => statusOf(client, 'a')));
    expect(statuses.map(({ log }) => log)).toEqual([['key [redacted]'], ['key [redacted]']]);
    const seen = [...gateway.log, ...statuses.map((status) => JSON.stringify(status))].join('\n');
    for (const key of [...keys, 'of-the-gateway-1']) expect(seen).not.toContain(key);
  });

  it('F88: are told about a variable that only they lack, and the others keep their servers', async () => {
    const gateway = start(NAMING, { SECRET_KEY: 'of-the-gateway-1' });
    const without = await gateway.connect({}, { environment: {}, folder: gateway.folder });
    const own = await gateway.connect();
    expect(await statusOf(without, 'a')).toMatchObject({
      state: 'misconfigured',
      problem: expect.stringContaining('servers.a.args[1]: the environment variable SECRET_KEY is not set'),
      advice: expect.stringContaining('set SECRET_KEY in the environment that starts Trunkline'),
    });
    expect(await without.listTools()).toEqual(['plain__where', ...OWN_TOOLS]);
    expect((await where(own)).env.SECRET_KEY).toBe('of-the-gateway-1');
    expect(await statusOf(own, 'a')).toMatchObject({ state: 'ready', problem: '' });
    const logged = gateway.log.filter((line) => line.includes('this server cannot run for a client'));
    const reason = expect.stringContaining('the environment variable SECRET_KEY is not set');
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([{ level: 50, server: 'a~2', reason }]);
  });

  it('have a server that cannot run with the variables of Trunkline, if they have what it needs', async () => {
    const gateway = start(NAMING);
    const client = await gateway.connect({}, { environment: { SECRET_KEY: 'of-client-1' }, folder: gateway.folder });
    const own = await gateway.connect();
    expect((await where(client)).env.SECRET_KEY).toBe('of-client-1');
    expect(await statusOf(own, 'a')).toMatchObject({ state: 'misconfigured' });
    const processes = processReports(gateway.composition.status()).filter(({ server }) => server === 'a');
    const states = [
      { id: 'a', state: 'misconfigured', pid: null },
      { id: 'a~2', state: 'ready', pid: expect.any(Number) },
    ];
    expect(processes).toMatchObject(states);
    expect((await statusOf(client, 'a')).instances).toMatchObject(states);
    // What a person sees who asks the hub.
    const { state, problem, tools } = gateway.status('a');
    expect([state, problem, tools.exposed]).toEqual(['ready', '', ['a__where']]);
    const restarts = [client, own].map((each) => each.call('trunkline__restart', { server: 'a' }));
    expect((await Promise.all(restarts)).map(textOf)).toEqual([
      'Server "a" is being restarted. Call trunkline__status to see when it is ready.',
      'There is no server "a". Configured servers: plain.',
    ]);
  });

  it('get another process in a reload that changes something only for them', async () => {
    const gateway = start({ a: { env: { X: `\${ONE}` } }, plain: {} }, { ONE: '1', TWO: '1' });
    const client = await gateway.connect({}, { environment: { ONE: '5', TWO: '6' }, folder: gateway.folder });
    const own = await gateway.connect();
    const before = [await where(client), await where(own)];
    const changed = gateway.change(reporting({ a: { env: { X: `\${TWO}` } }, plain: {} }));
    expect(changed).toMatchObject({ isOther: true, replaced: ['a'], unchanged: ['plain'] });
    const after = [await where(client), await where(own)];
    expect(after.map(({ env }) => env.X)).toEqual(['6', '1']);
    expect(after[0]?.pid).not.toBe(before[0]?.pid);
    expect(after[1]?.pid).toBe(before[1]?.pid);
  });
});

describe('clients in different folders', () => {
  it('get a process in their own folder from a server with `sharing: folder`, and share the others', async () => {
    const gateway = start({ a: { sharing: 'folder' }, fixed: { sharing: 'folder', cwd: '.' }, plain: {} });
    const [x, y] = [folderIn(gateway, 'x'), folderIn(gateway, 'y')];
    expect(gateway.composition.gateway.pool.of('a')).toEqual([]);
    const clients = [];
    for (const folder of [x, y, x]) clients.push(await gateway.connect({}, { environment: {}, folder }));
    const own = await gateway.connect();
    const all = await Promise.all([...clients, own].map((client) => where(client)));
    expect(all.map(({ folder }) => folder)).toEqual([x, y, x, process.cwd()]);
    expect(all[2]?.pid).toBe(all[0]?.pid);
    expect(new Set(all.map(({ pid }) => pid)).size).toBe(3);
    const fixed = await Promise.all(clients.map((client) => where(client, 'fixed')));
    expect(fixed.map(({ folder }) => folder)).toEqual(Array(3).fill(realpathSync(gateway.folder)));
    expect(new Set(fixed.map(({ pid }) => pid)).size).toBe(2);
    const plain = await Promise.all(clients.map((client) => where(client, 'plain')));
    expect(new Set(plain.map(({ pid }) => pid)).size).toBe(1);
  });
});
