import { parseArgs } from 'node:util';
import type { Transports } from '../../../app/serve.js';
import type { HttpSettings } from '../../../app/serve-http.js';
import { UsageError } from '../../../host/errors/usage-error.js';

/** An option of serving, in the form that `parseArgs` takes, with the words of the help. */
export interface ServeOption {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly value?: string;
  readonly about: string;
}

const HTTP_OPTIONS = {
  http: { type: 'string', value: '[HOST:]PORT', about: 'serve HTTP; without HOST on both loopback addresses' },
  stdio: { type: 'boolean', about: 'with --http: also serve stdin and stdout' },
  'no-auth': { type: 'boolean', about: 'require no token; only on loopback addresses' },
  'allowed-host': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    about:
      'accept this Host header too, with its port; repeatable. Required for addresses that other machines can reach',
  },
  'allowed-origin': {
    type: 'string',
    multiple: true,
    value: 'URL',
    about: 'accept this Origin header too; repeatable',
  },
  'tls-cert': { type: 'string', value: 'FILE', about: 'serve HTTPS with this certificate (PEM); needs --tls-key' },
  'tls-key': { type: 'string', value: 'FILE', about: 'the private key (PEM) of the certificate' },
} as const satisfies Record<string, ServeOption>;

/** The options of `serve` besides those of all commands. */
export const SERVE_OPTIONS = {
  view: { type: 'string', value: 'NAME', about: 'show the client this view of the configuration' },
  'no-hub': { type: 'boolean', about: 'start servers of its own for this client' },
  record: { type: 'string', value: 'FILE', about: 'record all messages to this file; implies --no-hub' },
  max: { type: 'string', value: 'SIZE', about: 'with --record: keep the newest messages, SIZE in all (100MiB)' },
  ...HTTP_OPTIONS,
} as const satisfies Record<string, ServeOption>;

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  verbose: { type: 'boolean', short: 'v', multiple: true },
  'log-file': { type: 'string' },
  place: { type: 'string' },
  ...SERVE_OPTIONS,
} as const;

/** Parses a command line without the program; `undefined` if it asks for something other than serving, or has a mistake. */
export function readServing(args: string[]) {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    const command = positionals.join(' ') || 'serve';
    const isServing = command === 'serve' ? values.place === undefined : command === 'hub serve' && values.place;
    return isServing ? { values, command } : undefined;
  } catch {
    return undefined;
  }
}

export interface HttpValues {
  readonly http?: string;
  readonly stdio?: boolean;
  readonly 'no-auth'?: boolean;
  readonly 'allowed-host'?: readonly string[];
  readonly 'allowed-origin'?: readonly string[];
  readonly 'tls-cert'?: string;
  readonly 'tls-key'?: string;
  readonly view?: string;
}

/** Decides which transports to open. Throws a `UsageError` if the options contradict each other, or for an address without a valid port. */
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

/** Parses `7411`, `localhost:7411` or `[::1]:7411`. Without a host, returns `localhost`, which stands for both loopback addresses. */
function readAddress(address: string): { host: string; port: number } {
  const { host = 'localhost', port } = ADDRESS.exec(address)?.groups ?? {};
  if (port === undefined || Number(port) > 65_535) {
    throw new UsageError(`\`--http ${address}\` has no valid port`, 'write `--http PORT` or `--http HOST:PORT`');
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}
