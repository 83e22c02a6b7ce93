// The whole gateway in the process of the test, with real servers and scripted clients. Use it for faults of servers: a
// test sees the state inside, and `end` fails when anything is left behind.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { type Changed, GatewayProcess } from '../../src/app/gateway-process.js';
import { createEraChooser, createPlatform } from '../../src/app/platform.js';
import type { Config } from '../../src/config/resolve/config.js';
import type { ClientOrigin } from '../../src/downstream/port.js';
import { ClientPipe } from '../../src/downstream/stdio/stdio-transport.js';
import type { CreateFeature } from '../../src/extras/feature.js';
import type { ChildSnapshot } from '../../src/spec/server-state.js';
import { reportStatus, type ServerReport } from '../../src/status/status.js';
import type { Clock } from '../../src/wire/timing/clock.js';
import { loadConfig } from './load-config.js';
import { NothingLeft } from './nothing-left.js';
import { killGroups, processesOf, until } from './processes.js';
import { lineOf, type Message, RecordingSink } from './wire.js';

/** The server that fails as it is told. */
export const FAULTY = fileURLToPath(new URL('../fixtures/servers/faulty.mjs', import.meta.url));

/** Of ending everything: a test does not wait for who ignores the end. */
const QUICK_END = { termAfterMs: 300, killAfterMs: 600 };

/** Entries as in the configuration; without `command` the faulty server runs with `args`. */
export type Entries = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface InProcessOptions {
  readonly servers: Entries;
  readonly gateway?: Readonly<Record<string, unknown>>;
  /** Further members of the configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly features?: readonly CreateFeature[];
  /** In place of the time of the machine. */
  readonly clock?: Clock;
  /** In place of our own. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Whether servers may be unable to run with this environment. */
  readonly mayHaveProblems?: boolean;
}

/** A change of a child, in milliseconds on the clock of the gateway. */
export interface SeenChange {
  readonly id: string;
  readonly at: number;
  readonly snapshot: ChildSnapshot;
}

/**
 * The whole gateway within the test process, with real servers, and clients that see every line. Quicker than the built
 * CLI, and nothing of it is hidden. A test fails if anything is left of it.
 */
export class InProcessGateway {
  /** Part of the command lines of all servers. */
  readonly folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  readonly composition: GatewayProcess;
  readonly clock: CountedClock;
  /** All changes of children, in order. */
  readonly changes: SeenChange[] = [];
  /** Called with each, in the same tick as its cause. */
  onChange: (id: string, snapshot: ChildSnapshot) => void = () => {};
  /** All that was logged, as JSON. */
  readonly log: string[] = [];
  readonly #left: NothingLeft;
  readonly #clients: InProcessClient[] = [];
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #more: Readonly<Record<string, unknown>>;

  /** For the running test, after which it is ended. */
  static start(options: InProcessOptions): InProcessGateway {
    const gateway = new InProcessGateway(options);
    onTestFinished(() => gateway.end());
    return gateway;
  }

  constructor(options: InProcessOptions) {
    const { servers, gateway = {}, features = [], clock, environment = process.env, mayHaveProblems } = options;
    this.#more = options.config ?? {};
    this.#left = new NothingLeft(this.folder);
    const platform = createPlatform();
    this.clock = new CountedClock(clock ?? platform.clock);
    this.#environment = environment;
    const config = this.#load(servers, gateway);
    const problem = config.servers.find((server) => server.problem !== undefined)?.problem;
    if (problem !== undefined && mayHaveProblems !== true) throw new Error(problem.message);
    this.composition = new GatewayProcess({
      config,
      platform: { ...platform, clock: this.clock },
      logger: pino({ level: 'debug' }, { write: (line: string) => this.log.push(line) }),
      ...{ environment, features },
      runFolder: this.file('run'),
      approvals: { approvalsFolder: this.file('approvals'), withheldFolder: this.file('withheld'), purpose: 'serve' },
    });
    platform.events.subscribe('server.changed', ({ instance: id, snapshot }) => {
      this.changes.push({ id, at: this.clock.now(), snapshot });
      this.onChange(id, snapshot);
    });
    this.composition.start();
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  /** Lines of a file that servers write; none before they do. */
  lines(name: string): string[] {
    try {
      return readFileSync(this.file(name), 'utf8').split('\n').filter(Boolean);
    } catch {
      return [];
    }
  }

  /** Applies another configuration. */
  change(servers: Entries): Changed {
    return this.composition.change(this.#load(servers, {}));
  }

  /** A client that is initialized; with an origin, its environment and its folder are not those of the gateway. */
  async connect(capabilities: Message = {}, origin?: ClientOrigin): Promise<InProcessClient> {
    const client = this.open(origin);
    const clientInfo = { name: 'test', version: '1' };
    await client.request('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo });
    client.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return client;
  }

  /** A client that has said nothing yet. */
  open(origin?: ClientOrigin): InProcessClient {
    const client = new InProcessClient(this.composition, this.clock, origin);
    this.#clients.push(client);
    return client;
  }

  status(server: string): ServerReport {
    const [report] = reportStatus(this.composition.status(), server).servers;
    if (report === undefined) throw new Error(`No server ${server}`);
    return report;
  }

  /** Waits for a state. A server shared by profile gets `initialize`, and so becomes ready, when the first client is there. */
  async untilState(server: string, state: ServerReport['state']): Promise<ServerReport> {
    const log = () => this.status(server).log.join('\n');
    await until(`${server} is ${state}\n${log()}`, () => this.status(server).state === state);
    return this.status(server);
  }

  /** Times at which the child of a server entered a state, in order. */
  times(server: string, state: ChildSnapshot['state']): number[] {
    return this.changes.filter(({ id, snapshot }) => id === server && snapshot.state === state).map(({ at }) => at);
  }

  /** Time for which the output of a server was not read, because too much of it answered nothing. */
  pausedMs(key: string): number {
    return this.composition.gateway.pool.of(key)[0]?.dispatcher.connection?.pausedMs ?? 0;
  }

  /** Ends everything, fails if anything is left, and cleans up in any case. */
  async end(): Promise<void> {
    const { gateway } = this.composition;
    try {
      for (const client of this.#clients) client.session.close();
      const ended = this.composition.stop(QUICK_END);
      const backends = [...gateway.pool.keys].flatMap((key) => gateway.pool.of(key));
      for (const { id, dispatcher } of backends) {
        this.#left.count(`${id}: in flight`, () => dispatcher.connection?.inFlight ?? 0);
        this.#left.count(`${id}: waiting`, () => dispatcher.admission.queued);
        this.#left.count(`${id}: in flight`, () => dispatcher.inFlightCalls.size);
      }
      for (const { session } of this.#clients) this.#left.count('requests of a client', () => session.inFlight);
      this.#left.count('timers of the gateway', () => this.clock.pending);
      await ended;
      await this.#left.check();
    } finally {
      killGroups(processesOf(this.folder));
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  #load(servers: Entries, gateway: Readonly<Record<string, unknown>>): Config {
    const file = this.file('trunkline.yaml');
    const entries = Object.entries(servers).map(([key, entry]) => [key, this.#entry(entry)]);
    writeFileSync(file, JSON.stringify({ ...this.#more, servers: Object.fromEntries(entries), gateway }));
    return loadConfig(file, { env: this.#environment, nodePath: process.execPath });
  }

  #entry(entry: Readonly<Record<string, unknown>>): object {
    const given = ((entry.args as string[] | undefined) ?? []).map((arg) => arg.replaceAll('RUN', this.folder));
    if ('command' in entry) return { ...entry, args: given };
    return { ...entry, command: 'node', args: [FAULTY, ...given, `run=${this.folder}`] };
  }
}

/** One client, at the other end of a real session. */
export class InProcessClient {
  readonly session: ClientPipe;
  /** Every line that it was sent. */
  readonly received = new RecordingSink();
  readonly #waiting = new Map<string, (answer: Message) => void>();
  #lastId = 0;

  constructor({ gateway, platform }: GatewayProcess, clock: Clock, origin: ClientOrigin | undefined) {
    const serverInfo = { name: 'trunkline', version: '1.2.3' };
    this.received.onLine = (line) => this.#receive(JSON.parse(line));
    this.session = new ClientPipe({
      scan: platform.scan,
      chooseEra: createEraChooser({ ...platform, clock }, gateway, serverInfo),
      sink: this.received,
      principal: 'somebody',
      origin,
      onInternalError: platform.internalErrors.onInternalError,
    });
  }

  /** Sends lines. */
  say(...messages: (Message | string)[]): void {
    for (const message of messages) this.session.receive(lineOf(message).subarray(0, -1));
  }

  /** Resolves with the answer, an error too. */
  request(method: string, params: Message = {}): Promise<Message> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise<Message>((resolve) => this.#waiting.set(String(id), resolve));
    this.say({ jsonrpc: '2.0', id, method, params });
    return answered;
  }

  /** Resolves with the result of a tool, or the error. */
  async call(name: string, args: Message = {}, progressToken?: string): Promise<Message> {
    const _meta = progressToken === undefined ? {} : { _meta: { progressToken } };
    const { result, error } = await this.request('tools/call', { name, arguments: args, ..._meta });
    return result ?? error;
  }

  async listTools(): Promise<string[]> {
    const { result } = await this.request('tools/list');
    return result.tools.map(({ name }: Message) => name);
  }

  /** All notifications and server requests of this method. */
  notifications(method: string): Message[] {
    return this.received.messages.filter((message) => message.method === method);
  }

  #receive(message: Message): void {
    if (message.method !== undefined) return;
    const id = String(message.id);
    this.#waiting.get(id)?.(message);
    this.#waiting.delete(id);
  }
}

/** The text of a result. */
export function textOf(result: Message): string {
  return result.content[0].text;
}

/** Facts about a call that no server answered. */
export function failureOf(result: Message): Message {
  return result._meta['trunkline/failure'];
}

/** A clock that knows how many of its tasks are still to come. */
class CountedClock implements Clock {
  readonly #clock: Clock;
  readonly #scheduled = new Set<object>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get pending(): number {
    return this.#scheduled.size;
  }

  now(): number {
    return this.#clock.now();
  }

  schedule(delayMs: number, task: () => void): () => void {
    const entry = {};
    this.#scheduled.add(entry);
    const cancel = this.#clock.schedule(delayMs, () => {
      this.#scheduled.delete(entry);
      task();
    });
    return () => {
      this.#scheduled.delete(entry);
      cancel();
    };
  }
}
