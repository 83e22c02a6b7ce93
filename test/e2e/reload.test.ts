import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { GatewayProcess, type Message, type StartOptions } from '../support/gateway-process.js';
import { until } from '../support/processes.js';
import { repetitions } from '../support/repetitions.js';
import { Seeded } from '../support/seeded.js';

type Servers = Record<string, Record<string, unknown>>;

const SEED = 20;

/** Number of changes of the file. A fifth of them breaks it. */
const TURNS = repetitions({ full: 50, short: 5 });

/** A gateway that follows its file, ended with the test. */
async function started({ onTestFinished }: TestContext, options: StartOptions): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start(options);
  onTestFinished(() => gateway.dispose());
  return gateway;
}

const KEY = 'canary-4f1d';

describe('a configuration that changes while Trunkline runs', () => {
  it(`fails no call of the servers it does not touch over ${TURNS} reloads under 32 calls in flight`, async (test) => {
    const seeded = new Seeded(SEED);
    const steady: Servers = { one: { concurrency: 32 }, two: { concurrency: 32 } };
    let servers: Servers = { ...steady, moody: {}, guest0: {} };
    const gateway = await started(test, { servers });
    await gateway.listTools();
    const before = await gateway.untilStatus('all are ready', areReady);
    const pids = { one: (await gateway.status('one')).pid, two: (await gateway.status('two')).pid };
    const openAtFirst = openDescriptors(gateway);
    const file = join(gateway.folder, 'effects');
    const load = new Load(gateway, file, seeded);
    load.begin();

    let reloads = 0;
    let broken = 0;
    for (let turn = 0; turn < TURNS; turn += 1) {
      const kind = (['add', 'change', 'break', 'remove', 'adjust'] as const)[turn % 5];
      const guests = Object.keys(servers).filter((key) => key.startsWith('guest'));
      if (kind === 'break') {
        broken += 1;
        gateway.writeConfig(`{"servers": {"one": {"comand": "turn ${turn}"}}}`);
        const status = await gateway.untilStatus('the file is broken', ({ configFault }) => configFault !== undefined);
        expect(status).toMatchObject({ configInForce: 'previous', configReloads: reloads });
        expect(status.configFault).toContain('trunkline.yaml:1:22');
        continue;
      }
      if (kind === 'add') servers = { [`guest${turn}`]: {}, ...servers };
      if (kind === 'change') servers = { ...servers, moody: { args: [`turn=${turn}`] } };
      if (kind === 'adjust') servers = { ...servers, moody: { ...servers.moody, timeout: `${turn + 10}s` } };
      if (kind === 'remove') delete servers[seeded.pick(guests)];
      reloads += 1;
      gateway.configure({ ...servers });
      const status = await gateway.untilStatus(`reload ${reloads}`, ({ configReloads }) => configReloads === reloads);
      expect(status.configFault).toBeUndefined();
      expect(keysOf(status).toSorted()).toEqual(Object.keys(servers).toSorted());
    }
    expect([reloads, broken]).toEqual([TURNS * 0.8, TURNS * 0.2]);
    expect(load.inFlight).toBeGreaterThanOrEqual(32);
    await load.end();

    expect(load.failed).toEqual([]);
    // Every caller has called many times while the file changed.
    expect(load.calls).toBeGreaterThan(10 * TURNS);
    const effects = readFileSync(file, 'utf8').trim().split('\n');
    expect(effects.toSorted()).toEqual(load.effects.toSorted());
    const ids = gateway.received.flatMap(({ message }) => (message.method === undefined ? [message.id] : []));
    expect(new Set(ids).size).toBe(ids.length);

    const after = await gateway.untilStatus('all are ready', areReady);
    for (const key of ['one', 'two'] as const) {
      expect(await gateway.status(key)).toMatchObject({ pid: pids[key], generation: 1, failures: 0, errors: 0 });
    }
    await until('only what is configured runs', () => gateway.leftovers().length === after.servers.length + 1);
    if (openAtFirst !== undefined) {
      // The call log is open from the first call on.
      const expected = openAtFirst + 1 + 3 * (after.servers.length - before.servers.length);
      await until('no descriptor is left', () => (openDescriptors(gateway) ?? 0) <= expected);
    }
  });

  it.concurrent('is used by a gateway that started with a broken one', async (test) => {
    const gateway = await started(test, { servers: { 'no key!': {} } });
    expect((await gateway.listTools()).map(({ name, description }) => [name, description.split(':')[0]])).toEqual([
      ['trunkline__status', 'The configuration cannot be used'],
    ]);
    const broken = await gateway.untilStatus('it is told', () => true);
    expect(broken).toMatchObject({ configInForce: 'none', servers: [] });
    gateway.configure({ lab: {} });
    await gateway.untilStatus('it is taken over', ({ configFault }) => configFault === undefined);
    await gateway.untilState('lab', 'ready');
    await until('the client is told', () => gateway.notifications('notifications/tools/list_changed').length > 0);
    const tools = await gateway.listTools();
    expect(tools.map(({ name }) => name)).toContain('lab__echo');
    expect(tools.find(({ name }) => name === 'trunkline__status')?.description).toMatch(/^Shows which MCP servers/);
    expect(gateway.notifications('notifications/tools/list_changed')).toHaveLength(1);
  });

  it.concurrent('shows neither old nor new secrets of a server that writes them to its log', async (test) => {
    const tell =
      "console.error('key is', process.env.API_KEY); process.stdin.on('data', () => console.error('still', process.env.API_KEY))";
    const teller = (secret: string) => ({
      command: 'node',
      args: ['-e', tell],
      env: { API_KEY: secret },
      startTimeout: '60s',
    });
    const gateway = await started(test, { servers: { teller: teller(`${KEY}-old`) }, args: ['-vv'] });
    await until('it has told', () => /still/.test(gateway.stderr));
    gateway.configure({ teller: teller(`${KEY}-new`) });
    await until('the new one has told', () => /teller~2.*key is/.test(gateway.stderr));
    await until('it has told more', () => /teller~2.*still/.test(gateway.stderr));
    expect(gateway.stderr).not.toContain(KEY);
    expect(gateway.stderr).toContain('[redacted]');
  });
});

/** Calls without end: 32 at once to what stays as it is, and some to what changes. */
class Load {
  readonly failed: unknown[] = [];
  readonly effects: string[] = [];
  calls = 0;
  inFlight = 0;
  readonly #gateway: GatewayProcess;
  readonly #file: string;
  readonly #seeded: Seeded;
  #isOver = false;
  #callers: Promise<void>[] = [];

  constructor(gateway: GatewayProcess, file: string, seeded: Seeded) {
    this.#gateway = gateway;
    this.#file = file;
    this.#seeded = seeded;
  }

  begin(): void {
    const steady = Array.from({ length: 32 }, (_, caller) => this.#callAgain(caller % 2 === 0 ? 'one' : 'two'));
    const moody = Array.from({ length: 4 }, () => this.#callAgain('moody'));
    this.#callers = [...steady, ...moody];
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }

  async #callAgain(key: string): Promise<void> {
    while (!this.#isOver) {
      this.calls += 1;
      const marker = `${key}-${this.calls}`;
      const delayMs = 20 + this.#seeded.below(400);
      const hasEffect = key === 'moody';
      if (hasEffect) this.effects.push(marker);
      this.inFlight += 1;
      const tool = hasEffect ? 'effect' : 'wait';
      const { message } = await this.#gateway.call(`${key}__${tool}`, { marker, delayMs, file: this.#file });
      this.inFlight -= 1;
      if (message.result?.content[0].text !== marker) this.failed.push({ marker, message });
    }
  }
}

function areReady({ servers }: Message): boolean {
  return servers.every(({ state }: Message) => state === 'ready');
}

function keysOf({ servers }: Message): string[] {
  return servers.map(({ server }: Message) => server);
}

function openDescriptors(gateway: GatewayProcess): number | undefined {
  const folder = `/proc/${gateway.pid}/fd`;
  return existsSync(folder) ? readdirSync(folder).length : undefined;
}
