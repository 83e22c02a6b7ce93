import type { Socket } from 'node:net';
import type { EventSink } from '../../host/observe/events/events.js';
import type { FairMemory } from '../../wire/io/shared-limit.js';
import { RPC_CODES, unedited } from '../../wire/jsonrpc/message.js';
import type { Envelope, Rejection, RequestEnvelope, ScanEnvelope } from '../../wire/mcp/envelope.js';
import { fateOfMessage } from '../../wire/mcp/lost-request.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { AllowedNames } from './bind.js';
import type { CallerCheck } from './caller.js';
import * as guards from './header-guards.js';
import type { HttpSessionPort } from './http-client.js';
import {
  BATCH_WITHOUT_SESSION,
  type HttpRefusal,
  INSTANCE_LOST,
  MISSING_SESSION,
  NO_GROUP,
  NO_SUCH_METHOD,
  NOTHING_TO_RESUME,
  ONLY_POST,
  OVERLOADED,
  UNKNOWN_SESSION,
  unknownEndpoint,
} from './http-refusal.js';
import type { HttpLimits } from './limits.js';
import { remoteAddressOf } from './listener.js';
import { type McpRequest, readRequestBody } from './mcp-request.js';
import {
  type PostingClient,
  Session,
  SessionlessClient,
  type SessionlessClients,
  type Sessions,
} from './mcp-sessions.js';
import { respond } from './post-stream.js';
import type { RequestRates } from './rate-limit.js';
import { isForServers, refusedBy, refuseMetadata, refuseParams, refuseUnreadable } from './request-metadata.js';
import { parseEventId, type SealedIds } from './sealed-ids.js';
import { onOneLine } from './sse-stream.js';

/** The refusal of a request, or `answered` if the response is written elsewhere, or the client has left. */
export type Served = HttpRefusal | 'answered';

/** Serves requests of MCP. A request goes through `identify`, `admit` and `serve` in this order. */
export interface HttpEndpoint {
  /** Finds the caller and the server or view. Refuses forbidden hosts and origins, and callers without a valid token. */
  identify(request: McpRequest): Promise<HttpRefusal | undefined>;
  /** Refuses a request beyond the rate of its principal. */
  refuseRate(request: McpRequest): HttpRefusal | undefined;
  /** Checks the rate and the headers, before a byte of the body is read. */
  admit(request: McpRequest): HttpRefusal | undefined | Promise<HttpRefusal | undefined>;
  serve(request: McpRequest): Promise<Served>;
  /** Whether a request other than a subscription is in flight. */
  readonly hasCalls: boolean;
  /** Number of connections on other ports than that of the clients. */
  readonly otherConnections: number;
  /** Begins the end of this process, which goes on to serve for a while. */
  drain(): void;
  /** Ends the streams that stay open, so that their clients open them at another process. */
  endStreams(): void;
  endClients(): Promise<void>;
  /** Called when the connections of all clients have ended. */
  close(): Promise<void>;
}

interface EndpointOptions {
  readonly core: HttpSessionPort;
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly limits: HttpLimits;
  /** Limit of the incomplete bodies of all requests together. */
  readonly requestBodies: FairMemory;
  readonly callers: CallerCheck;
  readonly rates: RequestRates;
  readonly ids: SealedIds;
  readonly sessions: Sessions;
  readonly sessionless: SessionlessClients;
  /** Called for each request that was authenticated, with its connection. */
  readonly onAuthenticated: (socket: Socket) => void;
  /** Accepted names. Available once the server listens. */
  readonly names: () => AllowedNames;
  readonly events: EventSink;
}

const JSON_TYPE = 'application/json';
const EVENTS_TYPE = 'text/event-stream';

/** Header with which a proxy marks a request that it has sent to another process before, which did not answer. */
const LOST_HEADER = 'trunkline-lost';

/** Longest delay of a timer, in milliseconds: almost 25 days. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The endpoint of this process: authenticates, checks headers, finds the session and serves POST, GET and DELETE. */
export class Endpoint implements HttpEndpoint {
  readonly #options: EndpointOptions;
  readonly otherConnections = 0;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  get core(): HttpSessionPort {
    return this.#options.core;
  }

  async identify(request: McpRequest): Promise<HttpRefusal | undefined> {
    const { callers, clock, names, onAuthenticated } = this.#options;
    const { headers, socket } = request.raw;
    const { hosts, origins } = names();
    const stranger =
      guards.refuseHost(headers.host, hosts) ??
      guards.refuseTarget(request.url, hosts) ??
      guards.refuseOrigin(headers.origin, origins);
    if (stranger !== undefined) return stranger;
    const admitted = callers.admit(headers.authorization, remoteAddressOf(socket), clock.now(), request.asked);
    const admission = admitted instanceof Promise ? await admitted : admitted;
    if ('refusal' in admission) return admission.refusal;
    onAuthenticated(socket);
    request.caller = admission;
    this.#locate(request);
    return undefined;
  }

  /** Finds the server or view that serves the request, unless it is closed to the user. */
  #locate(request: McpRequest): void {
    const { endpointFor } = this.core;
    const { asked } = request;
    const { user } = request.caller;
    const located = user === undefined || endpointFor === undefined ? { endpoint: asked } : endpointFor(asked, user);
    request.endpoint = located?.endpoint;
    if (located === undefined) request.closed = asked === undefined ? NO_GROUP : unknownEndpoint(asked);
  }

  /** `parts` is the number of processes that share the limit of the principal. */
  refuseRate(request: McpRequest, parts = 1): HttpRefusal | undefined {
    const { rates, clock } = this.#options;
    return rates.refuse(request.caller.principal, this.#senderOf(request), clock.now(), parts);
  }

  admit(request: McpRequest): HttpRefusal | undefined {
    return this.refuseRate(request) ?? this.refuseHeaders(request);
  }

  refuseHeaders({ closed, method, raw: { headers, headersDistinct } }: McpRequest): HttpRefusal | undefined {
    if (closed !== undefined) return closed;
    if (method === 'GET') return guards.refuseAccept(headers.accept, [EVENTS_TYPE]);
    if (method !== 'POST') return undefined;
    return (
      guards.refuseContentEncoding(headers['content-encoding']) ??
      guards.refuseContentType(headers['content-type']) ??
      guards.refuseAccept(headers.accept, [JSON_TYPE, EVENTS_TYPE]) ??
      guards.refuseLength(headers['content-length'], this.#options.limits.maxBodyBytes) ??
      guards.refusePassedHeaders(headersDistinct, this.core.passedHeaders?.() ?? [])
    );
  }

  /** Reads the body. Returns `undefined` if the request is to be served. */
  async read(request: McpRequest): Promise<Served | undefined> {
    const { scan, limits, requestBodies } = this.#options;
    if (request.method === 'GET') this.#endWithToken(request);
    if (request.method !== 'POST') return undefined;
    const { maxBodyBytes } = limits;
    const owners = () => [request.caller.principal, this.sessionOf(request)?.id ?? ''];
    const body = await readRequestBody(request.raw, { maxBytes: maxBodyBytes, memory: requestBodies, owners });
    if (body === 'aborted') return 'answered';
    if (body === 'buffers-full') return OVERLOADED;
    if (body === 'too-large') return guards.tooLarge(maxBodyBytes);
    const message = readMessage(body, scan);
    request.post = { body, message };
    if (isSubscription(message)) this.#endWithToken(request);
    return request.header(LOST_HEADER) !== undefined && this.answerLost(request) ? 'answered' : undefined;
  }

  /** Answers a message that another process may have served. Returns false if it may be served again. */
  answerLost({ post, response }: McpRequest): boolean {
    if (post === undefined) return false;
    const fate = fateOfMessage(post.message.bytes, INSTANCE_LOST);
    if (fate.kind === 'answered') respond(response, 200, {}, unedited(Buffer.from(fate.answer)));
    else if (fate.kind === 'dropped') respond(response, 202, {});
    return fate.kind !== 'again';
  }

  async serve(request: McpRequest): Promise<Served> {
    switch (request.method) {
      case 'POST':
        return await this.#post(request);
      case 'GET':
        return await this.#get(request);
      case 'DELETE':
        return await this.#delete(request);
      default:
        return NO_SUCH_METHOD;
    }
  }

  get hasCalls(): boolean {
    return this.#options.sessions.hasCalls || this.#options.sessionless.hasCalls;
  }

  drain(): void {}

  endStreams(): void {
    this.#options.sessions.endListening();
    this.core.endSubscriptions();
  }

  async endClients(): Promise<void> {
    this.#options.sessions.close();
    this.#options.sessionless.close();
  }

  async close(): Promise<void> {}

  /** The clients of this process, each of which has a session, or sends requests without one. */
  get clients(): readonly PostingClient[] {
    return [...this.#options.sessions.all, ...this.#options.sessionless.all];
  }

  /** Ends these clients, because another process serves them now. */
  endMoved(clients: ReadonlySet<PostingClient>): void {
    for (const some of [this.#options.sessions, this.#options.sessionless]) some.endMoved(clients);
  }

  /** The session that the request names, if this process has it and it belongs to the client. */
  sessionOf({ sessionId: id, owner }: McpRequest): Session | undefined {
    return id === undefined ? undefined : this.#options.sessions.find(id, owner);
  }

  /** Whether the caller has the session that the request names, which may have to be resumed first. */
  canResume({ sessionId: id, owner }: McpRequest): boolean {
    return id !== undefined && this.#options.sessions.canResume(id, owner);
  }

  async #post(request: McpRequest): Promise<Served> {
    const { core } = this;
    const message = request.post?.message;
    if (message === undefined) return 'answered';
    const initialize = message.kind === 'request' && core.beginsSession(message) ? message : undefined;
    if (core.isSessionless(message) || (request.isModern && initialize === undefined))
      return this.#postAlone(request, message);
    const opening = request.sessionId === undefined ? message : undefined;
    if (opening !== undefined && initialize !== undefined) return this.#initialize(request, initialize);
    const unknown = opening?.kind === 'request' ? this.#unknownMethod(opening) : undefined;
    if (unknown !== undefined) return unknown;
    const unreadable = opening?.kind === 'rejected' ? refuseUnreadable(opening) : undefined;
    if (unreadable !== undefined) return unreadable;
    const isBatch = opening?.kind === 'rejected';
    const session = await this.#session(request, isBatch ? BATCH_WITHOUT_SESSION : MISSING_SESSION);
    if (!(session instanceof Session)) return session;
    return this.#respond(request, (response) => session.post(message, response));
  }

  /** Serves a message of a revision without sessions. Only this POST connects the message to its client. */
  #postAlone(request: McpRequest, message: Envelope | Rejection): Served {
    const { headers } = request.raw;
    const refusal = refuseMetadata(message, headers, (asked) => this.core.refusalWithoutSession(asked));
    if (refusal !== undefined) return refusal;
    if (message.kind !== 'request' && !isForServers(message))
      return this.#respond(request, (response) => respond(response, 202, {}));
    const client = this.#options.sessionless.of(request.caller, request.endpoint);
    if (!(client instanceof SessionlessClient)) return client;
    const mismatch =
      message.kind === 'request' ? refuseParams(message, headers, client.mirroredParams(message)) : undefined;
    return mismatch ?? this.#respond(request, (response) => client.post(message, response));
  }

  /** Refuses an unknown method with "Method not found", which tells a client of a later revision to fall back. */
  #unknownMethod(opening: RequestEnvelope): HttpRefusal | undefined {
    const error = this.core.refusalWithoutSession(opening);
    return error?.code === RPC_CODES.methodNotFound ? refusedBy(error, opening) : undefined;
  }

  #initialize(request: McpRequest, message: RequestEnvelope): Served {
    const { sessions } = this.#options;
    const session = sessions.open(message, request.owner);
    if (!(session instanceof Session)) return session;
    // The session is useless after a failed `initialize`, or if the client left before it got the session id.
    const onOver = () => {
      if (!session.isInitialized || !request.response.headersSent) sessions.end(session, 'refused');
    };
    return this.#respond(request, (response) => {
      let isServed = false;
      try {
        isServed = session.post(message, response, { 'mcp-session-id': session.id }, onOver);
      } finally {
        if (!isServed) sessions.end(session, 'refused');
      }
    });
  }

  async #get(request: McpRequest): Promise<Served> {
    const session = await this.#session(request, ONLY_POST);
    if (!(session instanceof Session)) return session;
    // The client may have left while its session was resumed. A stream without a client would keep the next one out.
    if (request.raw.socket.destroyed) return 'answered';
    const lastEventId = request.header('last-event-id');
    if (lastEventId === undefined) {
      // Replaces an older stream, whose client may have gone without a word.
      return this.#respond(request, (response) => session.listen(response));
    }
    const id = parseEventId(lastEventId);
    if (id !== undefined && session.canResume(id))
      return this.#respond(request, (response) => session.resume(id, response));
    const { ids } = this.#options;
    const lost = id?.instance === ids.instance ? undefined : ids.openStream(session.id, lastEventId);
    if (lost === undefined) return NOTHING_TO_RESUME;
    return this.#respond(request, (response) => session.endLost(lost, response));
  }

  async #delete(request: McpRequest): Promise<Served> {
    const refusal = refuseSession(request, ONLY_POST);
    if (refusal !== undefined) return refusal;
    if (!(await this.#options.sessions.delete(request.sessionId ?? '', request.owner))) return UNKNOWN_SESSION;
    return this.#respond(request, (response) => response.writeHead(204).end());
  }

  /**
   * Names the sender of a request, because senders share the request limit of a token. Each session is a sender, also one that
   * has to be resumed. Requests of revisions without sessions are one sender together, so are requests without a session id, and
   * so are those with an unknown one, because a client must not be able to invent senders.
   */
  #senderOf(request: McpRequest): string {
    if (request.isModern) return 'without sessions';
    const id = request.sessionId;
    if (id === undefined) return 'no session';
    const isKnown =
      this.sessionOf(request) !== undefined || (!this.#options.sessions.isFull && this.canResume(request));
    return isKnown ? id : 'unknown session';
  }

  async #session(request: McpRequest, whenMissing: HttpRefusal): Promise<Session | HttpRefusal> {
    const refusal = refuseSession(request, whenMissing);
    if (refusal !== undefined) return refusal;
    const { sessions } = this.#options;
    return this.sessionOf(request) ?? (await sessions.resume(request.sessionId ?? '', request.owner));
  }

  /** Ends a long-lived response at the end of the token of its request, because the client can open the next one with a new token. */
  #endWithToken({ caller: { tokenEndsAt }, response }: McpRequest): void {
    const { clock } = this.#options;
    if (tokenEndsAt === undefined) return;
    const cancel = clock.schedule(Math.min(tokenEndsAt - clock.now(), MAX_DELAY_MS), () => response.end());
    response.once('close', cancel);
  }

  #respond({ response }: McpRequest, serve: (response: McpRequest['response']) => void): 'answered' {
    // Ignores errors of a client that has just left. `close` reports that it left.
    response.on('error', () => {});
    try {
      serve(response);
    } catch (error) {
      this.#options.events.emit({ kind: 'internal.error', error });
    }
    return 'answered';
  }
}

/** Whether a message is a `subscriptions/listen` request, which stays open. */
export function isSubscription(message: Envelope | Rejection): boolean {
  return message.kind === 'request' && message.method === METHODS.listen;
}

/** Refuses a request without a session id, or with an unknown revision. */
function refuseSession(request: McpRequest, whenMissing: HttpRefusal): HttpRefusal | undefined {
  // A request of these revisions never belongs to a session.
  if (request.isModern) return whenMissing;
  const refusal = guards.refuseRevision(request.header('mcp-protocol-version'));
  return refusal ?? (request.sessionId === undefined ? whenMissing : undefined);
}

/** Reads the message in a body. Removes line breaks first, because servers read one message a line. */
function readMessage(body: Uint8Array, scan: ScanEnvelope): Envelope | Rejection {
  const scanned = scan(body);
  if (scanned.kind === 'rejected' && scanned.reason !== 'batch') return scanned;
  const line = onOneLine(body);
  return line === body ? scanned : scan(line);
}
