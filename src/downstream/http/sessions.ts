import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Envelope, Rejection } from '../../mcp/envelope.js';
import type { Clock } from '../../timing/clock.js';
import { Deadlines, type Due } from '../../timing/deadlines.js';
import { EventConnection, type EventId, EventStream, OpenConnections, ReplayRing, type Timed } from './event-stream.js';
import type { HttpClientSession } from './http-client.js';
import type { HttpLimits } from './limits.js';
import { PostStream } from './post-stream.js';
import { GONE, type Refusal, SHUTTING_DOWN } from './refusal.js';

type SessionEnd = 'deleted' | 'expired' | 'refused' | 'removed' | 'shutdown';

interface SessionsOptions {
  readonly clock: Clock;
  readonly maxSessions: number;
  readonly onEnded: (reason: SessionEnd, left: number) => void;
}

/** The sessions by their ids. One timer ends idle ones. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #idle: Deadlines<Session>;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#idle = new Deadlines(options.clock, (session) => this.#checkIdle(session));
  }

  get size(): number {
    return this.#sessions.size;
  }

  get isFull(): boolean {
    return this.#sessions.size >= this.#options.maxSessions;
  }

  add(session: Session): void {
    this.#sessions.set(session.id, session);
    this.#idle.watch(session);
  }

  /** The session, if it belongs to this principal and endpoint. For others it does not exist. */
  find(id: string, principal: string, endpoint: string | undefined): Session | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || !session.belongsTo(principal, endpoint)) return undefined;
    session.touch();
    return session;
  }

  end(session: Session, reason: SessionEnd): void {
    if (!this.#sessions.delete(session.id)) return;
    this.#idle.unwatch(session);
    session.close(reason === 'shutdown' ? SHUTTING_DOWN : GONE);
    this.#options.onEnded(reason, this.#sessions.size);
  }

  close(): void {
    for (const session of [...this.#sessions.values()]) this.end(session, 'shutdown');
    this.#idle.close();
  }

  #checkIdle(session: Session): void {
    if (!session.isBusy) {
      this.end(session, 'expired');
      return;
    }
    session.touch();
    this.#idle.watch(session);
  }
}

interface SessionOptions {
  readonly client: HttpClientSession;
  /** The owner of the session. The session id alone gives no access. */
  readonly principal: string;
  /** The endpoint that opened the session. Other endpoints do not know it. */
  readonly endpoint: string | undefined;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  readonly onCut: (unwrittenBytes: number) => void;
}

/** The stream of unsolicited messages. The streams of POSTs are numbered from 1. */
const UNSOLICITED = 0;

/** Clients of older revisions treat an event without data as a broken message. */
const PRIMED_REVISION = '2025-11-25';

/** One client's HTTP session: its POSTs in flight and its event streams. */
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
    this.#ring = new ReplayRing({ maxEvents: limits.replayEvents, maxBytes: limits.maxReplayBytes });
    this.#open = new OpenConnections(limits.maxUnreadBytes, onCut);
    this.#unsolicited = new EventStream(UNSOLICITED, this.#ring, () => {
      this.touch();
      if (!this.#isClosed) client.attach(undefined);
    });
    this.dueAt = 0;
    this.touch();
  }

  /** Whether the session belongs to this principal and was opened at this endpoint. */
  belongsTo(principal: string, endpoint: string | undefined): boolean {
    return principal === this.#options.principal && endpoint === this.#options.endpoint;
  }

  /** Whether a POST is in flight or a GET stream is open. */
  get isBusy(): boolean {
    return this.#posts.size > 0 || this.isListening;
  }

  /** Restarts the idle time. */
  touch(): void {
    this.dueAt = this.#options.clock.now() + this.#options.limits.sessionIdleMs;
  }

  /**
   * Serves a POST. Returns whether its body was JSON-RPC; if not, the POST was answered with an error. `onOver` is
   * called when all answers were sent or withdrawn.
   */
  post(
    message: Envelope | Rejection,
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
      const received = client.receive(message, post);
      post.begin(received);
      return !('refused' in received);
    } catch (error) {
      post.endEarly({ status: 500, message: 'Internal error' });
      throw error;
    }
  }

  /** Whether the client has a GET stream open. */
  get isListening(): boolean {
    return this.#unsolicited.isConnected;
  }

  /** Starts the GET stream on this response. */
  listen(response: ServerResponse): void {
    this.#unsolicited.begin(this.#connection(response), this.#isPrimed);
    this.#options.client.attach(this.#unsolicited);
  }

  /** Whether the stream of the event still exists or has events left. */
  canResume({ stream }: EventId): boolean {
    return stream === UNSOLICITED || this.#streams.has(stream) || this.#ring.has(stream);
  }

  /** Continues a stream after the event that the client saw last. */
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
    for (const post of [...this.#posts]) post.endEarly(refusal);
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
