import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EventSink } from '../../host/observe/events/events.js';
import type { FairMemory, Holder } from '../../wire/io/shared-limit.js';
import { RPC_CODES } from '../../wire/jsonrpc/message.js';
import type { Envelope, Rejection, RequestEnvelope, ScanEnvelope } from '../../wire/mcp/envelope.js';
import { fateOfMessage } from '../../wire/mcp/lost-request.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { AllowedNames } from './bind.js';
import type { CallerCheck } from './caller.js';
import { onOneLine } from './event-stream.js';
import * as guards from './guards.js';
import { type Caller, endpointOfView, type HttpSessionPort } from './http-client.js';
import type { HttpLimits } from './limits.js';
import { addressOf, clientOf, passedOnFor } from './listener.js';
import { GATEWAY, HOME_HEADER, type PlacedRequest, type Placement, type ReceivedRequest } from './placement.js';
import { JSON_HEADERS } from './post-stream.js';
import type { RequestRates } from './rate-limit.js';
import {
  BATCH_WITHOUT_SESSION,
  FOR_MACHINES,
  type HttpRefusal,
  INSTANCE_LOST,
  MISSING_SESSION,
  MOVED,
  NO_GROUP,
  NO_SUCH_METHOD,
  NOT_SIGNED,
  NOTHING_TO_RESUME,
  ONLY_POST,
  OTHER_USERS,
  OVERLOADED,
  refusalBody,
  UNKNOWN_SESSION,
  unknownEndpoint,
} from './refusal.js';
import { isForServers, refusedBy, refuseMetadata, refuseParams, refuseUnreadable } from './request-metadata.js';
import { parseEventId, type SealedIds, type SessionOwner } from './sealed-ids.js';
import { Session, SessionlessClient, type SessionlessClients, type Sessions } from './sessions.js';

interface EndpointOptions {
  readonly core: HttpSessionPort;
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly limits: HttpLimits;
  /** Limit of the incomplete bodies of all requests together. */
  readonly requestBodies: FairMemory;
  readonly callers: CallerCheck;
  /** Whether each caller is a user or a machine with a token of its own. */
  readonly hasUsers: boolean;
  /** `undefined` if this gateway serves alone, and before it has joined a cluster. */
  readonly placement: () => Placement | undefined;
  readonly rates: RequestRates;
  readonly ids: SealedIds;
  readonly sessions: Sessions;
  readonly sessionless: SessionlessClients;
  /** Called for each request that was authenticated, with its connection. */
  readonly onAuthenticated: (socket: Socket) => void;
  /** Called for each request of a client of MCP that was not refused for its headers. */
  readonly onRequest: () => void;
  /** Accepted names. Available once the server listens. */
  readonly names: () => AllowedNames;
  readonly events: EventSink;
}

const JSON_TYPE = 'application/json';

/** Header with which a proxy marks a request that it has sent to another gateway before, which did not answer. */
const LOST_HEADER = 'trunkline-lost';

const EVENTS_TYPE = 'text/event-stream';

/** Longest delay of a timer, in milliseconds: almost 25 days. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** Gateways that are tried for one request. More only if users and sessions move all the time. */
const MAX_HOPS = 3;

/** The MCP endpoint: checks headers, authenticates, finds the session and serves POST, GET and DELETE. */
export class Endpoint {
  readonly #options: EndpointOptions;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  /** Refuses, on every path, a request that a proxy could read differently. */
  readonly checkMessage = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { headers, httpVersion, rawHeaders } = request.raw;
    const refusal =
      guards.refuseHttpVersion(httpVersion) ??
      guards.refuseTransferEncoding(headers['transfer-encoding'], httpVersion) ??
      guards.refuseRepeatedHeader(headers, rawHeaders);
    if (refusal === undefined) done();
    else this.refuse(request, reply, refusal);
  };

  /** Checks the headers before a byte of the body is read, and stores the caller and the endpoint on the request. */
  readonly admit = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (this.#isPreflight(request, reply)) return reply.code(204).send();
    const placement = this.#options.placement();
    const received = placement?.received(request.raw);
    const stranger = received === undefined ? await this.#identify(request) : acceptReceived(request, received);
    if (stranger !== undefined) return this.refuse(request, reply, stranger);
    // The other gateway then looks where the server runs.
    if (received?.server === 'elsewhere') return this.refuse(request, reply, UNKNOWN_SESSION);
    // A gateway with another configuration has checked its callers in another way.
    const isUser = received?.caller.user !== undefined;
    if (received !== undefined && received.server === undefined && isUser !== this.#options.hasUsers)
      return this.refuse(request, reply, OTHER_USERS);
    const closed = received === undefined ? this.#locate(request) : undefined;
    const home = placement && closed === undefined ? await this.#homeOf(request, placement, received) : undefined;
    if (home !== undefined && received !== undefined) return this.refuse(request, reply, misdirected(home));
    request.setDecorator('home', home);
    const { method, headers } = request;
    const { maxBodyBytes } = this.#options.limits;
    // The home counts the request.
    const tooMany = home === undefined ? this.#refuseRate(request) : undefined;
    const refusal = tooMany ?? closed ?? refuseHeaders(method, headers, maxBodyBytes);
    if (refusal !== undefined) return this.refuse(request, reply, refusal);
    // The client may have left during the check of its token. Nothing reports that to the code that follows.
    if (request.raw.socket.destroyed) return reply.hijack();
    this.#options.onRequest();
    return undefined;
  };

  /**
   * Lets a page of an origin that the person has named read the answers, also refusals. Returns whether the request only asks whether it may be
   * sent, which browsers do without a token.
   */
  #isPreflight({ method, headers, url }: FastifyRequest, reply: FastifyReply): boolean {
    const { hosts, pages } = this.#options.names();
    const { origin } = headers;
    const isAllowed =
      origin !== undefined &&
      guards.refuseHost(headers.host, hosts) === undefined &&
      guards.refuseTarget(url, hosts) === undefined &&
      guards.refuseOrigin(origin, pages) === undefined;
    if (!isAllowed) return false;
    reply.raw.setHeader('access-control-allow-origin', origin);
    for (const [name, value] of Object.entries(CORS)) reply.raw.setHeader(name, value);
    return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  }

  /** Does the same for a request that is no message of MCP. Users get no facts about other users. */
  readonly admitReader = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const refusal =
      (await this.#identify(request)) ??
      this.#refuseRate(request) ??
      (callerOf(request).user?.kind === 'user' ? FOR_MACHINES : undefined);
    return refusal === undefined ? undefined : this.refuse(request, reply, refusal);
  };

  /** Refuses strangers. Stores the caller of every other request on it. */
  async #identify(request: FastifyRequest): Promise<HttpRefusal | undefined> {
    const { callers, clock, names, onAuthenticated } = this.#options;
    const { headers, raw } = request;
    const { hosts, origins } = names();
    const stranger =
      guards.refuseHost(headers.host, hosts) ??
      guards.refuseTarget(request.url, hosts) ??
      guards.refuseOrigin(headers.origin, origins);
    if (stranger !== undefined) return stranger;
    const admitted = callers.admit(headers.authorization, addressOf(raw.socket), clock.now(), askedEndpoint(request));
    const admission = admitted instanceof Promise ? await admitted : admitted;
    if ('refusal' in admission) return admission.refusal;
    onAuthenticated(raw.socket);
    request.setDecorator('caller', admission);
    return undefined;
  }

  /** Refuses a request beyond the rate of its principal. */
  #refuseRate(request: FastifyRequest): HttpRefusal | undefined {
    const { rates, clock, placement } = this.#options;
    const { principal, user } = callerOf(request);
    // The other gateway has counted the requests of its clients.
    if (principal.startsWith(GATEWAY)) return undefined;
    // The sessions of other callers have homes at all gateways.
    const parts = user?.kind === 'user' ? 1 : (placement()?.size ?? 1);
    return rates.refuse(principal, this.#senderOf(request), clock.now(), parts);
  }

  /** Finds the gateway that serves the request, as far as the headers tell. */
  #homeOf(
    request: FastifyRequest,
    placement: Placement,
    received: ReceivedRequest | undefined,
  ): string | undefined | Promise<string | undefined> {
    const placed = this.#placed(request);
    return received === undefined ? placement.homeOf(placed) : placement.homeOfReceived(request.raw, placed);
  }

  #placed(request: FastifyRequest): PlacedRequest {
    const caller = callerOf(request);
    const id = sessionIdOf(request);
    if (id === undefined || guards.namesModernRevision(header(request, 'mcp-protocol-version'))) return { caller };
    const owner = ownerOf(request);
    const { sessions } = this.#options;
    const isOpen = () => sessions.find(id, owner) !== undefined;
    return { caller, session: { id, isOpen, isSound: () => sessions.canResume(id, owner) } };
  }

  /**
   * Passes a request to its home. Resolves with false if it has to be served here after all, because its home has ended, or
   * has moved here.
   */
  async #isPassed(
    request: FastifyRequest,
    reply: FastifyReply,
    post?: { readonly body: Uint8Array; readonly message: Envelope | Rejection },
  ): Promise<boolean> {
    const placement = this.#options.placement();
    let home = request.getDecorator<string | undefined>('home');
    if (placement === undefined || home === undefined) return false;
    const placed = this.#placed(request);
    const { message, body } = post ?? {};
    const isStanding = message === undefined || isSubscription(message);
    const { raw, url } = request;
    for (let tries = 0; home !== undefined; tries += 1) {
      if (tries === MAX_HOPS) {
        this.refuse(request, reply, MOVED);
        return true;
      }
      const to = { request: raw, response: reply.raw, url, body, placed, endpoint: endpointOf(request), isStanding };
      const passed = await placement.pass(home, to);
      if (passed.kind === 'answered') {
        reply.hijack();
        return true;
      }
      if (passed.kind === 'lost' && message !== undefined && this.#isLost(reply, message)) return true;
      home = passed.kind === 'moved' ? passed.home : await placement.homeOf(placed);
    }
    const tooMany = this.#refuseRate(request);
    if (tooMany !== undefined) this.refuse(request, reply, tooMany);
    return tooMany !== undefined;
  }

  /** Answers a message that another gateway may have served. Returns false if it may be served again. */
  #isLost(reply: FastifyReply, { bytes }: Envelope | Rejection): boolean {
    const fate = fateOfMessage(bytes, INSTANCE_LOST);
    if (fate.kind === 'answered') reply.headers(JSON_HEADERS).send(Buffer.from(fate.answer));
    else if (fate.kind === 'dropped') reply.code(202).send();
    return fate.kind !== 'again';
  }

  /** Refuses an endpoint that is closed to the user. Stores the endpoint that serves the request on it. */
  #locate(request: FastifyRequest): HttpRefusal | undefined {
    const { endpointFor } = this.#options.core;
    const { user } = callerOf(request);
    const asked = askedEndpoint(request);
    const located = user === undefined || endpointFor === undefined ? { endpoint: asked } : endpointFor(asked, user);
    request.setDecorator('endpoint', located?.endpoint);
    if (located !== undefined) return undefined;
    return asked === undefined ? NO_GROUP : unknownEndpoint(asked);
  }

  readonly serve = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    switch (request.method) {
      case 'POST':
        return this.#post(request, reply);
      case 'GET':
        return this.#get(request, reply);
      case 'DELETE':
        return this.#delete(request, reply);
      default:
        return this.refuse(request, reply, NO_SUCH_METHOD);
    }
  };

  refuse(request: FastifyRequest, reply: FastifyReply, refusal: HttpRefusal): FastifyReply {
    const { status, message, headers = {}, named } = refusal;
    const { method, raw } = request;
    const { address } = clientOf(raw);
    const { user } = callerOf(request);
    const who = user && { [user.kind]: user.name };
    this.#options.events.emit({
      kind: 'http.refused',
      status,
      message,
      method,
      address,
      ...who,
      ...(named && { named }),
    });
    if (!reply.raw.shouldKeepAlive && isBodyComing(raw)) closeAfterBody(raw, reply.raw);
    return reply.code(status).headers(headers).type(JSON_TYPE).send(refusalBody(refusal));
  }

  async #post(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const { core, scan, limits, requestBodies } = this.#options;
    const { maxBodyBytes } = limits;
    const owners = () => [principalOf(request), this.#ownSession(request)?.id ?? ''];
    const body = await readBody(request.raw, { maxBytes: maxBodyBytes, memory: requestBodies, owners });
    if (body === 'aborted') return reply.hijack();
    if (body === 'buffers-full') return this.refuse(request, reply, OVERLOADED);
    if (body === 'too-large') return this.refuse(request, reply, guards.tooLarge(maxBodyBytes));
    const placement = this.#options.placement();
    const received = placement?.received(request.raw);
    if (received?.isBody(body) === false) return this.refuse(request, reply, NOT_SIGNED);
    // The server may have moved while the body came.
    if (received?.server === 'elsewhere') return this.refuse(request, reply, UNKNOWN_SESSION);
    const message = readMessage(body, scan);
    if (received?.server === 'moving' && message.kind === 'request') return this.refuse(request, reply, MOVED);
    if (isSubscription(message)) this.#endWithToken(request, reply);
    if (header(request, LOST_HEADER) !== undefined && this.#isLost(reply, message)) return reply;
    if (placement !== undefined && received === undefined) {
      if (callerOf(request).user?.kind !== 'user' && core.isSessionless(message)) this.#goWhereNamed(request, message);
      if (await this.#isPassed(request, reply, { body, message })) return reply;
    }
    const initialize = message.kind === 'request' && core.beginsSession(message) ? message : undefined;
    const isModern = guards.namesModernRevision(header(request, 'mcp-protocol-version'));
    if (core.isSessionless(message) || (isModern && initialize === undefined))
      return this.#postAlone(request, reply, message);
    const opening = sessionIdOf(request) === undefined ? message : undefined;
    if (opening !== undefined && initialize !== undefined) return this.#initialize(request, reply, initialize);
    const unknown = opening?.kind === 'request' ? this.#unknownMethod(opening) : undefined;
    if (unknown !== undefined) return this.refuse(request, reply, unknown);
    const unreadable = opening?.kind === 'rejected' ? refuseUnreadable(opening) : undefined;
    if (unreadable !== undefined) return this.refuse(request, reply, unreadable);
    const isBatch = opening?.kind === 'rejected';
    const session = await this.#session(request, isBatch ? BATCH_WITHOUT_SESSION : MISSING_SESSION);
    if (!(session instanceof Session)) return this.refuse(request, reply, session);
    return this.#respond(reply, (response) => session.post(message, response));
  }

  /** Moves a request without a home to the gateway that has its task, or the call that it continues. */
  #goWhereNamed(request: FastifyRequest, message: Envelope | Rejection): void {
    const named = this.#options.placement()?.reachable(this.#options.core.instanceIn(message));
    if (named !== undefined) request.setDecorator('home', named);
  }

  /** Serves a message of a revision without sessions. Only this POST connects the message to its client. */
  #postAlone(request: FastifyRequest, reply: FastifyReply, message: Envelope | Rejection): FastifyReply {
    const { core, sessionless } = this.#options;
    const { headers } = request;
    const refusal = refuseMetadata(message, headers, (asked) => core.refusalWithoutSession(asked));
    if (refusal !== undefined) return this.refuse(request, reply, refusal);
    if (message.kind !== 'request' && !isForServers(message)) return reply.code(202).send();
    const client = sessionless.of(callerOf(request), endpointOf(request));
    if (!(client instanceof SessionlessClient)) return this.refuse(request, reply, client);
    const mismatch =
      message.kind === 'request' ? refuseParams(message, headers, client.mirroredParams(message)) : undefined;
    if (mismatch !== undefined) return this.refuse(request, reply, mismatch);
    return this.#respond(reply, (response) => client.post(message, response));
  }

  /** Refuses an unknown method with "Method not found", which tells a client of a later revision to fall back. */
  #unknownMethod(opening: RequestEnvelope): HttpRefusal | undefined {
    const error = this.#options.core.refusalWithoutSession(opening);
    return error?.code === RPC_CODES.methodNotFound ? refusedBy(error, opening) : undefined;
  }

  #initialize(request: FastifyRequest, reply: FastifyReply, message: RequestEnvelope): FastifyReply {
    const { sessions } = this.#options;
    const session = sessions.open(message, ownerOf(request));
    if (!(session instanceof Session)) return this.refuse(request, reply, session);
    const { homeKey } = session;
    if (homeKey !== undefined) this.#options.placement()?.opened(homeKey);
    // The session is useless after a failed `initialize`, or if the client left before it got the session id.
    const onOver = () => {
      if (!session.isInitialized || !reply.raw.headersSent) sessions.end(session, 'refused');
    };
    return this.#respond(reply, (response) => {
      let isServed = false;
      try {
        isServed = session.post(message, response, { 'mcp-session-id': session.id }, onOver);
      } finally {
        if (!isServed) sessions.end(session, 'refused');
      }
    });
  }

  async #get(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    this.#endWithToken(request, reply);
    if (await this.#isPassed(request, reply)) return reply;
    const session = await this.#session(request, ONLY_POST);
    if (!(session instanceof Session)) return this.refuse(request, reply, session);
    // The client may have left while its session was resumed. A stream without a client would keep the next one out.
    if (request.raw.socket.destroyed) return reply.hijack();
    const lastEventId = header(request, 'last-event-id');
    if (lastEventId === undefined) {
      // Replaces an older stream, whose client may have gone without a word.
      return this.#respond(reply, (response) => session.listen(response));
    }
    const id = parseEventId(lastEventId);
    if (id !== undefined && session.canResume(id))
      return this.#respond(reply, (response) => session.resume(id, response));
    const { ids } = this.#options;
    const lost = id?.instance === ids.instance ? undefined : ids.openStream(session.id, lastEventId);
    if (lost === undefined) return this.refuse(request, reply, NOTHING_TO_RESUME);
    return this.#respond(reply, (response) => session.endLost(lost, response));
  }

  async #delete(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    if (await this.#isPassed(request, reply)) return reply;
    const refusal = this.#refuseSession(request, ONLY_POST);
    if (refusal !== undefined) return this.refuse(request, reply, refusal);
    const isDeleted = await this.#options.sessions.delete(sessionIdOf(request) ?? '', ownerOf(request));
    return isDeleted ? reply.code(204).send() : this.refuse(request, reply, UNKNOWN_SESSION);
  }

  /**
   * Names the sender of a request, because senders share the request limit of a token. A session is a sender, also if it has
   * to be resumed. So are all requests together that need no session, that open one, and that name an unknown one. A client
   * cannot invent a share.
   */
  #senderOf(request: FastifyRequest): string {
    if (guards.namesModernRevision(header(request, 'mcp-protocol-version'))) return 'without sessions';
    const { sessions } = this.#options;
    const id = sessionIdOf(request);
    if (id === undefined) return 'no session';
    const owner = ownerOf(request);
    const isKnown = sessions.find(id, owner) !== undefined || (!sessions.isFull && sessions.canResume(id, owner));
    return isKnown ? id : 'unknown session';
  }

  /** Returns the session that the request names, or the refusal. */
  async #session(request: FastifyRequest, whenMissing: HttpRefusal): Promise<Session | HttpRefusal> {
    const refusal = this.#refuseSession(request, whenMissing);
    if (refusal !== undefined) return refusal;
    return (
      this.#ownSession(request) ?? (await this.#options.sessions.resume(sessionIdOf(request) ?? '', ownerOf(request)))
    );
  }

  /** Refuses a request that names no session. */
  #refuseSession(request: FastifyRequest, whenMissing: HttpRefusal): HttpRefusal | undefined {
    const revision = header(request, 'mcp-protocol-version');
    // A request of these revisions never belongs to a session.
    if (guards.namesModernRevision(revision)) return whenMissing;
    const refusal = guards.refuseRevision(revision);
    if (refusal !== undefined) return refusal;
    return sessionIdOf(request) === undefined ? whenMissing : undefined;
  }

  /** The session that the request names, if this process has it and it belongs to the client. */
  #ownSession(request: FastifyRequest): Session | undefined {
    const id = sessionIdOf(request);
    return id === undefined ? undefined : this.#options.sessions.find(id, ownerOf(request));
  }

  /** Ends a response that stays open when the token of its request ends. The client opens the next one with a new token. */
  #endWithToken(request: FastifyRequest, { raw }: FastifyReply): void {
    const { clock } = this.#options;
    const { tokenEndsAt } = callerOf(request);
    if (tokenEndsAt === undefined) return;
    const cancel = clock.schedule(Math.min(tokenEndsAt - clock.now(), MAX_DELAY_MS), () => raw.end());
    raw.once('close', cancel);
  }

  /** Writes the response without fastify. */
  #respond(reply: FastifyReply, serve: (response: FastifyReply['raw']) => void): FastifyReply {
    reply.hijack();
    // Ignores errors of a client that has just left. `close` reports that it left.
    reply.raw.on('error', () => {});
    try {
      serve(reply.raw);
    } catch (error) {
      this.#options.events.emit({ kind: 'internal.error', error });
    }
    return reply;
  }
}

/** Stores the facts on the request that another gateway has signed. That gateway, whose clock it is, ends what stays open. */
function acceptReceived(request: FastifyRequest, { caller, client, endpoint }: ReceivedRequest): undefined {
  const { tokenEndsAt, ...without } = caller;
  passedOnFor(request.raw, client);
  request.setDecorator('caller', without);
  request.setDecorator('endpoint', endpoint);
}

/** Tells another gateway which one serves the request. */
function misdirected(home: string): HttpRefusal {
  return { status: 421, message: 'Another gateway serves this', headers: { [HOME_HEADER]: home } };
}

/** Headers for browsers. `*` does not include `Authorization`. */
const CORS = {
  vary: 'Origin',
  'access-control-allow-methods': 'GET, POST, DELETE',
  'access-control-allow-headers': 'Authorization, *',
  'access-control-expose-headers': 'Mcp-Session-Id, WWW-Authenticate, Retry-After',
  'access-control-max-age': '600',
};

function isSubscription(message: Envelope | Rejection): boolean {
  return message.kind === 'request' && message.method === METHODS.listen;
}

function refuseHeaders(
  method: string,
  headers: FastifyRequest['headers'],
  maxBodyBytes: number,
): HttpRefusal | undefined {
  if (method === 'GET') return guards.refuseAccept(headers.accept, [EVENTS_TYPE]);
  if (method !== 'POST') return undefined;
  return (
    guards.refuseContentEncoding(headers['content-encoding']) ??
    guards.refuseContentType(headers['content-type']) ??
    guards.refuseAccept(headers.accept, [JSON_TYPE, EVENTS_TYPE]) ??
    guards.refuseLength(headers['content-length'], maxBodyBytes)
  );
}

function isBodyComing({ complete, headers }: FastifyRequest['raw']): boolean {
  return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0);
}

/**
 * Closes the connection after the body was read. Node would close it right after the answer. If the client was still
 * writing, that would reset the connection and lose the answer. The rest of the body is discarded, and the request
 * timeout ends endless bodies.
 */
function closeAfterBody(request: FastifyRequest['raw'], response: FastifyReply['raw']): void {
  response.shouldKeepAlive = true;
  request.once('end', () => request.socket.destroySoon());
}

/** The caller of the request. Without a principal until the request was authenticated. */
function callerOf(request: FastifyRequest): Caller {
  // A request whose path cannot be read has no decorators.
  return ('caller' in request ? request.getDecorator<Caller | null>('caller') : null) ?? NOBODY;
}

const NOBODY: Caller = { principal: '' };

function principalOf(request: FastifyRequest): string {
  return callerOf(request).principal;
}

function ownerOf(request: FastifyRequest): SessionOwner {
  return { ...callerOf(request), endpoint: endpointOf(request) };
}

/** The server or view that serves the request, in the form for `HttpSessionPort.openSession`. */
function endpointOf(request: FastifyRequest): string | undefined {
  return request.getDecorator<string | null | undefined>('endpoint') ?? undefined;
}

/** The server or view that the request asks for. */
function askedEndpoint(request: FastifyRequest): string | undefined {
  const { key, view } = request.params as { readonly key?: string; readonly view?: string };
  return view === undefined ? key : endpointOfView(view);
}

function sessionIdOf(request: FastifyRequest): string | undefined {
  return header(request, 'mcp-session-id');
}

function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

interface BodyLimits {
  readonly maxBytes: number;
  /** Limit of the incomplete bodies of all requests together. A body that arrives in one piece does not count. */
  readonly memory: FairMemory;
  /** Owners of an incomplete body: the token and the session. */
  readonly owners: () => readonly string[];
}

/**
 * Reads the whole body, or returns the reason why it was not read.
 *
 * A body over the limit is read to its end and discarded, because closing the connection during the client's write
 * would reset it and lose the answer. The request timeout ends endless bodies.
 */
function readBody(
  request: IncomingMessage,
  { maxBytes, memory, owners }: BodyLimits,
): Promise<Uint8Array | 'too-large' | 'buffers-full' | 'aborted'> {
  return new Promise((resolve) => {
    const wholeLength = Number(request.headers['content-length']);
    let chunks: Buffer[] = [];
    let length = 0;
    let holder: Holder | undefined;
    const settle = (outcome: Uint8Array | 'too-large' | 'buffers-full' | 'aborted') => {
      chunks = [];
      if (holder !== undefined) memory.leave(holder);
      resolve(outcome);
    };
    let isRefused = false;
    const refuse = (why: 'too-large' | 'buffers-full') => {
      isRefused = true;
      settle(why);
    };
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (isRefused) return;
      if (length > maxBytes) {
        refuse('too-large');
        return;
      }
      chunks.push(chunk);
      if (length === wholeLength) return;
      holder ??= memory.join({ owners: owners(), evict: () => refuse('buffers-full') });
      if (!memory.grow(holder, length)) refuse('buffers-full');
    });
    request.once('end', () => settle(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.once('error', () => settle('aborted'));
    request.once('close', () => settle('aborted'));
  });
}

/** Reads the message in a body. Removes line breaks first, because servers read one message a line. */
function readMessage(body: Uint8Array, scan: ScanEnvelope): Envelope | Rejection {
  const scanned = scan(body);
  if (scanned.kind === 'rejected' && scanned.reason !== 'batch') return scanned;
  const line = onOneLine(body);
  return line === body ? scanned : scan(line);
}
