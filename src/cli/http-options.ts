import type { Transports } from '../app/serve.js';
import type { HttpSettings } from '../app/serve-http.js';
import { UsageError } from '../app/usage-error.js';

/** The options of `serve` that are about HTTP, as `parseArgs` takes them. */
export const HTTP_OPTIONS = {
  http: { type: 'string' },
  stdio: { type: 'boolean' },
  'no-auth': { type: 'boolean' },
  'allowed-host': { type: 'string', multiple: true },
  'allowed-origin': { type: 'string', multiple: true },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
} as const;

/** What `parseArgs` makes of them. */
export interface HttpValues {
  readonly http?: string;
  readonly stdio?: boolean;
  readonly 'no-auth'?: boolean;
  readonly 'allowed-host'?: readonly string[];
  readonly 'allowed-origin'?: readonly string[];
  readonly 'tls-cert'?: string;
  readonly 'tls-key'?: string;
}

/** Which fronts are to be opened; throws a `UsageError` when the options do not fit each other. */
export function readTransports(values: HttpValues): Transports {
  const { http, stdio = http === undefined } = values;
  if (http !== undefined) return { stdio, http: readHttp(http, values) };
  const [option] = Object.keys(values).filter((name) => name !== 'stdio' && Object.hasOwn(HTTP_OPTIONS, name));
  if (option === undefined) return { stdio, http: undefined };
  throw new UsageError(`\`--${option}\` is about HTTP, which is off`, 'add `--http PORT`');
}

function readHttp(address: string, values: HttpValues): HttpSettings {
  const { 'tls-cert': certFile, 'tls-key': keyFile } = values;
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new UsageError('`--tls-cert` and `--tls-key` go together', 'give both, or none');
  }
  return {
    ...readAddress(address),
    noAuth: values['no-auth'] === true,
    allowedHosts: values['allowed-host'] ?? [],
    allowedOrigins: values['allowed-origin'] ?? [],
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
  };
}

const ADDRESS = /^(?:(?<host>[^:[\]]+|\[[0-9a-f:.]+\]):)?(?<port>\d{1,5})$/i;

/** `7411`, `localhost:7411`, `[::1]:7411`. Without a host, both loopback addresses. */
function readAddress(address: string): { host: string; port: number } {
  const { host = 'localhost', port } = ADDRESS.exec(address)?.groups ?? {};
  if (port === undefined || Number(port) > 65_535) {
    throw new UsageError(`\`--http ${address}\` names no port`, 'write `--http PORT` or `--http HOST:PORT`');
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}
