import { type Agent, type ClientRequest, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { type LookupFunction, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { VERSION } from '../../version.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { errorCode, errorMessage } from '../errors/error-text.js';
import { ACCEPT_ENCODING, decode, type HttpAnswer } from './decode.js';

/** Longest wait for a connection: name, TCP, TLS and proxy together, in milliseconds. */
const CONNECT_MS = 10_000;
/** Longest wait for the headers of the answer after that, in milliseconds. */
const HEADERS_MS = 300_000;

/** Headers of every request, unless it has its own of these names. Firewalls refuse requests without the first one. */
export const DEFAULT_HEADERS: Readonly<Record<string, string>> = {
  'user-agent': `trunkline/${VERSION}`,
  'accept-encoding': ACCEPT_ENCODING,
};

export interface HttpRequest {
  readonly url: URL;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly agent: Agent;
  /** Ends the request, and the reading of its answer. */
  readonly signal: AbortSignal;
  /** Called when bytes of the request can leave this machine. */
  readonly onSent?: () => void;
  /** Resolves the name of the host; the default is that of the system. A proxy resolves names itself. */
  readonly lookup?: LookupFunction;
}

export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** Whether a byte of the request may have reached the server. */
  readonly sent: boolean;

  constructor(message: string, sent: boolean, cause?: unknown) {
    super(message, { cause });
    this.sent = sent;
  }
}

/**
 * Sends one request and resolves with its answer once the headers have come. The body is read by the caller. Follows no
 * redirect. Rejects with a `RequestError`.
 */
export async function sendRequest(
  clock: Clock,
  { url, method, headers, body, agent, signal, onSent, lookup }: HttpRequest,
): Promise<HttpAnswer> {
  const idle = Object.values(agent.freeSockets).flatMap((sockets = []) => sockets);
  if (idle.some((socket) => socket instanceof Socket)) await closedSocketsNoticed();
  return await new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    let isConnected = false;
    let cancel: Cancel = () => {};
    const wait = (ms: number, what: string) => {
      cancel();
      cancel = clock.schedule(ms, () => request.destroy(new Error(what)));
    };
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const all = { ...DEFAULT_HEADERS, ...headers, ...length };
    const request = send(url, { method, agent, signal, headers: all, ...(lookup && { lookup }) });
    wait(CONNECT_MS, `no connection within ${CONNECT_MS / 1_000} s`);
    whenConnected(request, () => {
      isConnected = true;
      onSent?.();
      wait(HEADERS_MS, `no answer within ${HEADERS_MS / 1_000} s`);
    });
    // Without this, the answer of a proxy that opens no tunnel would pass for one of the server.
    request.once('proxyConnect', ({ statusCode = 0 }: { readonly statusCode?: number }) => {
      if (statusCode !== 200) request.destroy(new Error(`the proxy answers HTTP ${statusCode}`));
    });
    request.once('response', (response) => {
      cancel();
      // Ignores the error of an answer that breaks off, because its reader looks at `complete`.
      response.on('error', () => {});
      resolve(decode(response));
    });
    request.on('error', (error) => {
      cancel();
      reject(new RequestError(describe(error), isConnected, error));
    });
    request.end(body);
  });
}

/**
 * Resolves when the agent has dropped idle connections whose end has arrived. A request on such a connection would be lost, and
 * could not be sent again, because the server may also close a connection after it has read a request. The second turn of the
 * event loop reads all sockets.
 */
export function closedSocketsNoticed(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

/** Calls back when bytes of the request can leave this machine. */
function whenConnected(request: ClientRequest, connected: () => void): void {
  request.once('socket', (socket: Socket & Partial<Pick<TLSSocket, 'encrypted'>> & { secureConnecting?: boolean }) => {
    if (socket.secureConnecting === true || (socket.connecting && socket.encrypted === true))
      socket.once('secureConnect', connected);
    else if (socket.connecting) socket.once('connect', connected);
    else connected();
  });
}

/** Reasons by the code of the system or of OpenSSL, as clauses. */
const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its host name cannot be resolved',
  EAI_AGAIN: 'its host name cannot be resolved at the moment',
  ECONNREFUSED: 'the connection is refused',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  ENETUNREACH: 'there is no network to it',
  EHOSTUNREACH:
    process.platform === 'darwin'
      ? 'there is no route to its host; macOS may forbid the local network to the program that has started Trunkline'
      : 'there is no route to its host',
  ENETDOWN: 'the network is down',
  ETIMEDOUT: 'the connection timed out',
};

function describe(error: unknown): string {
  const code = errorCode(error);
  const reason = code === undefined ? undefined : REASONS[code];
  if (reason !== undefined) return `${reason} (${code})`;
  return code === undefined ? errorMessage(error) : `${errorMessage(error)} (${code})`;
}
