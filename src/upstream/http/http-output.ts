import type { Agent } from 'node:http';
import type { HttpAnswer } from '../../host/http/decode.js';
import { sendRequest } from '../../host/http/send-request.js';
import { wordsOfBody } from '../../host/http/words.js';
import { readText, valuesAt } from '../../wire/json/json-text.js';
import { parseJson } from '../../wire/json/json-value.js';
import { type SplicedMessage, splice } from '../../wire/json/splice.js';
import { RPC_CODES, type TrackedSink } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { CloseReason, EndedBecause } from '../../wire/mcp/outcome.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import type { Clock } from '../../wire/timing/clock.js';
import { asClause, type Blocked, BlockedError, isBlocked, type RemoteAccess } from './access.js';
import { GetStream } from './get-stream.js';
import {
  type ConnectionLoss,
  EVENT_STREAM,
  type HttpSession,
  mediaTypeOf,
  PausedError,
  readAnswerBody,
  type SessionOptions,
  type SessionRequest,
} from './http-session.js';
import { Post } from './post.js';
import { metadataHeaders } from './request-headers.js';

/** Limit of the redirects and new authorizations of one request. */
const MAX_STEPS = 4;
const MAX_COOKIES = 20;
/** Limit of the messages that are kept for a session that replaces this one. */
const MAX_STATE = 1_000;
/** Time for requests in flight to end after the session or the network is lost, in milliseconds. */
const GRACE_MS = 1_000;
/** Longest wait for the answer to the GET of the stream, in milliseconds. */
const LISTEN_MS = 500;
/** Time limit for the DELETE that ends a session, in milliseconds. */
const DELETE_MS = 2_000;
/** Longest pause for which a request waits if the server wants one, in milliseconds. */
const MAX_PAUSE_MS = 10_000;
/** Longest time for which other messages wait until the server has taken `initialized`, in milliseconds. */
const OPENING_MS = 1_000;
/** Time limits for a request that finds out about a session, and for one that opens another, in milliseconds. */
const PING_MS = 2_000;
const SESSION_MS = 10_000;

const ACCEPT = `application/json, ${EVENT_STREAM}`;
const PING = Buffer.from('{"jsonrpc":"2.0","id":0,"method":"ping"}');
const INITIALIZED = Buffer.from(`{"jsonrpc":"2.0","method":"${METHODS.initialized}"}`);

/** Limit of the event stream that is read for the answer to a request of the session itself, in characters. */
const MAX_EVENT = 1024 * 1024;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);

export interface HttpOutputOptions extends SessionOptions {
  readonly url: URL;
  readonly agent: Agent;
  readonly access: RemoteAccess;
  readonly clock: Clock;
}

/**
 * Sends each message of a bridge in a POST of its own, and hands the answers to the bridge. Speaks Streamable HTTP (page
 * basic/transports of the revisions from 2025-03-26 on), and HTTP with SSE (2024-11-05), where all answers come on one stream.
 */
export class HttpOutput implements TrackedSink, HttpSession {
  readonly options: HttpOutputOptions;
  #url: URL;
  /** URL to which a server of revision 2024-11-05 wants its messages sent. */
  #endpoint: URL | undefined;
  #sessionId: string | undefined;
  /** The message that opened the session, and those that a new session has to get. */
  #handshake: Uint8Array | undefined;
  readonly #state = new Map<string, Uint8Array>();
  #renewal: Promise<boolean> | undefined;
  #revision: string | undefined;
  readonly #cookies = new Map<string, string>();
  /** Requests in flight by their ids, and the other messages. */
  readonly #requests = new Map<number, Post>();
  readonly #others = new Set<Post>();
  /** Pends while the server takes `initialized`. Other messages wait, because some servers want it first. */
  #opening: Promise<void> | undefined;
  #stream: GetStream | undefined;
  #pausedUntil = 0;
  #sentBytes = 0;
  #unwrittenBytes = 0;
  #loss: (() => void) | undefined;
  #isClosed = false;

  constructor(options: HttpOutputOptions) {
    this.options = options;
    this.#url = options.url;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  get unwrittenBytes(): number {
    return this.#unwrittenBytes;
  }

  /** Whether new messages fail instead of being sent. */
  get isOver(): boolean {
    return this.#isClosed || this.#loss !== undefined;
  }

  /** Whether answers come on one stream for all requests. */
  get hasOneStream(): boolean {
    return this.#endpoint !== undefined;
  }

  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  get isListening(): boolean {
    return this.#stream?.isOpen === true;
  }

  get #isModern(): boolean {
    return this.#revision !== undefined && isModernRevision(this.#revision);
  }

  /** Takes the revision that the handshake agreed on. From now on, every request names it in a header. */
  negotiated(revision: string): void {
    this.#revision = revision;
  }

  send(message: SplicedMessage): void {
    const body = splice(message);
    message.lease?.release();
    this.#sentBytes += body.length;
    const envelope = this.options.scan(body);
    if (envelope.kind === 'rejected') throw new Error(`A message to a server is not valid: ${envelope.reason}`);
    if (envelope.kind === 'notification' && this.#endsRequest(envelope)) return;
    const post = new Post(this, envelope, body);
    if (post.id === undefined) this.#others.add(post);
    else this.#requests.set(post.id, post);
    this.#unwrittenBytes += body.length;
    if (envelope.kind === 'request') this.#keepState(envelope, body);
    const done = this.#opening === undefined ? post.run() : this.#opening.then(() => post.run());
    if (envelope.kind === 'notification' && envelope.method === METHODS.initialized) this.#openWhen(done);
    void done.then(() => {
      this.#unwrittenBytes -= body.length;
      this.#others.delete(post);
      if (post.id !== undefined) this.#requests.delete(post.id);
      if (this.#requests.size === 0) this.#loss?.();
    });
  }

  /** Lets other messages wait for `initialized` and the stream, but not for a server that never answers a notification. */
  #openWhen(taken: Promise<void>): void {
    const opening = new Promise<void>((resolve) => {
      const cancel = this.options.clock.schedule(OPENING_MS, resolve);
      void taken.then(cancel).then(resolve);
    }).then(() => this.#listen());
    this.#opening = opening;
    void opening.then(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
  }

  /** Keeps the log level and the subscriptions of this session, because a session that replaces it has to get them again. */
  #keepState({ method, bytes, params }: RequestEnvelope, body: Uint8Array): void {
    if (method === METHODS.setLevel) this.#state.set(method, body);
    if (method !== METHODS.subscribe && method !== METHODS.unsubscribe) return;
    const [uri] = params === undefined ? [] : valuesAt(bytes, params, ['uri']);
    const key = uri === undefined ? '' : readText(bytes, uri);
    if (method === METHODS.unsubscribe) this.#state.delete(key);
    else if (this.#state.size < MAX_STATE) this.#state.set(key, body);
  }

  /** Whether an error that the server sent as an answer is held back, because it may mean that the session is gone. */
  doubts(error: ResponseEnvelope, request: number | undefined): boolean {
    const isLate = request === undefined || this.hasOneStream;
    return !isLate && this.#requests.get(request)?.doubts(error) === true;
  }

  /**
   * Ends the answer of a request that is cancelled. Returns whether no notification has to be sent, because from revision
   * 2026-07-28 on the end of the answer is the cancellation, and an unsent request needs none.
   */
  #endsRequest({ method, bytes, tokens }: NotificationEnvelope): boolean {
    if (method !== METHODS.cancelled || tokens.requestId === undefined) return false;
    const post = this.#requests.get(Number(readText(bytes, tokens.requestId)));
    const isUnsent = post?.isSent === false;
    post?.end();
    return isUnsent || this.#isModern || post?.isModern === true;
  }

  /** Fails all requests in flight, so that none is left for the bridge to fail. */
  close(reason: CloseReason, because?: EndedBecause): number {
    this.#isClosed = true;
    this.#stream?.end();
    for (const post of this.#requests.values()) post.end(reason, because);
    for (const post of this.#others) post.end();
    return 0;
  }

  /** Ends the session at the server, and closes the connections to it. */
  async end(): Promise<void> {
    const { agent } = this.options;
    if (this.#sessionId !== undefined && this.#loss === undefined) {
      const signal = AbortSignal.timeout(DELETE_MS);
      const request = this.request({ method: 'DELETE', accept: '*/*', signal });
      // A server may refuse to end a session, and a session that is gone has ended.
      await request.then((response) => response.destroy()).catch(() => {});
    }
    agent.destroy();
  }

  async request(request: SessionRequest): Promise<HttpAnswer> {
    const { access } = this.options;
    const { method, signal } = request;
    for (let step = 1; ; step += 1) {
      await this.#pause(signal);
      const { response, allowed, url } = await this.#send(request);
      if (step < MAX_STEPS && this.#isRedirected(response, url)) continue;
      const { statusCode } = response;
      const isRefused =
        statusCode === 401 || (statusCode === 403 && response.headers['www-authenticate'] !== undefined);
      if (!isRefused) return response;
      const authenticate = response.headersDistinct['www-authenticate'] ?? [];
      const saysToken = step === 1 && authenticate.some((challenge) => challenge.includes('invalid_token'));
      if (statusCode === 401 && !saysToken && (await this.#refusesSession(request))) return response;
      const words = wordsOfBody(Buffer.from(await readAnswerBody(response)).toString());
      const [nonce] = response.headersDistinct['dpop-nonce'] ?? [];
      const verdict = await access.rejected({ status: statusCode, authenticate, nonce, words }, allowed, {
        method,
        url,
      });
      const answers = `it answers HTTP ${statusCode} to new credentials${asClause(words)}`;
      const last = step >= MAX_STEPS ? ({ blocked: 'login_required', because: answers } as const) : undefined;
      const blocked = verdict === 'again' ? last : verdict;
      if (blocked === undefined) continue;
      throw (await this.#refusesOnly(request)) ? new BlockedError(blocked) : this.#block(blocked);
    }
  }

  /** Sends a request once. `isInSession` is whether its headers name the session. */
  async #send(request: SessionRequest, isInSession = true) {
    const { clock, access, agent } = this.options;
    const { method, signal, body, onSent } = request;
    const url = method === 'POST' ? (this.#endpoint ?? this.#url) : this.#url;
    const own = this.#headersOf(request, isInSession);
    const allowed = await access.headers({ method, url, headers: own, body });
    if (isBlocked(allowed)) throw this.#block(allowed);
    const headers = { ...own, ...allowed };
    const sent = { url, method, headers, agent, signal, ...(body && { body }), ...(onSent && { onSent }) };
    const response = await sendRequest(clock, sent);
    this.#keepCookies(response);
    const isTaken = isInSession && (response.statusCode ?? 0) < 300 && own['mcp-session-id'] === this.#sessionId;
    // Some servers name another session with each answer.
    if (isTaken && this.#handshake !== undefined && !this.#isModern)
      this.#sessionId = sessionIn(response) ?? this.#sessionId;
    return { response, allowed, url };
  }

  /**
   * Whether a 401 is about the session instead of the credentials, because the server accepts the credentials without the
   * session, and not with it. A renewal of the credentials would not help.
   */
  async #refusesSession(request: SessionRequest): Promise<boolean> {
    if (!isCall(request) || this.#sessionId === undefined) return false;
    const inside = await this.#ping();
    if (inside?.status !== 401) return false;
    const outside = await this.#ping(false);
    return outside !== undefined && outside.status !== 401 && outside.status !== 403;
  }

  /** Whether a refusal is about one call only, because the server accepts the same credentials in another request. */
  async #refusesOnly(request: SessionRequest): Promise<boolean> {
    const { status = 0 } = (isCall(request) ? await this.#ping() : undefined) ?? {};
    return status >= 200 && status < 300;
  }

  async answersPing(): Promise<boolean> {
    const answer = await this.#ping();
    if (answer === undefined) return true;
    const { status, body } = answer;
    if (status < 200 || status > 299) return false;
    const { error } = (parseJson(body) ?? {}) as { readonly error?: { readonly code?: number } };
    // The server may not know `ping`.
    return error === undefined || error.code === RPC_CODES.methodNotFound;
  }

  /** Asks with a request that has no effect. Resolves with `undefined` if there is no answer. */
  async #ping(isInSession = true): Promise<{ readonly status: number; readonly body: string } | undefined> {
    const signal = AbortSignal.timeout(PING_MS);
    try {
      const { response } = await this.#send({ method: 'POST', accept: ACCEPT, body: PING, signal }, isInSession);
      return { status: response.statusCode ?? 0, body: (await messageIn(response)) ?? '' };
    } catch {
      return undefined;
    }
  }

  async renew(refused: string | undefined): Promise<boolean> {
    if (this.#sessionId !== refused) return true;
    this.#renewal ??= this.#openAnother()
      .catch(() => false)
      .finally(() => {
        this.#renewal = undefined;
      });
    return await this.#renewal;
  }

  async #openAnother(): Promise<boolean> {
    const handshake = this.#handshake;
    if (handshake === undefined || this.isOver) return false;
    const post = { method: 'POST', accept: ACCEPT } as const;
    const { response } = await this.#send({ ...post, body: handshake, signal: AbortSignal.timeout(SESSION_MS) }, false);
    const result = parseJson((await messageIn(response)) ?? '') as
      | { result?: { protocolVersion?: unknown } }
      | undefined;
    // Another revision needs another connection.
    if (response.statusCode !== 200 || result?.result?.protocolVersion !== this.#revision) return false;
    this.takeSession(response, handshake);
    for (const body of [INITIALIZED, ...this.#state.values()]) {
      const told = this.#send({ ...post, body, signal: AbortSignal.timeout(OPENING_MS) });
      await told.then(({ response: answer }) => answer.resume()).catch(() => {});
    }
    if (this.#stream !== undefined) {
      this.#stream.end();
      void this.#listen();
    }
    this.options.incoming.renewed();
    return true;
  }

  #headersOf(
    { accept, body, message, passed, lastEventId }: SessionRequest,
    isInSession: boolean,
  ): Record<string, string> {
    const sessionId = isInSession ? this.#sessionId : undefined;
    return {
      ...passed,
      accept,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(this.#revision !== undefined && body !== this.#handshake && { 'mcp-protocol-version': this.#revision }),
      ...(message !== undefined && metadataHeaders(message, this.options.paramsOf, this.#isModern)),
      ...(sessionId !== undefined && { 'mcp-session-id': sessionId }),
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      ...(this.#cookies.size > 0 && { cookie: [...this.#cookies].map((pair) => pair.join('=')).join('; ') }),
    };
  }

  #block(blocked: Blocked): BlockedError {
    if (blocked.blocked === 'login_required') this.lose('blocked', blocked.because);
    return new BlockedError(blocked);
  }

  /** Delays requests for this time, in milliseconds, because the server wants none. */
  pauseFor(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.options.clock.now() + ms);
  }

  /** Time for which the server still wants no request, in milliseconds. */
  get pauseMs(): number {
    return Math.max(0, this.#pausedUntil - this.options.clock.now());
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const ms = this.pauseMs;
    if (ms > MAX_PAUSE_MS) throw new PausedError(ms);
    if (ms > 0) await this.sleep(ms, signal);
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        // Removes the listener, because the signal of a stream outlives each pause.
        signal.removeEventListener('abort', end);
        resolve();
      };
      const cancel = this.options.clock.schedule(ms, end);
      if (signal.aborted) end();
      else signal.addEventListener('abort', end);
    });
  }

  /** Takes the URL of a redirect, unless it has another origin, which must not get the credentials. Returns whether it did. */
  #isRedirected(response: HttpAnswer, from: URL): boolean {
    const { statusCode = 0, headers } = response;
    const { location } = headers;
    if (!REDIRECTS.has(statusCode) || location === undefined || !URL.canParse(location, from.href)) return false;
    const target = new URL(location, from);
    if (target.origin !== from.origin) {
      this.options.incoming.note(
        `The server redirects to ${target.origin}. Trunkline does not follow, because its credentials are for ${from.origin} only.`,
      );
      return false;
    }
    response.resume();
    if (from === this.#endpoint) this.#endpoint = target;
    else this.#url = target;
    return true;
  }

  /** Keeps cookies in memory, because load balancers use them to keep a session at one machine. */
  #keepCookies({ headers }: HttpAnswer): void {
    for (const cookie of headers['set-cookie'] ?? []) {
      const [, name, value] = /^\s*([^=;\s]{1,256})=([^;\r\n]{0,4096})/.exec(cookie) ?? [];
      if (name === undefined || value === undefined) continue;
      if (this.#cookies.has(name) || this.#cookies.size < MAX_COOKIES) this.#cookies.set(name, value);
    }
  }

  takeSession(response: HttpAnswer, handshake: Uint8Array): void {
    this.#sessionId = sessionIn(response);
    this.#handshake = handshake;
  }

  /**
   * Sends nothing more, because the connection cannot be used. Closes it when no request is in flight, or after 1 s, because the
   * server may still answer.
   */
  lose(loss: ConnectionLoss, because: string): void {
    if (this.isOver) return;
    const report = () => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      this.options.incoming.lost(loss, because);
    };
    this.#loss = report;
    this.options.clock.schedule(GRACE_MS, report);
    if (this.#requests.size === 0) report();
  }

  /**
   * Opens the stream for messages that belong to no request, if the server offers one. Resolves when the server has answered,
   * because servers drop such messages before that. Waits 500 ms at most, because some proxies hold the answer back.
   */
  #listen(): Promise<void> {
    if (this.hasOneStream || this.isOver) return Promise.resolve();
    const stream = new GetStream(this, () => this.options.clock.now());
    this.#stream = stream;
    return new Promise((resolve) => {
      const cancel = this.options.clock.schedule(LISTEN_MS, resolve);
      void stream.read(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Opens the stream of a server of revision 2024-11-05, on which all answers come. Resolves with whether the server has one. */
  async openOneStream(): Promise<boolean> {
    const stream = new GetStream(this, () => this.options.clock.now());
    this.#stream = stream;
    const text = await stream.readToEndpoint();
    const endpoint = text !== undefined && URL.canParse(text, this.#url.href) ? new URL(text, this.#url) : undefined;
    if (endpoint?.origin === this.#url.origin) {
      this.#endpoint = endpoint;
      return true;
    }
    if (endpoint !== undefined)
      this.options.incoming.note(
        `The server wants its messages at ${endpoint.origin}, which is another origin. Trunkline sends none.`,
      );
    stream.end();
    this.#stream = undefined;
    return false;
  }

  /** Adds the folder of the URL to the endpoint, because a proxy that adds a folder may not change the endpoint that the server names. */
  tryPrefixedEndpoint(): boolean {
    const [, folder = ''] = /^(.+)\/[^/]*$/.exec(this.#url.pathname) ?? [];
    const named = this.#endpoint;
    if (named === undefined || folder === '' || named.pathname.startsWith(`${folder}/`)) return false;
    this.#endpoint = new URL(named);
    this.#endpoint.pathname = `${folder}${named.pathname}`;
    this.options.incoming.note(
      `The server does not answer at ${named.pathname}, which it names for messages. Trunkline tries ${this.#endpoint.pathname}.`,
    );
    return true;
  }
}

function isCall({ method, message }: SessionRequest): boolean {
  return method === 'POST' && message?.kind === 'request' && message.method !== METHODS.initialize;
}

function sessionIn({ headers }: HttpAnswer): string | undefined {
  const id = headers['mcp-session-id'];
  return typeof id === 'string' && /^[\x21-\x7e]{1,1024}$/.test(id) ? id : undefined;
}

/** Returns the message in an answer, which is its JSON, or the first event with data. Reads no more of a stream. Never rejects. */
async function messageIn(response: HttpAnswer): Promise<string | undefined> {
  if (mediaTypeOf(response) !== EVENT_STREAM)
    return Buffer.from(await readAnswerBody(response))
      .toString()
      .replace(/^\uFEFF/, '');
  let text = '';
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      const [, data] = /^data: ?(\{.*\})\s*$/m.exec(text) ?? [];
      if (data !== undefined || text.length > MAX_EVENT) return data;
    }
  } catch {
    // The stream broke before a message.
  }
  return undefined;
}
