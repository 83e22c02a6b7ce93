import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repetitions } from '../../support/repetitions.js';
import type { ScriptedClient } from '../../support/scripted-gateway.js';
import type { ScriptedPeer } from '../../support/scripted-peer.js';
import { flush, type Message } from '../../support/wire.js';
import { ACKNOWLEDGED, listening, OTHER, SUBSCRIPTION_ID, TOOLS_CHANGED, UPDATED, URI } from './listening.js';

/** A resource to which the server refuses subscriptions. */
const REFUSED = 'x://a/refused';
const WINDOW_MS = 250;

const filter = fc.record(
  { toolsListChanged: fc.boolean(), resourceSubscriptions: fc.subarray([URI, OTHER, REFUSED, 'none://1']) },
  { requiredKeys: [] },
);
const what = fc.oneof(
  { weight: 4, arbitrary: fc.constant('open' as const) },
  { weight: 3, arbitrary: fc.constant('cancel' as const) },
  { weight: 4, arbitrary: fc.constant('answer' as const) },
  { weight: 3, arbitrary: fc.constantFrom('change' as const, 'update' as const) },
  { weight: 2, arbitrary: fc.constant('wait' as const) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('crash' as const, 'start' as const, 'leave' as const, 'stop reading' as const),
  },
);
const step = fc.record({ do: what, a: fc.nat(40), b: fc.nat(40), filter });
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** A subscription from the view of its client. */
interface Seen {
  readonly id: string;
  readonly client: number;
  readonly filter: Message;
  honored: Message | undefined;
  isOver: boolean;
  /** The tools that the client would have read after the latest notification. */
  tools: unknown;
  readonly changedAt: number[];
  updates: number;
}

class World {
  readonly seen: Seen[] = [];
  /** Faults of received messages. */
  readonly faults: unknown[] = [];
  #lastId = 0;
  #step = 0;
  readonly #world: Awaited<ReturnType<typeof listening>>;
  readonly #clients: ScriptedClient[];
  readonly #observer: ScriptedClient;
  /** Subscriptions of each process, and the number of its lines that it has handled. */
  readonly #processes = new Map<ScriptedPeer, { readonly subscribed: Set<string>; read: number }>();

  constructor(world: Awaited<ReturnType<typeof listening>>) {
    this.#world = world;
    this.#observer = world.connect();
    this.#observer.initialize();
    this.#clients = [this.#connect(0), this.#connect(1)];
  }

  async take({ do: does, a, b, filter: wanted }: Step): Promise<void> {
    this.#step += 1;
    const { server, changeTools, update, pass } = this.#world;
    const backend = server('a');
    const isUp = backend.backend.dispatcher.connection !== undefined;
    const client = this.#clients[a % 2];
    if (does === 'open') this.#listen(a % 2, wanted);
    else if (does === 'cancel') this.#cancel(a);
    else if (does === 'answer') await this.#answer(1 + (b % 3));
    else if (does === 'change' && isUp) await changeTools(`tool${this.#step}`);
    else if (does === 'update' && isUp) update([URI, OTHER, `${URI}#part`, REFUSED][b % 4] ?? URI);
    else if (does === 'crash' && isUp) backend.crash();
    else if (does === 'start' && !isUp) await backend.start();
    else if (does === 'leave') this.#leave(a % 2);
    else if (does === 'stop reading' && client !== undefined) client.received.unwrittenBytes = 300_000 * (b % 2);
    else if (does === 'wait') await pass(b * 50);
    await flush();
  }

  /** Lets everything that has begun come to its end. */
  async settle(): Promise<void> {
    const { server, pass } = this.#world;
    for (const client of this.#clients) client.received.unwrittenBytes = 0;
    if (server('a').backend.dispatcher.connection === undefined) await server('a').start();
    for (let round = 0; round < 4; round += 1) {
      await this.#answer(1_000);
      await pass(5_000);
    }
  }

  get open(): Seen[] {
    return this.seen.filter(({ isOver }) => !isOver);
  }

  /** Updates the resource once, while nothing else happens. */
  expectUpdate(uri: string): void {
    const before = this.open.map(({ updates }) => updates);
    if (this.upstream.includes(uri)) this.#world.update(uri);
    const after = this.open.map((each, at) => each.updates - (before[at] ?? 0));
    expect(after).toEqual(this.open.map((each) => (holds(each, uri) ? 1 : 0)));
  }

  leaveAll(): void {
    for (const client of [0, 1]) this.#leave(client);
  }

  /** Subscriptions of the present process. */
  get upstream(): string[] {
    return [...(this.#processes.get(this.#world.server('a').child)?.subscribed ?? [])].sort();
  }

  get tools(): unknown {
    this.#observer.received.take();
    this.#observer.request('tools', 'tools/list');
    return this.#observer.answerTo('tools')?.result;
  }

  #connect(index: number): ScriptedClient {
    const client = this.#world.connect();
    client.received.onLine = (line) => {
      // Catches the error, because the gateway might catch it otherwise.
      try {
        this.#received(index, JSON.parse(line));
      } catch (error) {
        this.faults.push(error);
      }
    };
    return client;
  }

  #listen(client: number, wanted: Message): void {
    this.#lastId += 1;
    const id = `listen-${this.#lastId}`;
    this.seen.push({
      id,
      client,
      filter: wanted,
      honored: undefined,
      isOver: false,
      tools: undefined,
      changedAt: [],
      updates: 0,
    });
    const session = this.#clients[client];
    if (session !== undefined) this.#world.listen(session, id, wanted);
  }

  #cancel(a: number): void {
    const chosen = this.open[a % Math.max(1, this.open.length)];
    if (chosen === undefined) return;
    this.#clients[chosen.client]?.cancel(chosen.id);
    chosen.isOver = true;
  }

  #leave(client: number): void {
    this.#clients[client]?.session.close();
    for (const each of this.seen) if (each.client === client) each.isOver = true;
    this.#clients[client] = this.#connect(client);
  }

  /** Lets the process handle this number of further requests in their order, including cancelled ones. */
  async #answer(count: number): Promise<void> {
    const { child } = this.#world.server('a');
    const process = this.#processes.get(child) ?? { subscribed: new Set(), read: 0 };
    this.#processes.set(child, process);
    for (let left = count; left > 0 && process.read < child.received.lines.length; ) {
      const { id, method, params } = JSON.parse(child.received.lines[process.read] ?? '');
      process.read += 1;
      if (method !== 'resources/subscribe' && method !== 'resources/unsubscribe') continue;
      left -= 1;
      const isRefused = method === 'resources/subscribe' && params.uri === REFUSED;
      if (method === 'resources/unsubscribe') process.subscribed.delete(params.uri);
      else if (!isRefused) process.subscribed.add(params.uri);
      child.say({ jsonrpc: '2.0', id, ...(isRefused ? { error: { code: -1, message: 'no' } } : { result: {} }) });
      await flush();
    }
  }

  /** Checks that each message belongs to an open, acknowledged subscription and to something that it honors. */
  #received(client: number, { method, params, id }: Message): void {
    expect(id).toBeUndefined();
    const subscription = this.seen.find((each) => each.id === params?._meta?.[SUBSCRIPTION_ID]);
    if (subscription === undefined) throw new Error(`Belongs to no subscription: ${method}`);
    expect([subscription.client, subscription.isOver]).toEqual([client, false]);
    if (method === ACKNOWLEDGED) {
      expect(subscription.honored).toBeUndefined();
      subscription.honored = params.notifications;
      subscription.tools = this.tools;
      return;
    }
    const { toolsListChanged, resourceSubscriptions } = subscription.honored ?? {};
    if (method === TOOLS_CHANGED) {
      expect(toolsListChanged).toBe(true);
      subscription.tools = this.tools;
      subscription.changedAt.push(this.#world.clock.now());
    } else {
      expect(method).toBe(UPDATED);
      const held = this.open.filter((each) => each.client === client && holds(each, params.uri));
      if (held.length > 0) expect(held).toContain(subscription);
      expect(resourceSubscriptions?.length).toBeGreaterThan(0);
      subscription.updates += 1;
    }
  }
}

function holds({ honored }: Seen, uri: string): boolean {
  return honored?.resourceSubscriptions?.includes(uri) === true;
}

function expectInvariants(world: World): void {
  const { open } = world;
  const final = world.tools;
  for (const { filter: wanted, honored, tools } of open) {
    const { toolsListChanged, resourceSubscriptions = [] } = wanted;
    expect(honored?.toolsListChanged).toBe(toolsListChanged === true ? true : undefined);
    expect(resourceSubscriptions).toEqual(expect.arrayContaining(honored?.resourceSubscriptions ?? []));
    if (toolsListChanged === true) expect(tools).toEqual(final);
  }
  for (const { changedAt } of world.seen) {
    for (const at of changedAt) {
      expect(changedAt.filter((other) => other >= at && other < at + WINDOW_MS).length).toBeLessThanOrEqual(2);
    }
  }
  const wanted = open.flatMap(({ honored }) => honored?.resourceSubscriptions ?? []);
  expect(world.upstream).toEqual([...new Set(wanted)].sort());
}

describe('subscriptions of two clients', () => {
  it('invariants 25, 27 and 29: whatever happens in whatever order, get what they ask for, and the server keeps what is wanted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
        const world = await listening();
        const tested = new World(world);
        for (const one of steps) await tested.take(one);
        await tested.settle();
        expectInvariants(tested);
        for (const uri of [URI, OTHER]) tested.expectUpdate(uri);
        tested.leaveAll();
        await tested.settle();
        expect(tested.faults).toEqual([]);
        expect(tested.upstream).toEqual([]);
        world.clock.advance(600_000);
        expect(world.clock.pending).toBe(0);
      }),
      { numRuns: repetitions({ full: 120, short: 25 }) },
    );
  });
});
