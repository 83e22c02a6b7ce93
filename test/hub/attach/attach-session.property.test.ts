import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttachSession } from '../../../src/hub/attach/attach-session.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { repetitions } from '../../support/repetitions.js';
import type { Message } from '../../support/wire.js';
import { ModelHub } from '../model-hub.js';

/** The next event; the number chooses among the things that are there. */
type Step = readonly [kind: (typeof KINDS)[number], choice: number];
const KINDS = [
  ...(['write', 'write', 'write', 'flow', 'flow', 'answer', 'answer', 'answerLarge', 'notify'] as const),
  ...(['deliver', 'deliver', 'deliver', 'die', 'dieUnread', 'attach', 'attach', 'move', 'stop'] as const),
];

/** Messages of the client: the same URIs and levels come again and again. */
const MESSAGES: readonly ((choice: number) => Message | Message[] | string)[] = [
  (choice) => ({ id: 1, method: 'tools/call', params: { name: `t${choice}` } }),
  () => ({ id: 1, method: 'tools/list' }),
  (choice) => ({ id: 1, method: 'logging/setLevel', params: { level: `level${choice % 3}` } }),
  (choice) => ({ id: 1, method: 'resources/subscribe', params: { uri: `u:${choice % 3}` } }),
  (choice) => ({ id: 1, method: 'resources/unsubscribe', params: { uri: `u:${choice % 3}` } }),
  () => ({ method: 'notifications/cancelled', params: { requestId: 1 } }),
  (choice) => ({ id: choice, result: {} }),
  () => [{ id: 1, method: 'tools/list' }, { method: 'notifications/x' }],
  () => [
    { id: 1, method: 'tools/call', params: { name: 't' } },
    { id: 1, method: 'ping' },
  ],
  () => ' \r',
];

/** A client, its session, and the hubs that come and go. */
class World {
  readonly session: AttachSession;
  readonly hubs: ModelHub[] = [];
  readonly toClient: Uint8Array[] = [];
  readonly requested: number[] = [];
  level: string | undefined;
  readonly subscriptions = new Set<string>();
  #hub: ModelHub | undefined;
  #unsent = Buffer.alloc(0);
  #lastId = 0;

  constructor() {
    this.session = new AttachSession({
      toClient: (bytes) => {
        this.toClient.push(Buffer.from(bytes));
        return this.toClient.length % 3 === 0;
      },
      toHub: (bytes) => this.#hub?.read(bytes),
      onMoved: () => this.#detach(),
      onClosed: () => {},
    });
    this.#write({ id: 0, method: 'initialize', params: { protocolVersion: '2025-03-26' } });
    this.#write({ method: 'notifications/initialized' });
  }

  /** The handshake is over. */
  begin(): void {
    this.attach();
    this.#flow();
    this.#hub?.answer(0);
    this.#deliver();
  }

  run([kind, choice]: Step): void {
    const hub = this.#hub;
    if (kind === 'write') {
      const message = MESSAGES[choice % MESSAGES.length]?.(Math.floor(choice / MESSAGES.length)) ?? '';
      this.#write(message);
    } else if (kind === 'flow') {
      this.#flow(choice);
    } else if (kind === 'attach') {
      this.attach();
    } else if (kind === 'answer') {
      hub?.answer(choice);
    } else if (kind === 'answerLarge') {
      hub?.answer(choice, { text: 'x'.repeat(100_000) });
    } else if (kind === 'notify') {
      hub?.notify();
    } else if (kind === 'deliver') {
      this.#deliver(choice < 60 ? choice : choice * 1_000);
    } else if (kind === 'move') {
      hub?.move();
    } else {
      if (kind === 'stop') hub?.end('stopped');
      if (kind !== 'dieUnread') this.#deliver(kind === 'stop' ? undefined : choice);
      this.#detach();
    }
  }

  attach(): void {
    if (this.#hub !== undefined) return;
    this.#hub = new ModelHub(this.hubs.length);
    this.hubs.push(this.#hub);
    this.session.attached();
  }

  /** Everything is read and answered. */
  settle(): void {
    this.#flow();
    this.#deliver();
    // A hub that has told its clients to move is left as soon as nothing is in flight.
    for (let round = 0; round < 3 || this.#hub === undefined; round += 1) {
      this.attach();
      while ((this.#hub?.pending.length ?? 0) > 0) this.#hub?.answer(0);
      this.#deliver();
    }
  }

  get lines(): string[] {
    return Buffer.concat(this.toClient).toString().split('\n');
  }

  #write(message: Message | Message[] | string): void {
    const text = typeof message === 'string' ? message : JSON.stringify(this.#numbered(message));
    this.#unsent = Buffer.concat([this.#unsent, Buffer.from(`${text}\n`)]);
  }

  /** Requests get ids of their own, and are noted. */
  #numbered(message: Message | Message[]): Message | Message[] {
    if (Array.isArray(message)) return message.map((each) => this.#numbered(each) as Message);
    const { method, params } = message;
    if (method === undefined || message.id === undefined) return { jsonrpc: '2.0', ...message };
    const id = this.#lastId;
    this.#lastId += 1;
    this.requested.push(id);
    if (method === 'logging/setLevel') this.level = params.level;
    if (method === 'resources/subscribe') this.subscriptions.add(params.uri);
    if (method === 'resources/unsubscribe') this.subscriptions.delete(params.uri);
    return { jsonrpc: '2.0', ...message, id };
  }

  #flow(maxBytes = this.#unsent.length): void {
    const bytes = this.#unsent.subarray(0, maxBytes);
    this.#unsent = this.#unsent.subarray(bytes.length);
    if (bytes.length > 0) this.session.fromClient(Buffer.from(bytes));
  }

  #deliver(maxBytes = Number.MAX_SAFE_INTEGER): void {
    const hub = this.#hub;
    const bytes = hub?.take(maxBytes) ?? Buffer.alloc(0);
    const session = this.session;
    // Bytes of an old hub are not read any more.
    const reader = {
      get freeSpace() {
        return session.freeSpace.subarray(0, 7_000);
      },
      filled: (byteLength: number) => {
        if (this.#hub === hub) session.filled(byteLength);
      },
    };
    copyInto(reader, bytes);
  }

  #detach(): void {
    if (this.#hub === undefined) return;
    this.#hub = undefined;
    this.session.detached();
  }
}

/** The state of a session, as a hub has it after these lines. */
function stateOf(lines: readonly string[]) {
  let level: string | undefined;
  const subscriptions = new Set<string>();
  for (const line of lines) {
    const { method, params } = JSON.parse(line);
    if (method === 'logging/setLevel') level = params.level;
    if (method === 'resources/subscribe') subscriptions.add(params.uri);
    if (method === 'resources/unsubscribe') subscriptions.delete(params.uri);
  }
  return { level, subscriptions: [...subscriptions].sort() };
}

function methodOf(line: string): string | undefined {
  return JSON.parse(line).method;
}

describe('a session whose hubs die, move and stop at any moment', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.nat(120)), { maxLength: 80 });

  it('answers each request once and nothing else, and every hub begins with the handshake', () => {
    fc.assert(
      fc.property(fc.boolean(), steps, (hasBegun, all) => {
        const world = new World();
        if (hasBegun) world.begin();
        for (const step of all) world.run(step);
        world.settle();

        // A message that was cut off by the death of its hub is a line that is no JSON.
        const messages = world.lines.flatMap((line) => {
          try {
            return [JSON.parse(line)].flat();
          } catch {
            return [];
          }
        });
        const answers = messages.filter(({ id }) => id !== undefined).map(({ id }) => id);
        expect(answers.sort((one, other) => one - other)).toEqual(world.requested);
        for (const { lines } of world.hubs) {
          const handshake = lines.slice(0, 2).map(methodOf);
          expect(handshake).toEqual(['initialize', 'notifications/initialized'].slice(0, lines.length));
          expect(lines.slice(2).map(methodOf)).not.toContain('initialize');
        }
        const { level } = world;
        const subscriptions = [...world.subscriptions].sort();
        expect(stateOf(world.hubs.at(-1)?.lines ?? [])).toEqual({ level, subscriptions });
        expect(world.session.inFlight).toBe(0);
      }),
      { numRuns: repetitions({ full: 5_000, short: 150 }) },
    );
  });
});
