import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Message } from '../support/gateway-process.js';
import { Place, type Running } from '../support/http-place.js';
import { LoadClient, type LoadObserver } from '../support/load-client.js';
import { repetitions } from '../support/repetitions.js';

interface LoadedServer {
  readonly key: string;
  readonly settings: object;
  /** How many sessions share one process. */
  readonly users: number;
  /** What each session does with it, all at once. */
  readonly waits: number;
  readonly asks: number;
  readonly cancels: number;
}

/** All of them share two processes. */
const SESSIONS = repetitions({ full: 200, short: 40 });

/**
 * Who is there, and which servers all of them use. A server that sends requests must serve one client at a time, so that
 * there is nobody else whom it can mean.
 */
const LOADS: readonly { readonly sessions: number; readonly servers: readonly LoadedServer[] }[] = [
  {
    sessions: SESSIONS,
    servers: [
      { key: 'busy', settings: { concurrency: 256, maxQueued: 1024 }, users: SESSIONS, waits: 4, asks: 0, cancels: 1 },
      { key: 'asking', settings: { concurrency: 1, maxQueued: 1024 }, users: SESSIONS, waits: 1, asks: 1, cancels: 0 },
    ],
  },
  {
    // Each of them starts a process of its own.
    sessions: 8,
    servers: [{ key: 'own', settings: { sharing: 'isolated' }, users: 1, waits: 20, asks: 5, cancels: 5 }],
  },
];

/** What a call takes that is cancelled at once. */
const LONG_MS = 15_000;

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

describe.each(LOADS)('$sessions sessions at once', ({ sessions: count, servers }) => {
  it('get every answer, and nothing that belongs to another session', { timeout: 60_000 }, async () => {
    const running = await place.serve({
      servers: Object.fromEntries(
        servers.map(({ key, settings }) => [key, { ...place.lab(), maxWait: '50s', ...settings }]),
      ),
      gateway: {
        http: { maxSessions: count, maxConnections: 10 * count, requestsPerSecond: 100_000, requestBurst: 100_000 },
      },
    });
    const sessions = times(count, (number) => new LoadedSession(place, running, number));
    await Promise.all(sessions.map(({ client }) => client.open({ sampling: {} })));
    await Promise.all(sessions.map((session) => session.work(servers)));

    expect(sessions.flatMap(({ internalErrors }) => internalErrors)).toEqual([]);
    for (const { key, users, waits, asks, cancels } of servers) {
      const { instances, ...report } = await statusOf(sessions[0], key);
      expect(instances.map(({ clients }: Message) => clients)).toEqual(times(count / users, () => users));
      const calls = users * (waits + asks + cancels + 1);
      const cancelled = users * cancels;
      expect(report).toMatchObject({ calls, cancelled, errors: 0, failures: 0, inFlight: 0, queued: 0 });
    }
    const unasked = await Promise.all(sessions.map(({ client }) => client.end()));
    expect(unasked.flat()).toEqual([]);
  });
});

/** One of the clients: all that it sends carries its name, and nothing that comes may carry another's. */
class LoadedSession implements LoadObserver {
  readonly client: LoadClient;
  readonly internalErrors: string[] = [];
  readonly #number: number;
  /** Every session counts from the same number on. */
  #lastId = 1;

  constructor(place: Place, running: Running, number: number) {
    this.client = new LoadClient(place, running, this);
    this.#number = number;
  }

  /** Everything at once. */
  async work(servers: readonly LoadedServer[]): Promise<void> {
    await Promise.all(
      servers.flatMap(({ key, waits, asks, cancels }) => [
        ...times(waits, (call) => this.#wait(key, (this.#number * 7 + call * 3) % 20)),
        this.#hearOfProgress(key),
        ...times(asks, () => this.#beAsked(key)),
        ...times(cancels, () => this.#cancel(key)),
      ]),
    );
  }

  /** Everything that comes goes through here. */
  text(text: string): void {
    for (const [, number] of text.matchAll(/session (\d+):/g)) {
      if (Number(number) !== this.#number) this.internalErrors.push(`session ${this.#number} was given ${text}`);
    }
  }

  /** What a server asks comes along one call of this session or another; what is answered tells which it was for. */
  asked({ params }: Message): object {
    return { answerTo: params.input };
  }

  /** Many calls with the same id. */
  async #wait(server: string, delayMs: number): Promise<void> {
    const marker = this.#marker();
    const messages = await this.client.request(toolCall(1, `${server}__wait`, { marker, delayMs }));
    this.#expect(messages, [answerTo(1, marker)]);
  }

  async #hearOfProgress(server: string): Promise<void> {
    const marker = this.#marker();
    const id = this.#nextId();
    const messages = await this.client.request(toolCall(id, `${server}__progress`, { marker }, id));
    this.#expect(messages, [...[1, 2, 3].map((step) => progressOf(id, marker, step)), answerTo(id, marker)]);
  }

  async #beAsked(server: string): Promise<void> {
    const input = this.#marker();
    const id = this.#nextId();
    const args = { method: 'sampling/createMessage', params: { input } };
    const messages = await this.client.request(toolCall(id, `${server}__ask`, args));
    const [answer] = messages;
    const { result } = JSON.parse(answer?.result?.content?.[0]?.text ?? '{}');
    this.#expect([messages.length, answer?.id, result], [1, id, { answerTo: input }]);
  }

  /** Cancels as soon as the server is known to work on the call. */
  async #cancel(server: string): Promise<void> {
    const marker = this.#marker();
    const id = this.#nextId();
    const call = toolCall(id, `${server}__progress`, { marker, delayMs: LONG_MS }, id);
    const told: Promise<void>[] = [];
    const messages = await this.client.request(call, () => {
      if (told.length > 0) return;
      told.push(this.client.tell({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }));
    });
    await Promise.all(told);
    // However far the server got by then, and no answer.
    this.#expect(
      messages,
      times(Math.max(1, messages.length), (step) => progressOf(id, marker, step + 1)),
    );
  }

  #expect(actual: unknown, expected: unknown): void {
    try {
      expect(actual).toEqual(expected);
    } catch (error) {
      this.internalErrors.push(`session ${this.#number}: ${(error as Error).message}`);
    }
  }

  #marker(): string {
    return `session ${this.#number}: ${randomUUID()}`;
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }
}

async function statusOf(session: LoadedSession | undefined, server: string): Promise<Message> {
  const [answer] = (await session?.client.request(toolCall(1, 'trunkline__status', { server }))) ?? [];
  return answer?.result.structuredContent.servers[0];
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function toolCall(id: number, name: string, args: object, progressToken?: number): Message {
  const meta = progressToken === undefined ? {} : { _meta: { progressToken } };
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, ...meta } };
}

function answerTo(id: number, marker: string): Message {
  return { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: marker }] } };
}

function progressOf(progressToken: number, message: string, progress: number): Message {
  return {
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { message, extra: 1, progress, progressToken },
  };
}
