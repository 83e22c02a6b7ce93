import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import type { EventSink } from '../../observe/events/event-bus.js';
import type { HttpBind } from './bind.js';
import { addressOf, Connections } from './connections.js';
import type { HttpLimits } from './limits.js';

/** How long idle connections stay open: longer than the minute that most proxies use. */
const KEEP_ALIVE_MS = 72_000;

export interface ListenerOptions {
  readonly https: HttpBind['https'];
  readonly limits: HttpLimits;
  readonly events: EventSink;
}

/**
 * Node's HTTP servers and their open sockets.
 *
 * There are two servers for `localhost`, which is an IPv4 and an IPv6 address. The limits apply to both together.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #servers: http.Server[] = [];
  readonly #connections: Connections;
  /** Sockets that carry HTTP, with TLS the decrypted side, and their responses that wait for earlier ones. */
  readonly #http = new Map<net.Socket, Set<http.ServerResponse>>();

  constructor(options: ListenerOptions) {
    this.#options = options;
    const { limits, events } = options;
    this.#connections = new Connections(limits.maxConnections, (socket) =>
      events.emit({ kind: 'http.connection-evicted', address: addressOf(socket) }),
    );
  }

  create(handler: http.RequestListener): http.Server {
    const { limits, https: tls } = this.#options;
    const options: http.ServerOptions = {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    };
    const server = tls === undefined ? http.createServer(options, handler) : this.#createTls(tls, options, handler);
    server.on('connection', (socket: net.Socket) => this.#accept(socket));
    server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: net.Socket) => this.#track(socket));
    if (tls !== undefined) {
      server.on('secureConnection', (socket: net.Socket) => this.#connections.decrypted(socket));
    }
    server.on('request', (_, response) => this.#watch(response));
    this.#servers.push(server);
    return server;
  }

  /** A request on this connection was authenticated, so the connection is not closed for others. */
  authenticated(socket: net.Socket): void {
    this.#connections.authenticated(socket);
  }

  /**
   * Accepts no more connections, and closes each one after the client has read what was written.
   *
   * The `close` of an HTTP server comes last, because it destroys connections whose complete answer is not read yet.
   */
  async end(): Promise<void> {
    const stopListening = net.Server.prototype.close;
    const closed = this.#servers.map((server) => new Promise((resolve) => stopListening.call(server, resolve)));
    for (const socket of this.#http.keys()) socket.destroySoon();
    await Promise.all(closed);
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
      events.emit({ kind: 'http.connection-failed', code: error.code ?? error.name, address: addressOf(socket) });
      socket.destroy();
    });
    return server;
  }

  #accept(socket: net.Socket): void {
    if (this.#connections.accept(socket, this.#options.https !== undefined)) return;
    this.#options.events.emit({ kind: 'http.connection-refused', address: addressOf(socket) });
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

  /** Node tells only the response that it writes of the end of the connection, and none of those that wait behind it. */
  #watch(response: http.ServerResponse): void {
    if (response.socket !== null) return;
    const waiting = this.#http.get(response.req.socket);
    waiting?.add(response);
    response.once('close', () => waiting?.delete(response));
  }
}

/** Listens on another address. `false` when this machine does not have the address. */
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

/** Answers input that is not an HTTP request, if an answer can still be understood, and closes the connection. */
export function endBrokenConnection(error: NodeJS.ErrnoException, socket: net.Socket): void {
  // Node stores the current response here. A status line in the middle of a response would be garbage.
  const current = (socket as { _httpMessage?: { headersSent: boolean } | null })._httpMessage;
  if (socket.writable && !current?.headersSent && error.code !== 'ECONNRESET') {
    socket.write(`HTTP/1.1 ${STATUS_OF_FAULT[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  }
  socket.destroy();
}
