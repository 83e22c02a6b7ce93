import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpLimits } from '../../downstream/http/limits.js';
import { endBrokenConnection, Listener } from '../../downstream/http/listener.js';
import type { EventSink } from '../../host/observe/events/events.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { ClusterView, MemberLoad } from './members.js';
import {
  HOMES_PATH,
  MEMBERS_PATH,
  PING_PATH,
  type RequestVerifier,
  SIGNATURE_HEADER,
  type VerifiedRequest,
} from './signed-request.js';

interface PeerListenerOptions {
  readonly limits: HttpLimits;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly verifier: RequestVerifier;
  readonly facts: () => MemberLoad;
  readonly view: () => ClusterView;
  readonly isHome: (key: string) => boolean;
  readonly onPing: (name: string) => void;
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void;
}

/** Factor between the limit of connections here and that for clients, because each request that is passed on needs a connection. */
const PEER_CONNECTIONS = 10;
/** Factor between the limit of headers here and that for clients, because they have the groups of a user instead of the token. */
const PEER_HEADERS = 4;

/** Time that the other gateways have to read their last bytes, in milliseconds. */
const CLOSE_GRACE_MS = 500;

/** The port for the other gateways. Refuses a request without a valid signature with status 401, and does not read its body. */
export class PeerListener {
  readonly #options: PeerListenerOptions;
  readonly #listener: Listener;
  readonly #verified = new WeakMap<IncomingMessage, VerifiedRequest>();
  /** Connections by the names of the gateways. */
  readonly #connections = new Map<string, Set<Socket>>();
  #accepts = true;
  /** Numbers of requests: passed on and accepted, and refused. */
  readonly counts = { accepted: 0, refused: 0 };

  constructor(options: PeerListenerOptions) {
    this.#options = options;
    const { limits, events } = options;
    const maxConnections = limits.maxConnections * PEER_CONNECTIONS;
    const maxHeaderBytes = limits.maxHeaderBytes * PEER_HEADERS;
    this.#listener = new Listener({ https: undefined, limits: { ...limits, maxConnections, maxHeaderBytes }, events });
  }

  /** Returns the facts that another gateway has signed about this request; `undefined` for a request of a client. */
  received(request: IncomingMessage): VerifiedRequest | undefined {
    return this.#verified.get(request);
  }

  /** Resolves when it listens. Rejects with the error of the system. */
  async listen(host: string, port: number): Promise<void> {
    const server = this.#listener.create((request, response) => this.#serve(request, response));
    server.on('clientError', endBrokenConnection);
    server.listen({ host, port });
    await once(server, 'listening');
  }

  get connections(): number {
    return this.#listener.connections;
  }

  isConnected(name: string): boolean {
    return this.#connections.has(name);
  }

  /** Refuses the requests of other gateways from now on, which then serve them themselves. */
  refuse(): void {
    this.#accepts = false;
  }

  /** Ends the connections of a gateway that does not answer, because its clients are at other gateways now. */
  break(name: string): void {
    for (const socket of this.#connections.get(name) ?? []) socket.destroy();
  }

  async close(): Promise<void> {
    const cancel = this.#options.clock.schedule(CLOSE_GRACE_MS, () => this.#listener.destroy());
    await this.#listener.end();
    cancel();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { verifier, facts, view, isHome, onPing, serve } = this.#options;
    const verified = verifier.verify(request);
    if (verified === undefined || (request.method !== 'POST' && hasBody(request))) {
      this.counts.refused += 1;
      response.writeHead(401, { connection: 'close', 'content-length': 0 }).end();
      return;
    }
    this.#track(verified.from, request.socket);
    if (verified.caller !== undefined && this.#accepts) {
      this.counts.accepted += 1;
      this.#verified.set(request, verified);
      response.setHeader(SIGNATURE_HEADER, verifier.proofFor(request));
      serve(request, response);
      return;
    }
    const respond = (content: object) => {
      const body = JSON.stringify(content);
      const headers = { 'content-type': 'application/json', [SIGNATURE_HEADER]: verifier.proofFor(request, body) };
      response.writeHead(200, headers).end(body);
    };
    if (request.url === PING_PATH) {
      onPing(verified.from);
      respond(facts());
    } else if (request.url === MEMBERS_PATH) respond(view());
    else if (request.url?.startsWith(HOMES_PATH) === true)
      respond({ isHome: isHome(decodeURIComponent(request.url.slice(HOMES_PATH.length))) });
    else response.writeHead(401, { connection: 'close', 'content-length': 0 }).end();
  }

  #track(name: string, socket: Socket): void {
    this.#listener.authenticated(socket);
    const connections = this.#connections.get(name) ?? new Set();
    if (connections.has(socket)) return;
    this.#connections.set(name, connections.add(socket));
    socket.once('close', () => {
      connections.delete(socket);
      if (connections.size === 0) this.#connections.delete(name);
    });
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
}
