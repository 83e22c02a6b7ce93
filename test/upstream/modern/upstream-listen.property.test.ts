import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repetitions } from '../../support/repetitions.js';
import { flush, type Message } from '../../support/wire.js';
import { Listener, TIMEOUTS } from '../stdio/bridging.js';
import { openModern } from './opening.js';

const ID = 'io.modelcontextprotocol/subscriptionId';
const UPDATED = 'notifications/resources/updated';
const URIS = ['a:1', 'a:2', 'a:3'];

/** One stream, as the server has it. */
interface Stream {
  readonly id: unknown;
  readonly wanted: Message;
  isAcknowledged: boolean;
}

const step = fc.record({
  kind: fc.constantFrom(
    ...(['subscribe', 'subscribe', 'unsubscribe', 'acknowledge', 'acknowledge'] as const),
    ...(['update', 'update', 'end', 'cancel', 'wait'] as const),
  ),
  which: fc.nat(20),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** A modern server that reports on every stream that it has acknowledged, and a gateway that comes and goes as a subscriber. */
class World {
  readonly #server: Awaited<ReturnType<typeof openModern>>;
  readonly #streams: Stream[] = [];
  /** The last request about each resource. */
  readonly #subscriptions = new Map<string, Listener>();
  /** Whether the server has ended a stream, and none took its place yet. */
  #hasEndedOne = false;
  #read = 0;

  constructor(server: Awaited<ReturnType<typeof openModern>>) {
    this.#server = server;
  }

  static async open(): Promise<World> {
    const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
    return new World(await openModern({ capabilities }));
  }

  async take({ kind, which }: Step): Promise<void> {
    const uri = URIS[which % URIS.length] ?? '';
    if (kind === 'subscribe') this.#subscribe(uri);
    if (kind === 'unsubscribe') this.#unsubscribe(uri);
    if (kind === 'acknowledge') this.#acknowledge(which);
    if (kind === 'update') this.#update(uri);
    if (kind === 'end') this.#end(which, (id) => ({ id, result: { resultType: 'complete' } }));
    if (kind === 'cancel') this.#end(which, (id) => ({ method: 'notifications/cancelled', params: { requestId: id } }));
    if (kind === 'wait') this.#server.clock.advance(which * 1_000);
    await flush();
    this.#readAll();
  }

  #subscribe(uri: string): void {
    const listener = new Listener();
    this.#subscriptions.set(uri, listener);
    void this.#server.connection
      .request('resources/subscribe', { uri }, TIMEOUTS)
      .then((outcome) => listener.settle(outcome));
  }

  #unsubscribe(uri: string): void {
    if (!this.#subscriptions.delete(uri)) return;
    void this.#server.connection.request('resources/unsubscribe', { uri }, TIMEOUTS);
  }

  #acknowledge(which: number): void {
    const unknown = this.#streams.filter(({ isAcknowledged }) => !isAcknowledged);
    const stream = unknown[which % Math.max(1, unknown.length)];
    if (stream === undefined) return;
    stream.isAcknowledged = true;
    const params = { _meta: { [ID]: stream.id }, notifications: stream.wanted };
    this.#say({ method: 'notifications/subscriptions/acknowledged', params });
  }

  /** Whoever is subscribed hears of it, unless the server itself has ended the stream. */
  #update(uri: string): void {
    const before = this.#server.notifications.length;
    const streams = this.#streams.filter(({ isAcknowledged, wanted }) => isAcknowledged && holds(wanted, uri));
    for (const { id } of streams) this.#say({ method: UPDATED, params: { _meta: { [ID]: id }, uri } });
    const told = this.#server.notifications.slice(before).map(({ method }) => method);
    const isSubscribed = this.#subscriptions.get(uri)?.told[0] === '{}';
    if (isSubscribed && !this.#hasEndedOne) expect(told).toContain(UPDATED);
  }

  #end(which: number, message: (id: unknown) => Message): void {
    const known = this.#streams.filter(({ isAcknowledged }) => isAcknowledged);
    const stream = known[which % Math.max(1, known.length)];
    if (stream === undefined) return;
    this.#streams.splice(this.#streams.indexOf(stream), 1);
    this.#hasEndedOne = true;
    this.#say(message(stream.id));
  }

  #readAll(): void {
    const { messages } = this.#server.output;
    for (const { id, method, params } of messages.slice(this.#read)) {
      if (method === 'subscriptions/listen')
        this.#streams.push({ id, wanted: params.notifications, isAcknowledged: false });
      const at = this.#streams.findIndex((stream) => stream.id === params?.requestId);
      if (method === 'notifications/cancelled' && at >= 0) this.#streams.splice(at, 1);
    }
    this.#read = messages.length;
    // One that has taken the place of what the server ended.
    if (this.#streams.some(({ isAcknowledged }) => isAcknowledged)) this.#hasEndedOne = false;
  }

  #say(message: Message): void {
    void this.#server.say({ jsonrpc: '2.0', ...message });
  }
}

function holds({ resourceSubscriptions = [] }: Message, uri: string): boolean {
  return resourceSubscriptions.includes(uri);
}

describe('the stream of changes of a modern server', () => {
  it('invariant 26: loses no update while it is replaced, whatever is subscribed to meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const world = await World.open();
        for (const one of steps) await world.take(one);
      }),
      { numRuns: repetitions({ full: 3_000, short: 100 }) },
    );
  });
});
