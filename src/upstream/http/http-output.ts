import type { Agent, IncomingMessage } from 'node:http';
import { sendRequest } from '../../http/send-request.js';
import { readText } from '../../json/json-text.js';
import { type SplicedMessage, splice } from '../../json/splice.js';
import type { TrackedSink } from '../../jsonrpc/message.js';
import type { NotificationEnvelope, ScanEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { MirroredParam } from '../../mcp/mirrored-params.js';
import { isModernRevision } from '../../mcp/revisions.js';
import type { Clock } from '../../timing/clock.js';
import type { CloseReason, EndedBecause } from '../port.js';
import { type Blocked, BlockedError, isBlocked, type RemoteAccess } from './access.js';
import { Post } from './post.js';
import { metadataHeaders } from './request-headers.js';
import { type HttpIncoming, type HttpSession, type Loss, PausedError, type SessionRequest } from './session.js';
import { StandingStream } from './standing-stream.js';

/** Redirects and new authorizations that one request may need. */
const MAX_STEPS = 4;
const MAX_COOKIES = 20;
/** Time for requests in flight to end after the session or the network is lost, in milliseconds. */
const GRACE_MS = 1_000;
/** Longest wait for the answer to the GET of the stream, in milliseconds. */
const LISTEN_MS = 500;
/** Time limit for the DELETE that ends a session, in milliseconds. */
const DELETE_MS = 2_000;
/** Longest pause for which a request waits if the server wants one, in milliseconds. */
const MAX_PAUSE_MS = 10_000;

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);

export interface HttpOutputOptions {
  readonly url: URL;
  readonly transport: 'auto' | 'http' | 'sse';
  readonly agent: Agent;
  readonly access: RemoteAccess;
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly incoming: HttpIncoming;
  /** The parameters of a tool that the server wants repeated in headers. */
  readonly paramsOf: (tool: string) => readonly MirroredParam[];
  /** Reads the tools of the server again. Never rejects. */
  readonly rereadTools: () => Promise<void>;
}

/**
 * Sends each message of a bridge in a POST of its own, and hands what the server answers to the bridge: Streamable HTTP (page
 * basic/transports of the revisions from 2025-03-26 on), and HTTP with SSE (2024-11-05), where all answers come on one stream.
 */
export class HttpOutput implements TrackedSink, HttpSession {
  readonly options: HttpOutputOptions;
  #url: URL;
  /** Where a server of revision 2024-11-05 wants its messages. */
  #endpoint: URL | undefined;
  #sessionId: string | undefined;
  #revision: string | undefined;
  readonly #cookies = new Map<string, string>();
  /** Requests in flight by their ids, and the other messages. */
  readonly #requests = new Map<number, Post>();
  readonly #others = new Set<Post>();
  /** Pends while the server takes `initialized`. Other messages wait, because some servers want it first. */
  #opening: Promise<void> | undefined;
  #stream: StandingStream | undefined;
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

  /** Whether the session has an id, which only the revisions with a handshake have. */
  get hasSession(): boolean {
    return this.#sessionId !== undefined;
  }

  get #isModern(): boolean {
    return this.#revision !== undefined && isModernRevision(this.#revision);
  }

  /** The handshake agreed on this revision, which every request names in a header from now on. */
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
    const done = this.#opening === undefined ? post.run() : this.#opening.then(() => post.run());
    if (envelope.kind === 'notification' && envelope.method === METHODS.initialized) this.#opening = done;
    void done.then(() => {
      if (this.#opening === done) this.#opening = undefined;
      this.#unwrittenBytes -= body.length;
      this.#others.delete(post);
      if (post.id !== undefined) this.#requests.delete(post.id);
      if (this.#requests.size === 0) this.#loss?.();
    });
  }

  /**
   * Ends the answer of a request that is cancelled. Returns whether this is all: from revision 2026-07-28 on, the end of the
   * answer is the cancellation, and a request that was not sent needs none.
   */
  #endsRequest({ method, bytes, tokens }: NotificationEnvelope): boolean {
    if (method !== METHODS.cancelled || tokens.requestId === undefined) return false;
    const post = this.#requests.get(Number(readText(bytes, tokens.requestId)));
    const isUnsent = post?.isSent === false;
    post?.end();
    return isUnsent || this.#isModern || post?.isModern === true;
  }

  /** Fails all requests in flight, so that nothing is left to fail for the bridge. */
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

  /** Sends an HTTP request with the headers of the session. Throws `RequestError`, `BlockedError` or `PausedError`. */
  async request(request: SessionRequest): Promise<IncomingMessage> {
    const { clock, access, agent } = this.options;
    const { method, signal, body, onSent } = request;
    for (let step = 1; ; step += 1) {
      await this.#pause(signal);
      const url = method === 'POST' ? (this.#endpoint ?? this.#url) : this.#url;
      const own = this.#headersOf(request);
      const allowed = await access.headers({ method, url, headers: own, body });
      if (isBlocked(allowed)) throw this.#block(allowed);
      const headers = { ...own, ...allowed };
      const response = await sendRequest(clock, {
        url,
        method,
        headers,
        agent,
        signal,
        ...(body && { body }),
        ...(onSent && { onSent }),
      });
      this.#keepCookies(response);
      if (step < MAX_STEPS && this.#isRedirected(response, url)) continue;
      const { statusCode } = response;
      const isRefused =
        statusCode === 401 || (statusCode === 403 && response.headers['www-authenticate'] !== undefined);
      if (!isRefused) return response;
      response.resume();
      const authenticate = response.headersDistinct['www-authenticate'] ?? [];
      const [nonce] = response.headersDistinct['dpop-nonce'] ?? [];
      const verdict = await access.rejected({ status: statusCode, authenticate, nonce }, allowed, { method, url });
      if (verdict !== 'again') throw this.#block(verdict);
      if (step >= MAX_STEPS)
        throw this.#block({ blocked: 'login_required', because: `it answers HTTP ${statusCode} to new credentials` });
    }
  }

  #headersOf({ accept, body, message, lastEventId }: SessionRequest): Record<string, string> {
    return {
      accept,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(this.#revision !== undefined && { 'mcp-protocol-version': this.#revision }),
      ...(message !== undefined && metadataHeaders(message, this.options.paramsOf, this.#isModern)),
      ...(this.#sessionId !== undefined && { 'mcp-session-id': this.#sessionId }),
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      ...(this.#cookies.size > 0 && { cookie: [...this.#cookies].map((pair) => pair.join('=')).join('; ') }),
    };
  }

  #block(blocked: Blocked): BlockedError {
    if (blocked.blocked === 'login_required') this.lose('blocked', blocked.because);
    return new BlockedError(blocked);
  }

  /** The server wants no request for this time, in milliseconds. */
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

  /** Resolves after the time, in milliseconds, or at once when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.options.clock.schedule(ms, resolve);
      const end = () => {
        cancel();
        resolve();
      };
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
  }

  /** Follows a redirect within the origin. Credentials go to no other one. */
  #isRedirected(response: IncomingMessage, from: URL): boolean {
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
  #keepCookies({ headers }: IncomingMessage): void {
    for (const cookie of headers['set-cookie'] ?? []) {
      const [, name, value] = /^\s*([^=;\s]{1,256})=([^;\r\n]{0,4096})/.exec(cookie) ?? [];
      if (name === undefined || value === undefined) continue;
      if (this.#cookies.has(name) || this.#cookies.size < MAX_COOKIES) this.#cookies.set(name, value);
    }
  }

  /** Takes the id of the session from the answer to `initialize`. */
  takeSession({ headers }: IncomingMessage): void {
    const id = headers['mcp-session-id'];
    if (typeof id === 'string' && /^[\x21-\x7e]{1,1024}$/.test(id)) this.#sessionId = id;
  }

  /**
   * Sends nothing more, because the connection cannot be used. It is closed as soon as no request is in flight: the server may
   * answer those that it has.
   */
  lose(loss: Loss, because: string): void {
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
   * because servers drop such messages before, and soon in any case, because some proxies hold the answer back.
   */
  listen(): Promise<void> {
    if (this.hasOneStream) return Promise.resolve();
    const stream = new StandingStream(this, () => this.options.clock.now());
    this.#stream = stream;
    return new Promise((resolve) => {
      const cancel = this.options.clock.schedule(LISTEN_MS, resolve);
      void stream.read(() => {
        cancel();
        resolve();
      });
    });
  }

  /**
   * Opens the stream of a server of revision 2024-11-05, on which all answers come. Resolves with whether the server is such a
   * one.
   */
  async openOneStream(): Promise<boolean> {
    const stream = new StandingStream(this, () => this.options.clock.now());
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
}
