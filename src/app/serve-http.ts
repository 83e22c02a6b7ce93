import type { HttpConfig } from '../config/config.js';
import { HttpBindError, literal } from '../downstream/http/bind.js';
import { createHttpClients } from '../downstream/http/http-client.js';
import type { HttpEvent } from '../downstream/http/http-event.js';
import { type HttpTransport, openHttpTransport } from '../downstream/http/server.js';
import { readOrCreateToken, TokenFileError } from '../files/token-file.js';
import type { Logger } from '../observe/logger.js';
import { IDENTITY } from '../version.js';
import { createEraChooser } from './choose-era.js';
import type { Composition } from './compose.js';
import { UsageError } from './usage-error.js';
import { tokenFile } from './user-files.js';

/** What the command line says about the HTTP front. */
export interface HttpSettings {
  readonly host: string;
  readonly port: number;
  readonly noAuth: boolean;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
}

export interface ServeHttpOptions {
  readonly settings: HttpSettings;
  readonly limits: HttpConfig;
  readonly composition: Composition;
  readonly logger: Logger;
}

/** Opens the HTTP front; throws a `UsageError` when it cannot be, or must not be, opened as asked. */
export async function serveHttp({ settings, limits, composition, logger }: ServeHttpOptions): Promise<HttpTransport> {
  const { platform, gateway } = composition;
  const { host, port, noAuth, allowedHosts, allowedOrigins, tls } = settings;
  try {
    const front = await openHttpTransport({
      core: createHttpClients({
        scan: platform.scan,
        chooseEra: createEraChooser(platform, gateway, IDENTITY),
        hasServer: (key) => gateway.pool.has(key),
        isReady: () => gateway.isReady,
      }),
      ...platform,
      bind: {
        host,
        port,
        noAuth,
        tokens: noAuth ? [] : [await readOrCreateToken(tokenFile())],
        allowedHosts,
        allowedOrigins,
        ...(tls === undefined ? {} : { https: tls }),
      },
      limits,
      onEvent: (event) => logEvent(logger, event),
    });
    process.stderr.write(`Trunkline serves ${front.url}/mcp${noAuth ? '' : '; `trunkline token` shows the token'}\n`);
    return front;
  } catch (error) {
    throw asUsageError(error, settings);
  }
}

function logEvent(logger: Logger, event: HttpEvent): void {
  if (event.kind === 'failed') logger.error({ err: event.error }, 'a bug in the HTTP front');
  else logger.info({ ...event }, `http ${event.kind}`);
}

function asUsageError(error: unknown, { host, port, tls }: HttpSettings): unknown {
  if (error instanceof HttpBindError || error instanceof TokenFileError) {
    return new UsageError(error.message, 'see `trunkline serve --help`', { cause: error });
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  const isAboutTls =
    error instanceof Error &&
    tls !== undefined &&
    ('path' in error || code === 'EISDIR' || code?.startsWith('ERR_OSSL'));
  if (isAboutTls) {
    const hint = 'name PEM files that you may read with --tls-cert and --tls-key';
    return new UsageError(`the TLS files cannot be used (${error.message})`, hint, { cause: error });
  }
  const reason = code === undefined ? undefined : LISTEN_FAULTS.get(code);
  if (reason === undefined) return error;
  return new UsageError(
    `cannot listen on ${literal(host)}:${port}: ${reason}`,
    'name another one with --http HOST:PORT',
  );
}

const LISTEN_FAULTS = new Map([
  ['EADDRINUSE', 'the port is in use'],
  ['EADDRNOTAVAIL', 'this machine does not have the address'],
  ['EACCES', 'the port may not be used'],
  ['ENOTFOUND', 'there is no such host'],
  ['EAI_AGAIN', 'the host cannot be looked up'],
]);
