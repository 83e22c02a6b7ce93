import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../timing/clock.js';
import type { Deadlines, Due } from '../../timing/deadlines.js';
import { EventConnection, type Timed } from './event-connection.js';
import type { EventId } from './event-frame.js';
import { EventStream } from './event-stream.js';
import type { HttpClientSession } from './http-session.js';
import type { HttpLimits } from './limits.js';
import { OpenConnections } from './open-connections.js';
import { PostStream } from './post-stream.js';
import type { Refusal } from './refusal.js';
import { ReplayRing } from './replay-ring.js';

export interface SessionOptions {
  readonly client: HttpClientSession;
  /** Whose session this is: the id alone lets nobody else in. */
  readonly principal: string;
  /** Where it was opened; it is unknown anywhere else. */
  readonly endpoint: string | undefined;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  readonly onCut: (unwrittenBytes: number) => void;
}

/** The stream of what no request asked for; the others are numbered from 1. */
const UNSOLICITED = 0;

/** Clients of older revisions take an event without data for a broken message. */
const PRIMED_REVISION = '2025-11-25';

/** One client's session: its requests in flight and its streams. */
export class Session implements Due {
  /** 256 random bits. */
  readonly id = randomBytes(32).toString('base64url');
  dueAt: number;
  readonly #options: SessionOptions;
  readonly #ring: ReplayRing;
  readonly #open: OpenConnections;
  readonly #unsolicited: EventStream;
  readonly #posts = new Set<PostStream>();
  /** Streams of requests that are not answered yet. */
  readonly #streams = new Map<number, EventStream>();
  #nextStream = UNSOLICITED + 1;
  #isClosed = false;

  constructor(options: SessionOptions) {
    const { client, limits, onCut } = options;
    this.#options = options;
    this.#ring = new ReplayRing({ maxEvents: limits.replayEvents, maxBytes: limits.replayBytes });
    this.#open = new OpenConnections(limits.maxUnwrittenBytes, onCut);
    this.#unsolicited = new EventStream(UNSOLICITED, this.#ring, () => {
      this.touch();
      if (!this.#isClosed) client.attach(undefined);
    });
    this.dueAt = 0;
    this.touch();
  }

  /** Whether the session answers to this id's bearer, here. */
  belongsTo(principal: string, endpoint: string | undefined): boolean {
    return principal === this.#options.principal && endpoint === this.#options.endpoint;
  }

  /** Something is asked or listened to, so the client is still there. */
  get isBusy(): boolean {
    return this.#posts.size > 0 || this.isListening;
  }

  /** Idle from now on. */
  touch(): void {
    this.dueAt = this.#options.clock.now() + this.#options.limits.sessionIdleMs;
  }

  /**
   * Serves a POST. Returns whether its body was JSON-RPC; if not, that has been answered already. `onOver` is called
   * when all answers are given, or given up.
   */
  post(
    body: Uint8Array,
    response: ServerResponse,
    headers: Readonly<Record<string, string>> = {},
    onOver: () => void = () => {},
  ): boolean {
    const { client, clock, timers, limits } = this.#options;
    let stream: EventStream | undefined;
    const post = new PostStream({
      response,
      clock,
      timers,
      streamAfterMs: limits.streamAfterMs,
      headers,
      openStream: () => {
        stream = this.#openStream(response, headers);
        return stream;
      },
      onOver: () => {
        this.#posts.delete(post);
        if (stream !== undefined) this.#streams.delete(stream.number);
        this.touch();
        onOver();
      },
    });
    this.#posts.add(post);
    try {
      const received = client.receive(body, post);
      post.begin(received);
      return !('refused' in received);
    } catch (error) {
      post.abandon({ status: 500, message: 'Internal error' });
      throw error;
    }
  }

  /** Whether a connection carries the unsolicited messages. */
  get isListening(): boolean {
    return this.#unsolicited.isConnected;
  }

  /** Carries the unsolicited messages from now on. */
  listen(response: ServerResponse): void {
    this.#unsolicited.begin(this.#connection(response), this.#isPrimed);
    this.#options.client.attach(this.#unsolicited);
  }

  /** Whether anything is left of the event's stream. */
  canResume({ stream }: EventId): boolean {
    return stream === UNSOLICITED || this.#streams.has(stream) || this.#ring.has(stream);
  }

  /** Takes a stream up again after the event seen last. */
  resume({ stream, seq }: EventId, response: ServerResponse): void {
    const connection = this.#connection(response);
    if (stream === UNSOLICITED) {
      this.#unsolicited.resume(connection, seq);
      this.#options.client.attach(this.#unsolicited);
      return;
    }
    const pending = this.#streams.get(stream);
    const resumed = pending ?? new EventStream(stream, this.#ring);
    resumed.resume(connection, seq);
    if (pending === undefined) resumed.end();
  }

  close(refusal: Refusal): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const post of [...this.#posts]) post.abandon(refusal);
    this.#unsolicited.end();
    this.#ring.clear();
    this.#options.client.close();
  }

  get #isPrimed(): boolean {
    return this.#options.client.revision === PRIMED_REVISION;
  }

  #openStream(response: ServerResponse, headers: Readonly<Record<string, string>>): EventStream {
    const stream = new EventStream(this.#nextStream, this.#ring);
    this.#nextStream += 1;
    this.#streams.set(stream.number, stream);
    stream.begin(this.#connection(response, headers), this.#isPrimed);
    return stream;
  }

  #connection(response: ServerResponse, headers: Readonly<Record<string, string>> = {}): EventConnection {
    const { clock, timers, limits } = this.#options;
    return new EventConnection(response, {
      clock,
      timers,
      keepAliveMs: limits.keepAliveMs,
      open: this.#open,
      headers,
    });
  }
}
