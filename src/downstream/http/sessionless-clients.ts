import type { ServerResponse } from 'node:http';
import type { Answer } from '../../jsonrpc/message.js';
import { RPC_CODES } from '../../jsonrpc/rpc-error.js';
import type { Envelope, RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MODERN_CODES } from '../../mcp/revisions.js';
import type { Clock } from '../../timing/clock.js';
import { Deadlines, type Due } from '../../timing/deadlines.js';
import type { MirroredParam } from '../port.js';
import { EventConnection, OpenConnections, ResponseEvents, type Timed } from './event-stream.js';
import type { HttpClientSession } from './http-client.js';
import type { HttpLimits } from './limits.js';
import { PostStream } from './post-stream.js';
import { FULL, GONE, type Refusal, SHUTTING_DOWN, unknownEndpoint } from './refusal.js';

interface SessionlessClientsOptions {
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  /** Opens the session behind the requests; `undefined` if there is no such endpoint. */
  readonly open: (endpoint: string | undefined, principal: string, onGone: () => void) => HttpClientSession | undefined;
  readonly onCut: (unwrittenBytes: number) => void;
}

/** The clients without a session: one for each token and endpoint, until it has been idle for the time of a session. */
export class SessionlessClients {
  readonly #options: SessionlessClientsOptions;
  /** The least recently used first. */
  readonly #clients = new Map<string, SessionlessClient>();
  readonly #idle: Deadlines<SessionlessClient>;

  constructor(options: SessionlessClientsOptions) {
    this.#options = options;
    this.#idle = new Deadlines(options.clock, (client) => this.#checkIdle(client));
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Returns the client of this token at this endpoint, or the refusal if there is none. */
  of(principal: string, endpoint: string | undefined): SessionlessClient | Refusal {
    // Neither contains a line break.
    const key = `${principal}\n${endpoint ?? ''}`;
    const known = this.#clients.get(key);
    if (known === undefined) return this.#opened(key, principal, endpoint);
    known.touch();
    this.#clients.delete(key);
    this.#clients.set(key, known);
    return known;
  }

  close(): void {
    for (const key of [...this.#clients.keys()]) this.#end(key, SHUTTING_DOWN);
    this.#idle.close();
  }

  #opened(key: string, principal: string, endpoint: string | undefined): SessionlessClient | Refusal {
    const { limits, open } = this.#options;
    if (this.#clients.size >= limits.maxSessions && !this.#makeRoom()) return FULL;
    const session = open(endpoint, principal, () => this.#end(key, GONE));
    if (session === undefined) return unknownEndpoint(endpoint);
    const client = new SessionlessClient({ ...this.#options, client: session });
    this.#clients.set(key, client);
    this.#idle.watch(client);
    return client;
  }

  /** Ends the least recently used client without a request in flight; returns `false` if there is none. */
  #makeRoom(): boolean {
    for (const [key, client] of this.#clients) {
      if (client.isBusy) continue;
      this.#end(key, GONE);
      return true;
    }
    return false;
  }

  #end(key: string, refusal: Refusal): void {
    const client = this.#clients.get(key);
    if (client === undefined) return;
    this.#clients.delete(key);
    this.#idle.unwatch(client);
    client.close(refusal);
  }

  #checkIdle(client: SessionlessClient): void {
    if (client.isBusy) {
      client.touch();
      this.#idle.watch(client);
      return;
    }
    for (const [key, each] of this.#clients) if (each === client) this.#end(key, GONE);
  }
}

interface SessionlessClientOptions {
  readonly client: HttpClientSession;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  readonly onCut: (unwrittenBytes: number) => void;
}

/**
 * All programs that send requests without a session to one endpoint with one token. They may be unrelated, so each POST
 * stands alone, and only its response connects it to its program.
 */
export class SessionlessClient implements Due {
  dueAt = 0;
  readonly #options: SessionlessClientOptions;
  readonly #open: OpenConnections;
  readonly #posts = new Set<PostStream>();

  constructor(options: SessionlessClientOptions) {
    this.#options = options;
    this.#open = new OpenConnections(options.limits.maxUnreadBytes, options.onCut);
    this.touch();
  }

  /** Whether a request is in flight. */
  get isBusy(): boolean {
    return this.#posts.size > 0;
  }

  /** Restarts the idle time. */
  touch(): void {
    this.dueAt = this.#options.clock.now() + this.#options.limits.sessionIdleMs;
  }

  /** Parameters that this call must repeat in its headers. */
  mirroredParams(call: RequestEnvelope): readonly MirroredParam[] {
    return call.method === METHODS.callTool ? this.#options.client.mirroredParams(call) : [];
  }

  /** Serves a POST. Closing the response cancels its request. */
  post(message: Envelope, response: ServerResponse): void {
    const { client, clock, timers, limits } = this.#options;
    const post = new PostStream({
      response,
      clock,
      timers,
      streamAfterMs: limits.streamAfterMs,
      headers: {},
      openStream: () => new ResponseEvents(this.#connection(response)),
      statusOf,
      isAbandonedByClosing: true,
      onOver: () => {
        this.#posts.delete(post);
        this.touch();
      },
    });
    this.#posts.add(post);
    try {
      post.begin(client.receive(message, post));
    } catch (error) {
      post.endEarly({ status: 500, message: 'Internal error' });
      throw error;
    }
  }

  /** Refuses the requests without an event stream first. Event streams may get a last message while their requests end. */
  close(refusal: Refusal): void {
    for (const post of [...this.#posts]) if (!post.isStreaming) post.endEarly(refusal);
    this.#options.client.close();
    for (const post of [...this.#posts]) post.endEarly(refusal);
  }

  #connection(response: ServerResponse): EventConnection {
    const { clock, timers, limits } = this.#options;
    const { keepAliveMs } = limits;
    return new EventConnection(response, { clock, timers, keepAliveMs, open: this.#open, headers: {} });
  }
}

/** Statuses of errors in the form of a request. All other errors have 200, because some clients ignore the body otherwise. */
const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [RPC_CODES.methodNotFound, 404],
  ...Object.values(MODERN_CODES).map((code) => [code, 400] as const),
]);

function statusOf({ errorCode }: Answer): number {
  return errorCode === undefined ? 200 : (STATUS_OF_CODE.get(errorCode) ?? 200);
}
