import type { Sharing } from '../../src/gateway/registry/backend-pool.js';
import { offering, type ScriptedClient, type ServerScript, scriptGateway } from '../support/scripted-gateway.js';
import type { ScriptedPeer } from '../support/scripted-peer.js';
import { flush, type Message } from '../support/wire.js';

/** The URI that both servers list: the first one owns it. */
const URI = 'x://shared';

/** One request of a client, as far as the client knows. */
interface Asked {
  readonly client: number;
  readonly id: string;
  readonly method: string;
  /** Stands in the params, and in what the server answers. */
  readonly marker: string;
  readonly progressToken: string | undefined;
  /** Whether the answer was there when the client cancelled, if it did. */
  cancelled?: 'unanswered' | 'answered';
}

/** One process of a server and what the test has done in its name. */
interface Process {
  readonly id: string;
  readonly child: ScriptedPeer;
  readonly answered: Set<number>;
  /** Ids of what it asked. */
  readonly serverRequests: string[];
  /** Answers that nobody waited for any more. */
  lateAnswers: number;
  isCrashed: boolean;
  /** Whether it crashed, or was ended. */
  readonly isDead: boolean;
}

/**
 * Two clients, two servers and everything that can happen between them, in any order; each payload carries a marker of
 * its own. The first client can be asked for input, the second cannot.
 */
export class World {
  readonly asked: Asked[] = [];
  readonly processes: Process[] = [];
  readonly clients: readonly [ScriptedClient, ScriptedClient];
  readonly #answered = new Set<string>();
  readonly #world: ReturnType<typeof scriptGateway>;
  readonly #servers: Readonly<Record<string, ServerScript>>;
  #count = 0;
  #progress = 0;

  constructor(sharing: Sharing) {
    const limits = { concurrency: 3, maxQueued: 4, maxWaitMs: 3_000, timeoutMs: 2_000, maxTimeoutMs: 4_000 };
    const capabilities = { tools: {}, resources: { subscribe: true }, logging: {} };
    const offer = offering({ resources: [URI], capabilities });
    // Subscriptions are agreed to at once, so that who is subscribed can be told from outside.
    const lists = { ...offer.lists, 'resources/subscribe': {}, 'resources/unsubscribe': {} };
    const server = { ...offer, lists, tools: ['x'], sharing, limits, hasBridge: true };
    this.#servers = { a: server, b: server };
    this.#world = scriptGateway({ servers: this.#servers, startupWaitMs: 500 });
    this.clients = [this.#world.connect(), this.#world.connect()];
    this.clients[0].initialize('2025-11-25', { elicitation: {} });
    this.clients[1].initialize('2025-11-25', {});
  }

  async startAll(): Promise<void> {
    for (const id of this.#world.ids()) await this.start(id);
  }

  /** Which processes there may be: those that the clients were given, and that were not ended. */
  ids(): string[] {
    return this.#world.ids().filter((id) => !this.#world.server(id).isEnded);
  }

  /** Another configuration, in which this server is another one, or is missing for a moment. */
  async reload(key: string, isMissing: boolean): Promise<void> {
    if (isMissing) this.#world.change(Object.fromEntries(Object.entries(this.#servers).filter(([one]) => one !== key)));
    this.#world.change(this.#servers, isMissing ? [] : [key]);
    await this.settle();
    for (const id of this.ids()) if (!this.processes.some((process) => process.id === id)) await this.start(id);
  }

  async start(id: string): Promise<void> {
    this.crash(id);
    const server = this.#world.server(id);
    // One that is being ended does not come back.
    if (server.isEnded) return;
    const child = await server.start();
    this.processes.push({
      id,
      child,
      answered: new Set(),
      serverRequests: [],
      lateAnswers: 0,
      isCrashed: false,
      get isDead() {
        return this.isCrashed || server.isEnded;
      },
    });
  }

  crash(id: string): void {
    const alive = this.processes.find((process) => process.id === id && !process.isDead);
    if (alive === undefined) return;
    alive.isCrashed = true;
    this.#world.server(id).crash('backoff');
  }

  request(
    client: number,
    key: string,
    kind: 'call' | 'subscribe' | 'unsubscribe' | 'list',
    wantsProgress: boolean,
  ): void {
    this.#count += 1;
    const marker = `marker-${client}-${this.#count}.`;
    const id = `front-${client}-${this.#count}`;
    const progressToken = wantsProgress ? `token-${client}-${this.#count}` : undefined;
    const method = {
      call: 'tools/call',
      list: 'tools/list',
      subscribe: 'resources/subscribe',
      unsubscribe: 'resources/unsubscribe',
    }[kind];
    const _meta = progressToken === undefined ? {} : { _meta: { progressToken } };
    const params = {
      call: { name: `${key}__x`, arguments: { marker }, ..._meta },
      list: {},
      subscribe: { uri: URI },
      unsubscribe: { uri: URI },
    }[kind];
    this.asked.push({ client, id, method, marker, progressToken });
    this.clients[client]?.request(id, method, params);
  }

  cancel(which: number): void {
    const asked = this.asked[which % Math.max(1, this.asked.length)];
    if (asked === undefined || asked.cancelled !== undefined) return;
    asked.cancelled = this.answersTo(asked).length > 0 ? 'answered' : 'unanswered';
    this.clients[asked.client]?.cancel(asked.id);
  }

  /** The process answers one of its requests, dead or alive, whether anybody waits or not. */
  answer(process: Process | undefined, which: number): void {
    const open = process === undefined ? [] : requestsTo(process.child).filter(({ id }) => !process.answered.has(id));
    const request = open[which % Math.max(1, open.length)];
    if (process === undefined || request === undefined) return;
    process.answered.add(request.id);
    const asked = this.asked.find(({ marker }) => marker === request.params.arguments.marker);
    const isAwaited = asked !== undefined && asked.cancelled !== 'unanswered' && this.answersTo(asked).length === 0;
    if (!isAwaited && !process.isDead) process.lateAnswers += 1;
    const result = { content: [], marker: request.params?.arguments?.marker };
    process.child.say({ jsonrpc: '2.0', id: request.id, result });
  }

  progress(process: Process | undefined, which: number): void {
    const tokens =
      process === undefined
        ? []
        : requestsTo(process.child).flatMap(({ params }) => params?._meta?.progressToken ?? []);
    const progressToken = tokens[which % Math.max(1, tokens.length)];
    if (progressToken === undefined) return;
    // Sometimes no step forward.
    this.#progress += which % 3;
    process?.child.say({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: this.#progress },
    });
  }

  /** The process asks something because of a call that its client still waits for, or because of none. */
  ask(process: Process | undefined, which: number): void {
    if (process === undefined || process.isDead) return;
    this.#count += 1;
    const id = `server-request-${this.#count}`;
    const open = requestsTo(process.child).filter((request) => !process.answered.has(request.id));
    const awaited = this.asked.filter((asked) => {
      const isOpen = open.some(({ params }) => params.arguments.marker === asked.marker);
      return isOpen && asked.cancelled === undefined && this.answersTo(asked).length === 0;
    });
    const message = awaited[which % Math.max(1, awaited.length)]?.marker ?? 'of my own';
    process.serverRequests.push(id);
    process.child.say({ jsonrpc: '2.0', id, method: 'elicitation/create', params: { message, requestedSchema: {} } });
  }

  say(process: Process | undefined, method: string): void {
    process?.child.say({ jsonrpc: '2.0', method, params: { uri: URI, level: 'info', data: 'broadcast' } });
  }

  /** The clients answer everything that they were asked. */
  answerQuestions(): void {
    for (const [index, client] of this.clients.entries()) {
      for (const { id, method } of this.received(index)) {
        const key = `${index} ${id}`;
        if (method !== 'elicitation/create' || this.#answered.has(key)) continue;
        this.#answered.add(key);
        client.say({ jsonrpc: '2.0', id, result: { action: 'accept' } });
      }
    }
  }

  advance(ms: number): void {
    this.#world.clock.advance(ms);
  }

  async settle(): Promise<void> {
    await flush();
  }

  received(client: number): Message[] {
    return this.clients[client]?.received.messages ?? [];
  }

  answersTo({ client, id }: Asked): Message[] {
    return this.received(client).filter((message) => message.id === id && message.method === undefined);
  }

  leave(): void {
    for (const client of this.clients) client.session.close();
  }
}

/** The calls that reached a process: what wants an answer of the test's. */
export function requestsTo(child: ScriptedPeer): Message[] {
  return child.calls;
}
