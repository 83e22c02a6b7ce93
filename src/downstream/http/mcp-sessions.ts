import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { EventSink } from '../../host/observe/events/events.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import { isObject, readText, type Span, stringAt } from '../../wire/json/json-text.js';
import { type Answer, RPC_CODES, unedited } from '../../wire/jsonrpc/message.js';
import {
  type Envelope,
  messagesOf,
  type Rejection,
  type RequestEnvelope,
  type ScanEnvelope,
} from '../../wire/mcp/envelope.js';
import { type LostRequest, lostAnswer } from '../../wire/mcp/lost-request.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { MirroredParam } from '../../wire/mcp/mirrored-params.js';
import { MODERN_CODES, negotiateRevision } from '../../wire/mcp/revisions.js';
import type { Clock } from '../../wire/timing/clock.js';
import { Deadlines, type Due } from '../../wire/timing/deadlines.js';
import type { Caller, HttpClientSession, HttpSessionPort } from './http-client.js';
import {
  FAILED,
  FULL,
  GONE,
  type HttpRefusal,
  INSTANCE_LOST,
  MOVED,
  NOT_RESUMED,
  SHUTTING_DOWN,
  UNKNOWN_SESSION,
  unknownEndpoint,
} from './http-refusal.js';
import type { HttpLimits } from './limits.js';
import { type PostForm, PostStream, refuse, respond } from './post-stream.js';
import type { EventId, SealedIds, SealedSession, SessionOwner } from './sealed-ids.js';
import { FollowedState, type SessionRecords, type SessionState } from './session-records.js';
import { EventConnection, EventStream, messageFrame, OpenConnections, ReplayRing, type Timed } from './sse-stream.js';

interface PostingClientOptions extends PostingParts {
  readonly client: HttpClientSession;
}

interface PostingParts {
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  /** Reports that a stream was cut because its client does not read. */
  readonly onCut: (unwrittenBytes: number) => void;
}

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

  abstract readonly id: string;
  abstract readonly sessionId: string | undefined;
  abstract readonly owner: Caller;

  /** Ends all streams of the client, and refuses its requests in flight. */
  abstract close(refusal: HttpRefusal): void;

  get isBusy(): boolean {
    return this.posts.size > 0;
  }

  get isBeginning(): boolean {
    return false;
  }

  /** Whether a request other than a subscription is in flight. */
  get hasCalls(): boolean {
    for (const { staysOpen } of this.posts) if (!staysOpen) return true;
    return false;
  }

  touch(): void {
    this.dueAt = this.#options.clock.now() + this.#options.limits.sessionIdleMs;
  }

  /** Serves a POST. Returns whether its body was JSON-RPC. If not, the POST was answered with an error. */
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
        response,
        body: message.bytes,
        answers,
        isBatch,
        clock,
        timers,
        headers,
        streamAfterMs: limits.streamAfterMs,
        staysOpen: message.kind === 'request' && message.method === METHODS.listen,
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

/** Clients by their ids, the least recently added first. One timer ends idle ones. */
abstract class PostingClients<C extends PostingClient> {
  protected readonly clients = new Map<string, C>();
  readonly #idle: Deadlines<C>;

  constructor(clock: Clock) {
    this.#idle = new Deadlines(clock, (client) => {
      if (!client.isBusy) {
        this.end(client, 'expired');
        return;
      }
      client.touch();
      this.#idle.watch(client);
    });
  }

  get size(): number {
    return this.clients.size;
  }

  get hasCalls(): boolean {
    for (const { hasCalls } of this.clients.values()) if (hasCalls) return true;
    return false;
  }

  get all(): Iterable<C> {
    return this.clients.values();
  }

  add(client: C): void {
    this.clients.set(client.id, client);
    this.#idle.watch(client);
  }

  /** Closes a client. Returns whether it was known. */
  end(client: C, reason: SessionEnd): boolean {
    this.#idle.unwatch(client);
    if (!this.clients.delete(client.id)) return false;
    client.close(reason === 'shutdown' ? SHUTTING_DOWN : reason === 'moved' ? MOVED : GONE);
    return true;
  }

  /** Ends the moved clients that are here, because another process serves them now. */
  endMoved(moved: ReadonlySet<PostingClient>): void {
    for (const client of [...this.clients.values()]) if (moved.has(client)) this.end(client, 'moved');
  }

  close(): void {
    for (const client of this.clients.values()) this.end(client, 'shutdown');
    this.#idle.close();
  }
}

type SessionEnd = 'deleted' | 'expired' | 'moved' | 'refused' | 'removed' | 'shutdown';

interface SessionParts {
  readonly scan: ScanEnvelope;
  readonly ids: SealedIds;
  /** The records of sessions that the gateways of a cluster share. Absent without a cluster. */
  readonly records?: SessionRecords | undefined;
}

interface SessionsOptions extends SessionParts {
  readonly core: HttpSessionPort;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  readonly events: EventSink;
}

/** Limit of the deleted sessions that are remembered, so that they are not resumed. */
const MAX_DELETED = 10_000;

/**
 * The sessions of this process. A session is resumed from its id if this process does not have it, because another process or an
 * earlier run has served it, or it was idle for long.
 */
export class Sessions extends PostingClients<Session> {
  readonly #options: SessionsOptions;
  /** Sessions that are being resumed, which no request can use yet. */
  readonly #resuming = new Map<string, Promise<Session | HttpRefusal>>();
  /** Hashes of the ids of the deleted sessions, the oldest first. */
  readonly #deleted = new NewestMap<string, true>(MAX_DELETED);

  constructor(options: SessionsOptions) {
    super(options.clock);
    this.#options = options;
  }

  get isFull(): boolean {
    return this.size >= this.#options.limits.maxSessions;
  }

  override get hasCalls(): boolean {
    return this.#resuming.size > 0 || super.hasCalls;
  }

  /** Opens a session for a client that sends this `initialize`. */
  open(initialize: RequestEnvelope, owner: SessionOwner): Session | HttpRefusal {
    const { ids, events } = this.#options;
    const session = this.#create(ids.sealSession(handshakeOf(initialize), owner), owner, false);
    if (session instanceof Session) events.emit({ kind: 'http.session-opened', sessions: this.size });
    return session;
  }

  /** The session, if it belongs to this owner. All others get `undefined`. */
  find(id: string, owner: SessionOwner): Session | undefined {
    const session = this.clients.get(id);
    if (session === undefined || !isSameOwner(session.owner, owner) || this.#resuming.has(id)) return undefined;
    session.touch();
    return session;
  }

  /** Whether the owner has a session with this id, which may have to be resumed. */
  canResume(id: string, owner: SessionOwner): boolean {
    return this.#unsealed(id, owner) !== undefined;
  }

  /** Resumes a session that this process does not have. Requests that come at the same time wait for the same session. */
  async resume(id: string, owner: SessionOwner): Promise<Session | HttpRefusal> {
    const sealed = this.#unsealed(id, owner);
    if (sealed === undefined) return UNKNOWN_SESSION;
    const begun = this.#resuming.get(id);
    if (begun !== undefined) return await begun;
    const resumed = this.#resume(id, owner, sealed.initialize);
    this.#resuming.set(id, resumed);
    try {
      return await resumed;
    } finally {
      this.#resuming.delete(id);
    }
  }

  /** Ends a session for good. Returns false if the owner has no such session. */
  async delete(id: string, owner: SessionOwner): Promise<boolean> {
    const known = this.clients.get(id);
    if (known === undefined ? !this.canResume(id, owner) : !isSameOwner(known.owner, owner)) return false;
    this.#noteDeleted(id);
    if (known !== undefined) this.end(known, 'deleted');
    await this.#options.records?.delete(id);
    return true;
  }

  /** Ends the GET streams. Their clients open the next ones, at another gateway if this one accepts no connections. */
  endListening(): void {
    for (const session of this.clients.values()) session.endListening();
  }

  override end(session: Session, reason: SessionEnd): boolean {
    const hasEnded = super.end(session, reason);
    if (hasEnded) this.#options.events.emit({ kind: 'http.session-ended', reason, sessions: this.size });
    return hasEnded;
  }

  #unsealed(id: string, owner: SessionOwner): SealedSession | undefined {
    const { ids, limits } = this.#options;
    const sealed = ids.openSession(id, owner);
    if (sealed === undefined || sealed.age >= limits.maxSessionAgeMs || this.#deleted.has(hashOf(id))) return undefined;
    return sealed;
  }

  #noteDeleted(id: string): void {
    this.#deleted.set(hashOf(id), true);
  }

  async #resume(id: string, owner: SessionOwner, initialize: Uint8Array): Promise<Session | HttpRefusal> {
    const state = await this.#options.records?.read(id);
    if (state === 'deleted') this.#noteDeleted(id);
    // The session may also have been deleted here in the meantime.
    if (state === 'deleted' || this.#deleted.has(hashOf(id))) return UNKNOWN_SESSION;
    const session = this.#create(id, owner, true);
    if (!(session instanceof Session)) return session;
    let isRestored = false;
    try {
      isRestored = await session.restore(initialize, state);
    } finally {
      if (!isRestored) this.end(session, 'refused');
    }
    // The session may have been deleted, or its server removed, during the handshake.
    if (this.clients.get(id) !== session) return this.#deleted.has(hashOf(id)) ? UNKNOWN_SESSION : NOT_RESUMED;
    this.#options.events.emit({ kind: 'http.session-resumed', sessions: this.size });
    return session;
  }

  #create(id: string, owner: SessionOwner, isResumed: boolean): Session | HttpRefusal {
    const { core, events } = this.#options;
    if (this.isFull && !this.#makeRoomFor(owner.principal)) return FULL;
    const { endpoint } = owner;
    const client = core.openSession(endpoint, owner, () => this.end(session, 'removed'), isResumed);
    if (client === undefined) return unknownEndpoint(endpoint);
    const onCut = (unwrittenBytes: number) => events.emit({ kind: 'http.stream-cut', unwrittenBytes });
    const session: Session = new Session({ ...this.#options, client, id, owner, onCut });
    this.add(session);
    return session;
  }

  /**
   * Ends a session of the principal with the most sessions, if it keeps more than `principal` has with the new session. Takes the
   * session without a call in flight that was idle longest, because it can be resumed. Returns `false` if there is none.
   */
  #makeRoomFor(principal: string): boolean {
    const byPrincipal = new Map<string, Session[]>([[principal, []]]);
    for (const session of this.clients.values()) {
      const { principal: owner } = session.owner;
      const own = byPrincipal.get(owner);
      if (own === undefined) byPrincipal.set(owner, [session]);
      else own.push(session);
    }
    const [most = []] = [...byPrincipal.values()].sort((one, other) => other.length - one.length);
    if (most.length <= (byPrincipal.get(principal)?.length ?? 0) + 1) return false;
    const [idlest] = most.filter(({ hasCalls }) => !hasCalls).sort((one, other) => one.dueAt - other.dueAt);
    return idlest !== undefined && this.end(idlest, 'expired');
  }
}

function isSameOwner(one: SessionOwner, other: SessionOwner): boolean {
  return one.principal === other.principal && one.endpoint === other.endpoint;
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url');
}

/** The params of `initialize` that the gateway reads, as JSON, with the revision that it offers to the client. */
function handshakeOf({ bytes, tokens }: RequestEnvelope): Uint8Array {
  const { protocolVersion, capabilities, clientInfo } = tokens;
  const revision = negotiateRevision(stringAt(bytes, protocolVersion));
  const object = (span: Span | undefined) =>
    span !== undefined && isObject(bytes, span) ? readText(bytes, span) : '{}';
  return Buffer.from(
    `{"protocolVersion":"${revision}","capabilities":${object(capabilities)},"clientInfo":${object(clientInfo)}}`,
  );
}

interface SessionOptions extends PostingClientOptions, SessionParts {
  readonly id: string;
  /** The owner of the session. The session id alone gives no access. */
  readonly owner: SessionOwner;
}

/** Part of the idle time of a session after which the use of the session writes its record again. */
const RECORD_AGAIN = 0.1;

/** Number of the stream of unsolicited messages. Streams of POSTs have numbers from 1. */
const UNSOLICITED = 0;

/** Oldest revision whose clients accept an event without data. Older ones treat it as a broken message. */
const PRIMED_REVISION = '2025-11-25';

/** One client's HTTP session: its POSTs in flight and its event streams. */
export class Session extends PostingClient {
  readonly id: string;
  readonly owner: SessionOwner;
  readonly #options: SessionOptions;
  readonly #ids: SealedIds;
  readonly #ring: ReplayRing;
  readonly #unsolicited: EventStream;
  /** Streams whose requests were not answered yet. */
  readonly #streams = new Map<number, EventStream>();
  #nextStream = UNSOLICITED + 1;
  #state = new FollowedState();
  #recordedAt = 0;
  #isRestoring = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    super(options);
    this.#options = options;
    const { client, limits, id, ids, owner } = options;
    this.id = id;
    this.owner = owner;
    this.#ids = ids;
    this.#ring = new ReplayRing({ maxEvents: limits.replayEvents, maxBytes: limits.maxReplayBytes });
    this.#unsolicited = new EventStream(UNSOLICITED, this.#ring, ids.instance, () => {
      this.touch();
      if (!this.#isClosed) client.attach(undefined);
    });
  }

  override get isBusy(): boolean {
    return super.isBusy || this.isListening;
  }

  override get hasCalls(): boolean {
    return this.#isRestoring || super.hasCalls;
  }

  get sessionId(): string {
    return this.id;
  }

  /** Repeats the handshake of the client, its log level and its subscriptions. Resolves with whether the handshake succeeded. */
  async restore(initialize: Uint8Array, state?: SessionState): Promise<boolean> {
    this.#state = new FollowedState(state);
    this.#isRestoring = true;
    try {
      return await this.client.restore(initialize, state);
    } finally {
      this.#isRestoring = false;
    }
  }

  /** A session with a state writes its record again from time to time, so that the record lives as long as the session. */
  override touch(): void {
    super.touch();
    // The constructor of the base class calls this, too.
    if (#state in this && !this.#state.isEmpty) this.#record(this.#options.limits.sessionIdleMs * RECORD_AGAIN);
  }

  /** Writes the record of the session, unless it was written less than `ms` ago. */
  #record(ms = 0): void {
    const { clock, records } = this.#options;
    if (records === undefined || clock.now() - this.#recordedAt < ms) return;
    this.#recordedAt = clock.now();
    records.write(this.id, this.#state);
  }

  /** Serves a POST. Returns whether its body was JSON-RPC. `onOver` is called after all answers were sent or withdrawn. */
  post(
    message: Envelope | Rejection,
    response: ServerResponse,
    headers: Readonly<Record<string, string>> = {},
    onOver: () => void = () => {},
  ): boolean {
    let stream: EventStream | undefined;
    const openStream = () => {
      const number = this.#nextStream;
      this.#nextStream += 1;
      stream = new EventStream(number, this.#ring, this.#ids.sealStream(this.id, number, requestsOf(message)));
      this.#streams.set(number, stream);
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
    const isServed = this.serve(message, response, form, headers);
    if (isServed && this.#options.records !== undefined) this.#note(message);
    return isServed;
  }

  #note(message: Envelope | Rejection): void {
    const messages = message.kind === 'rejected' ? messagesOf(message, this.#options.scan) : [message];
    let hasChanged = false;
    for (const each of messages) hasChanged = this.#state.note(each) || hasChanged;
    if (hasChanged) this.#record();
  }

  get isInitialized(): boolean {
    return this.client.revision !== undefined;
  }

  override get isBeginning(): boolean {
    return !this.isInitialized;
  }

  get isListening(): boolean {
    return this.#unsolicited.isConnected;
  }

  listen(response: ServerResponse): void {
    this.#unsolicited.begin(this.connection(response), this.#isPrimed);
    this.client.attach(this.#unsolicited);
  }

  endListening(): void {
    this.#unsolicited.endConnection();
  }

  /** Whether the stream of the event still exists or has events left. */
  canResume({ instance, stream }: EventId): boolean {
    const isOwn = instance === this.#ids.instance;
    return stream === UNSOLICITED || (isOwn && (this.#streams.has(stream) || this.#ring.has(stream)));
  }

  resume({ instance, stream, seq }: EventId, response: ServerResponse): void {
    const connection = this.connection(response);
    if (stream === UNSOLICITED) {
      // The client has seen no event of this process if the last one was of another.
      this.#unsolicited.resume(connection, instance === this.#ids.instance ? seq : -1);
      this.client.attach(this.#unsolicited);
      return;
    }
    const pending = this.#streams.get(stream);
    const resumed = pending ?? new EventStream(stream, this.#ring);
    resumed.resume(connection, seq);
    if (pending === undefined) resumed.end();
  }

  /** Answers the requests of another process's stream as lost, and ends the stream. */
  endLost(requests: readonly LostRequest[], response: ServerResponse): void {
    const connection = this.connection(response);
    for (const request of requests) {
      const answer = unedited(Buffer.from(lostAnswer(request, INSTANCE_LOST)));
      this.client.passing(answer);
      connection.write(messageFrame(undefined, answer));
    }
    connection.end();
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

/** The request whose answer a stream carries. A batch has none, because its clients do not resume streams. */
function requestsOf(message: Envelope | Rejection): readonly LostRequest[] {
  if (message.kind !== 'request') return [];
  const { bytes, id, method, tokens } = message;
  return [{ id: readText(bytes, id), method, ...(tokens.task !== undefined && { isTask: true }) }];
}

interface SessionlessClientsOptions extends PostingParts {
  readonly open: HttpSessionPort['openSession'];
}

/** The clients without a session, one for each principal and endpoint. An idle one ends after the same time as a session. */
export class SessionlessClients extends PostingClients<SessionlessClient> {
  readonly #options: SessionlessClientsOptions;

  constructor(options: SessionlessClientsOptions) {
    super(options.clock);
    this.#options = options;
  }

  /** Returns the client of this caller at this endpoint, or the refusal if there is none. */
  of(caller: Caller, endpoint: string | undefined): SessionlessClient | HttpRefusal {
    // The separator is unambiguous, because neither part contains a line break.
    const id = `${caller.principal}\n${endpoint ?? ''}`;
    const known = this.clients.get(id);
    if (known === undefined) return this.#opened(id, caller, endpoint);
    // Such a client has no handshake that could begin anew, so changed variables take effect between two requests.
    if (known.isOutdated && !known.isBusy) {
      this.end(known, 'expired');
      return this.#opened(id, caller, endpoint);
    }
    // Adds the client again at the end, so that the least recently used one is the first.
    this.clients.delete(id);
    this.clients.set(id, known);
    known.touch();
    return known;
  }

  #opened(id: string, caller: Caller, endpoint: string | undefined): SessionlessClient | HttpRefusal {
    const { limits, open } = this.#options;
    if (this.size >= limits.maxSessions && !this.#makeRoom()) return FULL;
    const session = open(endpoint, caller, () => this.end(client, 'removed'));
    if (session === undefined) return unknownEndpoint(endpoint);
    const client = new SessionlessClient(id, caller, { ...this.#options, client: session });
    this.add(client);
    return client;
  }

  /** Ends the least recently used client without a request in flight. Returns `false` if there is none. */
  #makeRoom(): boolean {
    const idle = [...this.clients.values()].find(({ isBusy }) => !isBusy);
    return idle !== undefined && this.end(idle, 'expired');
  }
}

/**
 * All programs that send requests without a session to one endpoint with one token. The programs may be unrelated, so
 * only the response of a POST reaches the program that sent it.
 */
export class SessionlessClient extends PostingClient {
  readonly id: string;
  readonly owner: Caller;
  readonly sessionId = undefined;

  constructor(id: string, caller: Caller, options: PostingClientOptions) {
    super(options);
    this.id = id;
    this.owner = caller;
  }

  get isOutdated(): boolean {
    return this.client.isOutdated;
  }

  mirroredParams(call: RequestEnvelope): readonly MirroredParam[] {
    return call.method === METHODS.callTool ? this.client.mirroredParams(call) : [];
  }

  /** Serves a POST. Closing the response cancels its request. */
  post(message: Envelope, response: ServerResponse): void {
    const openStream = () => {
      const stream = new EventStream();
      stream.begin(this.connection(response), false);
      return stream;
    };
    this.serve(message, response, { openStream, statusOf, isAbandonedByClosing: true, onOver: () => {} });
  }

  /**
   * Refuses first the requests without an event stream, and, if the client moves, all but subscriptions. The other streams may
   * get a last message while the client closes.
   */
  close(refusal: HttpRefusal): void {
    const isFirst = (post: PostStream) => !post.isStreaming || (refusal === MOVED && !post.staysOpen);
    for (const post of [...this.posts]) if (isFirst(post)) post.endEarly(refusal);
    this.client.close();
    for (const post of [...this.posts]) post.endEarly(refusal);
  }
}

/** HTTP statuses of errors about the form of a request. Other errors have 200, because some clients read the body only then. */
const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [RPC_CODES.methodNotFound, 404],
  ...Object.values(MODERN_CODES).map((code) => [code, 400] as const),
]);

function statusOf({ errorCode }: Answer): number {
  return errorCode === undefined ? 200 : (STATUS_OF_CODE.get(errorCode) ?? 200);
}
