import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Envelope, Rejection } from '../../mcp/envelope.js';
import type { Clock } from '../../timing/clock.js';
import { type EventId, EventStream, ReplayRing } from './event-stream.js';
import { PostingClient, type PostingClientOptions, PostingClients } from './posting-client.js';
import { GONE, type HttpRefusal, SHUTTING_DOWN } from './refusal.js';

type SessionEnd = 'deleted' | 'expired' | 'refused' | 'removed' | 'shutdown';

interface SessionsOptions {
  readonly clock: Clock;
  readonly maxSessions: number;
  readonly onEnded: (reason: SessionEnd, left: number) => void;
}

/** The sessions by their ids. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions: PostingClients<Session>;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#sessions = new PostingClients(options.clock, (session) => this.end(session, 'expired'));
  }

  get size(): number {
    return this.#sessions.size;
  }

  get isFull(): boolean {
    return this.size >= this.#options.maxSessions;
  }

  add(session: Session): void {
    this.#sessions.add(session);
  }

  /** The session, if it belongs to this principal and endpoint. For others it does not exist. */
  find(id: string, principal: string, endpoint: string | undefined): Session | undefined {
    const session = this.#sessions.get(id);
    if (session?.principal !== principal || session.endpoint !== endpoint) return undefined;
    session.touch();
    return session;
  }

  end(session: Session, reason: SessionEnd): void {
    if (!this.#sessions.delete(session)) return;
    session.close(reason === 'shutdown' ? SHUTTING_DOWN : GONE);
    this.#options.onEnded(reason, this.size);
  }

  close(): void {
    for (const session of this.#sessions.all()) this.end(session, 'shutdown');
    this.#sessions.close();
  }
}

interface SessionOptions extends PostingClientOptions {
  /** The owner of the session. The session id alone gives no access. */
  readonly principal: string;
  /** The endpoint that opened the session. Other endpoints do not know it. */
  readonly endpoint: string | undefined;
}

/** The stream of unsolicited messages. The streams of POSTs are numbered from 1. */
const UNSOLICITED = 0;

/** Clients of older revisions treat an event without data as a broken message. */
const PRIMED_REVISION = '2025-11-25';

/** One client's HTTP session: its POSTs in flight and its event streams. */
export class Session extends PostingClient {
  /** 256 random bits. */
  readonly id = randomBytes(32).toString('base64url');
  readonly principal: string;
  readonly endpoint: string | undefined;
  readonly #ring: ReplayRing;
  readonly #unsolicited: EventStream;
  /** Streams of requests that are not answered yet. */
  readonly #streams = new Map<number, EventStream>();
  #nextStream = UNSOLICITED + 1;
  #isClosed = false;

  constructor(options: SessionOptions) {
    super(options);
    const { client, limits, principal, endpoint } = options;
    this.principal = principal;
    this.endpoint = endpoint;
    this.#ring = new ReplayRing({ maxEvents: limits.replayEvents, maxBytes: limits.maxReplayBytes });
    this.#unsolicited = new EventStream(UNSOLICITED, this.#ring, () => {
      this.touch();
      if (!this.#isClosed) client.attach(undefined);
    });
  }

  /** Whether a POST is in flight or a GET stream is open. */
  override get isBusy(): boolean {
    return super.isBusy || this.isListening;
  }

  /** Serves a POST. Returns whether its body was JSON-RPC. `onOver` is called when all answers were sent or withdrawn. */
  post(
    message: Envelope | Rejection,
    response: ServerResponse,
    headers: Readonly<Record<string, string>> = {},
    onOver: () => void = () => {},
  ): boolean {
    let stream: EventStream | undefined;
    const openStream = () => {
      stream = new EventStream(this.#nextStream, this.#ring);
      this.#nextStream += 1;
      this.#streams.set(stream.number, stream);
      stream.begin(this.connection(response, headers), this.#isPrimed);
      return stream;
    };
    const form = {
      openStream,
      onOver: () => {
        if (stream !== undefined) this.#streams.delete(stream.number);
        onOver();
      },
    };
    return this.serve(message, response, form, headers);
  }

  /** Whether the client has a GET stream open. */
  get isListening(): boolean {
    return this.#unsolicited.isConnected;
  }

  /** Starts the GET stream on this response. */
  listen(response: ServerResponse): void {
    this.#unsolicited.begin(this.connection(response), this.#isPrimed);
    this.client.attach(this.#unsolicited);
  }

  /** Whether the stream of the event still exists or has events left. */
  canResume({ stream }: EventId): boolean {
    return stream === UNSOLICITED || this.#streams.has(stream) || this.#ring.has(stream);
  }

  /** Continues a stream after the event that the client saw last. */
  resume({ stream, seq }: EventId, response: ServerResponse): void {
    const connection = this.connection(response);
    if (stream === UNSOLICITED) {
      this.#unsolicited.resume(connection, seq);
      this.client.attach(this.#unsolicited);
      return;
    }
    const pending = this.#streams.get(stream);
    const resumed = pending ?? new EventStream(stream, this.#ring);
    resumed.resume(connection, seq);
    if (pending === undefined) resumed.end();
  }

  close(refusal: HttpRefusal): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const post of [...this.posts]) post.endEarly(refusal);
    this.#unsolicited.end();
    this.#ring.clear();
    this.client.close();
  }

  get #isPrimed(): boolean {
    return this.client.revision === PRIMED_REVISION;
  }
}
