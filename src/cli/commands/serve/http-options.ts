import type { Transports } from '../../../app/serve.js';
import type { HttpSettings } from '../../../app/serve-http.js';
import { UsageError } from '../../../errors/usage-error.js';

/** The HTTP options of `serve`, in the form that `parseArgs` takes. */
export const HTTP_OPTIONS = {
  http: { type: 'string' },
  stdio: { type: 'boolean' },
  'no-auth': { type: 'boolean' },
  'allowed-host': { type: 'string', multiple: true },
  'allowed-origin': { type: 'string', multiple: true },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
} as const;

/** The parsed HTTP options. */
export interface HttpValues {
  readonly http?: string;
  readonly stdio?: boolean;
  readonly 'no-auth'?: boolean;
  readonly 'allowed-host'?: readonly string[];
  readonly 'allowed-origin'?: readonly string[];
  readonly 'tls-cert'?: string;
  readonly 'tls-key'?: string;
  /** The view of the client on stdin. */
  readonly view?: string;
}

/** Decides which transports to open. Throws a `UsageError` when the options contradict each other. */
export function readTransports(values: HttpValues): Transports {
  const { http, stdio = http === undefined } = values;
  if (http !== undefined && !stdio && values.view !== undefined) {
    throw new UsageError('`--view` is for the client on stdin', 'HTTP clients choose a view by the URL /mcp/v/NAME');
  }
  if (http !== undefined) return { stdio, http: readHttp(http, values) };
  const [option] = Object.keys(values).filter((name) => name !== 'stdio' && Object.hasOwn(HTTP_OPTIONS, name));
  if (option === undefined) return { stdio, http: undefined };
  throw new UsageError(`\`--${option}\` works only with HTTP`, 'add `--http PORT`');
}

function readHttp(address: string, values: HttpValues): HttpSettings {
  const { 'tls-cert': certFile, 'tls-key': keyFile } = values;
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new UsageError('`--tls-cert` and `--tls-key` belong together', 'pass both, or neither');
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

/** Parses `7411`, `localhost:7411` or `[::1]:7411`. Without a host, both loopback addresses. */
function readAddress(address: string): { host: string; port: number } {
  const { host = 'localhost', port } = ADDRESS.exec(address)?.groups ?? {};
  if (port === undefined || Number(port) > 65_535) {
    throw new UsageError(`\`--http ${address}\` has no valid port`, 'write `--http PORT` or `--http HOST:PORT`');
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}
