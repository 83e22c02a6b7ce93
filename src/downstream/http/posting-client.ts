import type { ServerResponse } from 'node:http';
import type { Envelope, Rejection } from '../../mcp/envelope.js';
import type { Clock } from '../../timing/clock.js';
import { Deadlines, type Due } from '../../timing/deadlines.js';
import { EventConnection, OpenConnections, type Timed } from './event-stream.js';
import type { HttpClientSession } from './http-client.js';
import type { HttpLimits } from './limits.js';
import { PostStream, type PostStreamOptions, refuse, respond } from './post-stream.js';

export interface PostingClientOptions {
  readonly client: HttpClientSession;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  /** Reports that a stream was cut because its client does not read. */
  readonly onCut: (unwrittenBytes: number) => void;
}

/** Form in which the POSTs of a client are answered. */
type PostForm = Pick<PostStreamOptions, 'openStream' | 'statusOf' | 'isAbandonedByClosing' | 'onOver'>;

/** A client of the HTTP transport: its POSTs in flight and its open streams. */
export abstract class PostingClient implements Due {
  dueAt = 0;
  protected readonly client: HttpClientSession;
  protected readonly posts = new Set<PostStream>();
  readonly #options: PostingClientOptions;
  readonly #open: OpenConnections;

  constructor(options: PostingClientOptions) {
    this.#options = options;
    this.client = options.client;
    this.#open = new OpenConnections(options.limits.maxUnreadBytes, options.onCut);
    this.touch();
  }

  /** The name under which the client is found. */
  abstract readonly id: string;

  /** Whether a POST is in flight. */
  get isBusy(): boolean {
    return this.posts.size > 0;
  }

  /** Restarts the idle time. */
  touch(): void {
    this.dueAt = this.#options.clock.now() + this.#options.limits.sessionIdleMs;
  }

  /** Serves a POST. Returns whether its body was JSON-RPC; if not, the POST was answered with an error. */
  protected serve(
    message: Envelope | Rejection,
    response: ServerResponse,
    form: PostForm,
    headers: Readonly<Record<string, string>> = {},
  ): boolean {
    const { clock, timers, limits } = this.#options;
    let post: PostStream | undefined;
    const openReply = (answers: number, isBatch: boolean) => {
      const opened = new PostStream({
        ...form,
        ...{ response, answers, isBatch, clock, timers, headers, streamAfterMs: limits.streamAfterMs },
        passing: (passing) => this.client.passing(passing),
        onOver: () => {
          this.posts.delete(opened);
          form.onOver();
          this.touch();
        },
      });
      post = opened;
      this.posts.add(opened);
      return opened;
    };
    try {
      const refusal = this.client.receive(message, openReply);
      if (refusal !== undefined) respond(response, 400, headers, refusal);
      if (response.destroyed) post?.closed();
      return refusal === undefined;
    } catch (error) {
      post?.endEarly(FAILED);
      refuse(response, FAILED, headers);
      throw error;
    }
  }

  protected connection(response: ServerResponse, headers: Readonly<Record<string, string>> = {}): EventConnection {
    const { clock, timers, limits } = this.#options;
    const { keepAliveMs } = limits;
    return new EventConnection(response, { clock, timers, keepAliveMs, open: this.#open, headers });
  }
}

const FAILED = { status: 500, message: 'Internal error' };

/** Clients by their ids, the least recently added first. One timer ends idle ones. */
export class PostingClients<C extends PostingClient> {
  readonly #clients = new Map<string, C>();
  readonly #idle: Deadlines<C>;

  /** `onIdle` has to delete the client. */
  constructor(clock: Clock, onIdle: (client: C) => void) {
    this.#idle = new Deadlines(clock, (client) => {
      if (!client.isBusy) {
        onIdle(client);
        return;
      }
      client.touch();
      this.#idle.watch(client);
    });
  }

  get size(): number {
    return this.#clients.size;
  }

  all(): C[] {
    return [...this.#clients.values()];
  }

  get(id: string): C | undefined {
    return this.#clients.get(id);
  }

  add(client: C): void {
    this.#clients.set(client.id, client);
    this.#idle.watch(client);
  }

  /** Returns whether the client was there. */
  delete(client: C): boolean {
    this.#idle.unwatch(client);
    return this.#clients.delete(client.id);
  }

  /** Stops the timer. */
  close(): void {
    this.#idle.close();
  }
}
