import { once } from 'node:events';
import { chmod, lstat, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { loopbackOf } from '../../config/schema/settings.js';
import { allowedNames } from '../../downstream/http/bind.js';
import { refuseHost } from '../../downstream/http/header-guards.js';
import { errorCode, errorMessage } from '../../host/errors/error-text.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { CONTENT_TYPE } from './exposition.js';

interface MetricsEndpointOptions {
  /** A loopback address with a port, or the path of a unix socket. */
  readonly address: string;
  readonly clock: Clock;
  readonly read: () => Promise<string>;
  /** Called when the address cannot be used, with the reason as a sentence, and with `undefined` when it can again. */
  readonly onFault: (fault: string | undefined) => void;
}

/** Time between two attempts to listen, in milliseconds. The process that has the address may be an earlier hub that is ending. */
const RETRY_MS = 2_000;
const MAX_CONNECTIONS = 16;
const TIMEOUT_MS = 10_000;

/** Serves `GET /metrics` without a token, to programs on this machine. Tries again for as long as the address cannot be used. */
export class MetricsEndpoint {
  readonly #options: MetricsEndpointOptions;
  #server: Server | undefined;
  #cancel: Cancel = () => {};
  #isClosed = false;

  constructor(options: MetricsEndpointOptions) {
    this.#options = options;
  }

  /** Listens, or begins to wait for the address. Never rejects. */
  async open(): Promise<void> {
    const { address, clock, onFault } = this.#options;
    try {
      this.#server = await this.#listen(loopbackOf(address) ?? { path: address });
      onFault(undefined);
    } catch (error) {
      onFault(`The metrics cannot be served at ${address}, because ${reasonOf(error)}. Trunkline tries again.`);
      if (!this.#isClosed) this.#cancel = clock.schedule(RETRY_MS, () => void this.open());
    }
    if (this.#isClosed) await this.close();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    const server = this.#server;
    if (server === undefined) return;
    server.closeAllConnections();
    this.#server = undefined;
    await new Promise((resolve) => server.close(resolve));
  }

  async #listen(where: { readonly host: string; readonly port: number } | { readonly path: string }): Promise<Server> {
    const hosts = 'path' in where ? undefined : allowedNames({ ...where, ...NO_OTHERS }, where.port).hosts;
    const server = createServer({ requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS }, (request, response) => {
      void this.#answer(request, response, hosts);
    });
    server.maxConnections = MAX_CONNECTIONS;
    if ('path' in where) await removeUnused(where.path);
    server.listen(where);
    await once(server, 'listening');
    server.on('error', () => {});
    if ('path' in where && process.platform !== 'win32') await chmod(where.path, 0o600);
    return server;
  }

  async #answer(
    { method, url = '', headers }: IncomingMessage,
    response: ServerResponse,
    hosts: ReadonlySet<string> | undefined,
  ): Promise<void> {
    const refusal = hosts && refuseHost(headers.host, hosts);
    const end = (status: number, text: string, type = 'text/plain; charset=utf-8') =>
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text);
    if (refusal !== undefined || headers.origin !== undefined)
      end(403, 'Only programs of this machine may read this.\n');
    else if (url.split('?')[0] !== '/metrics') end(404, 'Only /metrics is here.\n');
    else if (method !== 'GET') end(405, 'Only GET is allowed.\n');
    else
      await this.#options.read().then(
        (text) => end(200, text, CONTENT_TYPE),
        () => end(500, 'Internal error\n'),
      );
  }
}

const NO_OTHERS = { tokens: [], noAuth: true, allowedHosts: [], allowedOrigins: [] };

/** Removes the socket of a process that was killed. Every other file stays. */
async function removeUnused(path: string): Promise<void> {
  const isSocket = await lstat(path).then(
    (stats) => stats.isSocket(),
    () => false,
  );
  if (!isSocket) return;
  const isUnused = await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error) => resolve(errorCode(error) === 'ECONNREFUSED'));
  });
  if (isUnused) await unlink(path).catch(() => {});
}

function reasonOf(error: unknown): string {
  return errorCode(error) === 'EADDRINUSE' ? 'another process listens there' : errorMessage(error);
}
