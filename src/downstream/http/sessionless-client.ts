import type { ServerResponse } from 'node:http';
import type { Answer } from '../../jsonrpc/message.js';
import { RPC_CODES } from '../../jsonrpc/rpc-error.js';
import type { Envelope, RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MODERN_CODES } from '../../mcp/revisions.js';
import type { Clock } from '../../timing/clock.js';
import type { Deadlines, Due } from '../../timing/deadlines.js';
import type { MirroredParam } from '../port.js';
import { EventConnection, OpenConnections, type Timed } from './event-connection.js';
import { ResponseEvents } from './event-stream.js';
import type { HttpClientSession } from './http-session.js';
import type { HttpLimits } from './limits.js';
import { PostStream } from './post-stream.js';
import type { Refusal } from './refusal.js';

export interface SessionlessClientOptions {
  readonly client: HttpClientSession;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  readonly onCut: (unwrittenBytes: number) => void;
}

/**
 * Everybody who sends requests without a session to one endpoint with one token. They may be unrelated programs: each
 * POST stands alone, and its response is all that connects it to a client.
 */
export class SessionlessClient implements Due {
  dueAt = 0;
  readonly #options: SessionlessClientOptions;
  readonly #open: OpenConnections;
  readonly #posts = new Set<PostStream>();

  constructor(options: SessionlessClientOptions) {
    this.#options = options;
    this.#open = new OpenConnections(options.limits.maxUnwrittenBytes, options.onCut);
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

  /** What this call must repeat in its headers. */
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

  /** Refuses what nothing was sent for. Streams may get a last message while their requests end. */
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

/** Other errors concern what the client asked for, and not how. Some clients ignore the body of such a status. */
const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [RPC_CODES.methodNotFound, 404],
  ...Object.values(MODERN_CODES).map((code) => [code, 400] as const),
]);

function statusOf({ errorCode }: Answer): number {
  return errorCode === undefined ? 200 : (STATUS_OF_CODE.get(errorCode) ?? 200);
}
