import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventSink } from '../../host/observe/events/events.js';
import type { HttpBind } from './bind.js';
import type { HttpLimits } from './limits.js';

interface ListenerOptions {
  readonly https: HttpBind['https'];
  readonly limits: HttpLimits;
  readonly events: EventSink;
}

/**
 * Time for which idle connections stay open, in milliseconds. Proxies must close theirs first, because a request on a connection
 * that is just being closed is lost. nginx closes them after 60 s, Caddy after 2 minutes.
 */
const KEEP_ALIVE_MS = 130_000;

/**
 * Node's HTTP servers and their open sockets.
 *
 * `localhost` has two servers, because it is an IPv4 and an IPv6 address. The limits apply to both together.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #servers: http.Server[] = [];
  #accepted = 0;
  readonly #connections: Connections;
  /** Sockets that carry HTTP (with TLS, the decrypted side), and their responses that wait for earlier responses. */
  readonly #http = new Map<net.Socket, Set<http.ServerResponse>>();
  readonly #responses = new Set<http.ServerResponse>();
  #closesAfterResponses = false;
  #stopped: Promise<unknown> | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    const { limits, events } = options;
    this.#connections = new Connections(limits.maxConnections, (socket) =>
      events.emit({ kind: 'http.connection-evicted', address: remoteAddressOf(socket) }),
    );
  }

  create(handler: http.RequestListener): http.Server {
    const { limits, https: tls } = this.#options;
    const options: http.ServerOptions = {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.receiveTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    };
    const server = tls === undefined ? http.createServer(options, handler) : this.#createTls(tls, options, handler);
    server.on('connection', (socket: net.Socket) => this.#accept(socket));
    server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: net.Socket) => this.#track(socket));
    if (tls !== undefined) {
      server.on('secureConnection', (socket: net.Socket) => this.#connections.decrypted(socket));
    }
    // Before the handler, which may answer at once.
    server.prependListener('request', (_, response) => this.#watch(response));
    this.#servers.push(server);
    return server;
  }

  /** Records that a request on this connection was authenticated, so that it is not closed for other connections. */
  authenticated(socket: net.Socket): void {
    this.#connections.authenticated(socket);
  }

  /** Number of open connections that carry HTTP. */
  get connections(): number {
    return this.#http.size;
  }

  /** Ends each connection with its next response, so that its client opens the next one, perhaps to another gateway. */
  closeAfterResponses(): void {
    this.#closesAfterResponses = true;
    for (const response of this.#responses) if (!response.headersSent) response.shouldKeepAlive = false;
  }

  /** Accepts no more connections, and goes on with the open ones. Resolves when all of them are closed. */
  stopListening(): Promise<unknown> {
    const stop = net.Server.prototype.close;
    this.#stopped ??= Promise.all(this.#servers.map((server) => new Promise((resolve) => stop.call(server, resolve))));
    return this.#stopped;
  }

  /** Stops listening, but first accepts the connections that the system has established already. Does not wait for their end. */
  async stopListeningWhenIdle(): Promise<void> {
    await idleTurn(() => this.#accepted);
    void this.stopListening();
  }

  /**
   * Accepts no more connections, and closes each one after the client has read everything that was written.
   *
   * Closes the HTTP servers last, because their `close` destroys connections whose complete answer is not read yet.
   */
  async end(): Promise<void> {
    const stopped = this.stopListening();
    for (const socket of this.#http.keys()) socket.destroySoon();
    await stopped;
    for (const server of this.#servers) server.close();
  }

  destroy(): void {
    this.#connections.destroy();
  }

  #createTls(
    pems: NonNullable<HttpBind['https']>,
    options: http.ServerOptions,
    handler: http.RequestListener,
  ): http.Server {
    const { limits, events } = this.#options;
    const server = https.createServer({ ...options, ...pems, handshakeTimeout: limits.headersTimeoutMs }, handler);
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      events.emit({ kind: 'http.connection-failed', code: error.code ?? error.name, address: remoteAddressOf(socket) });
      socket.destroy();
    });
    return server;
  }

  #accept(socket: net.Socket): void {
    this.#accepted += 1;
    if (this.#connections.accept(socket, this.#options.https !== undefined)) return;
    this.#options.events.emit({ kind: 'http.connection-refused', address: remoteAddressOf(socket) });
    socket.destroy();
  }

  #track(socket: net.Socket): void {
    if (socket.destroyed) return;
    const waiting = new Set<http.ServerResponse>();
    this.#http.set(socket, waiting);
    socket.once('close', () => {
      this.#http.delete(socket);
      for (const response of waiting) if (response.socket === null) response.destroy().emit('close');
    });
  }

  /** Also tracks a response that waits behind an earlier one, because Node emits `close` only on the response in progress. */
  #watch(response: http.ServerResponse): void {
    if (this.#closesAfterResponses) response.shouldKeepAlive = false;
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
    if (response.socket !== null) return;
    const waiting = this.#http.get(response.req.socket);
    waiting?.add(response);
    response.once('close', () => waiting?.delete(response));
  }
}

/**
 * The open connections. Closes old ones to make room for new ones.
 *
 * Any program that reaches the port can open connections and send nothing. A connection therefore counts as a stranger
 * until a request on it was authenticated. If there are too many connections, the oldest stranger is closed for the new
 * connection. A client sends its token right after it has connected, so it rarely is the oldest stranger. A connection
 * with an authenticated request is never closed for another one.
 */
class Connections {
  readonly #max: number;
  readonly #onEvicted: (socket: net.Socket) => void;
  /** Accepted sockets; with TLS the encrypted side. */
  readonly #open = new Set<net.Socket>();
  /** Connections without an authenticated request, by address, the oldest first. */
  readonly #strangers = new Map<string, Set<net.Socket>>();
  /** Connections with an authenticated request. With TLS, the decrypted side. */
  readonly #authenticated = new WeakSet<net.Socket>();
  /** With TLS, the encrypted side by peer, while the handshake runs. Then `#encrypted` has it by the decrypted side. */
  readonly #handshaking = new Map<string, net.Socket>();
  readonly #encrypted = new WeakMap<net.Socket, net.Socket>();

  constructor(max: number, onEvicted: (socket: net.Socket) => void) {
    this.#max = max;
    this.#onEvicted = onEvicted;
  }

  /** Accepts a connection. Returns `false` if there is no room, because all connections belong to clients with a token. */
  accept(socket: net.Socket, isEncrypted: boolean): boolean {
    const address = remoteAddressOf(socket);
    if (this.#open.size >= this.#max && !this.#evictOldest()) return false;
    if (socket.destroyed) return true;
    this.#open.add(socket);
    this.#strangers.set(address, (this.#strangers.get(address) ?? new Set()).add(socket));
    const peer = peerOf(socket);
    if (isEncrypted) this.#handshaking.set(peer, socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#handshaking.delete(peer);
      this.#forgetStranger(socket, address);
    });
    return true;
  }

  /** Records the decrypted side of a connection, on which requests come after the TLS handshake. */
  decrypted(socket: net.Socket): void {
    const peer = peerOf(socket);
    const encrypted = this.#handshaking.get(peer);
    if (encrypted !== undefined) this.#encrypted.set(socket, encrypted);
    this.#handshaking.delete(peer);
  }

  authenticated(socket: net.Socket): void {
    if (this.#authenticated.has(socket)) return;
    this.#authenticated.add(socket);
    this.#forgetStranger(this.#encrypted.get(socket) ?? socket, remoteAddressOf(socket));
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Closes the oldest stranger of the address with the most strangers. Returns `false` if there are none. */
  #evictOldest(): boolean {
    let fullest = '';
    let oldest: net.Socket | undefined;
    let most = 0;
    for (const [address, strangers] of this.#strangers) {
      if (strangers.size <= most) continue;
      [fullest, most] = [address, strangers.size];
      [oldest] = strangers;
    }
    if (oldest === undefined) return false;
    this.#onEvicted(oldest);
    // Removes the connection now, because `close` comes later.
    this.#open.delete(oldest);
    this.#forgetStranger(oldest, fullest);
    oldest.destroy();
    return true;
  }

  #forgetStranger(socket: net.Socket, address: string): void {
    const strangers = this.#strangers.get(address);
    strangers?.delete(socket);
    if (strangers?.size === 0) this.#strangers.delete(address);
  }
}

export interface ClientAddress {
  readonly address: string;
  readonly port: number;
}

/** The clients of the requests that other gateways have passed on. */
const PASSED_ON = new WeakMap<http.IncomingMessage, ClientAddress>();

/** Notes the client of a request that another gateway has passed on. */
export function passedOnFor(request: http.IncomingMessage, client: ClientAddress): void {
  PASSED_ON.set(request, client);
}

/** Returns the client of a request, also of a request that another gateway has passed on. */
export function clientOf(request: http.IncomingMessage): ClientAddress {
  const { socket } = request;
  return PASSED_ON.get(request) ?? { address: remoteAddressOf(socket), port: socket.remotePort ?? 0 };
}

export function remoteAddressOf(socket: { readonly remoteAddress?: string | undefined }): string {
  return socket.remoteAddress ?? 'unknown';
}

function peerOf(socket: net.Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

/** Longest wait, in turns of the event loop, for one in which no connection comes. */
const MOST_TURNS = 1_000;

/** Resolves after two turns of the event loop in which no connection was accepted, so that none waits. `accepted` counts them. */
async function idleTurn(accepted: () => number): Promise<void> {
  // The rest of the current turn may accept nothing.
  await nextTurn();
  for (let turn = 0, idle = 0; idle < 2 && turn < MOST_TURNS; turn += 1) {
    const before = accepted();
    await nextTurn();
    idle = accepted() === before ? idle + 1 : 0;
  }
}

/** Listens on another address. Resolves with `false` if this machine does not have the address. */
export function listenAlso(server: http.Server, host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT') resolve(false);
      else reject(error);
    });
    server.listen({ host, port }, () => resolve(true));
  });
}

export function portOf(server: http.Server): number {
  return (server.address() as net.AddressInfo).port;
}

const STATUS_OF_FAULT: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};

/** Answers input that is not an HTTP request, if the client can still understand an answer. Closes the connection. */
export function endBrokenConnection(error: NodeJS.ErrnoException, socket: net.Socket): void {
  // Node stores the current response here. After its head, a second status line would be garbage.
  const current = (socket as { _httpMessage?: { headersSent: boolean } | null })._httpMessage;
  if (socket.writable && !current?.headersSent && error.code !== 'ECONNRESET') {
    socket.write(`HTTP/1.1 ${STATUS_OF_FAULT[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  }
  socket.destroy();
}
