import { isIP } from 'node:net';
import { isLoopback, LOOPBACK_NAMES } from '../../host/http/addresses.js';

/** The address of the HTTP transport, and its rules for accepting clients. */
export interface HttpBind {
  /** An address, or `localhost` for both loopback addresses. */
  readonly host: string;
  /** Port to listen on; 0 takes a free port. */
  readonly port: number;
  /** Accepted tokens. A client must send one of them. */
  readonly tokens: readonly string[];
  /** Accepts every client without a token. Allowed on loopback only. */
  readonly noAuth: boolean;
  /** Whether users have tokens of their own, so that `tokens` is empty. */
  readonly hasUsers?: boolean;
  /** Additional values of `Host`, as clients send them. They include the port, unless it is the default of the scheme. */
  readonly allowedHosts: readonly string[];
  /** Additional values of `Origin`: scheme, host and port. */
  readonly allowedOrigins: readonly string[];
  /** The certificate and its key, as PEM. */
  readonly https?: { readonly cert: Buffer; readonly key: Buffer };
}

/** Error for settings that would let unknown clients in, or that cannot work. */
export class HttpBindError extends Error {
  override readonly name = 'HttpBindError';
}

/** Shortest token, in characters, because 32 characters of Base64 are 192 bits, and a user probably invented a shorter one. */
const MIN_TOKEN_LENGTH = 32;

/** Finds an error in the settings. An address that other machines can reach needs a token and allowed hosts. */
export function checkBind(bind: HttpBind): HttpBindError | undefined {
  const problem = problemOf(bind);
  return problem === undefined ? undefined : new HttpBindError(problem);
}

function problemOf({
  host,
  port,
  tokens,
  noAuth,
  hasUsers = false,
  allowedHosts,
  allowedOrigins,
}: HttpBind): string | undefined {
  const isLocal = isLoopback(host);
  const listening = `Listening on ${host === '' ? 'all addresses' : host}`;
  if (noAuth && hasUsers) return 'Users have to log in (`gateway.http.auth`), so there is no way in without a token';
  if (noAuth && !isLocal) {
    return `${listening} without authentication would let the whole network in; use a loopback address or a token`;
  }
  if (!noAuth && !hasUsers && tokens.length === 0) return `${listening} needs a token`;
  if (!noAuth && tokens.some((token) => token.length < MIN_TOKEN_LENGTH || !/^[!-~]+$/.test(token))) {
    return `A token must have at least ${MIN_TOKEN_LENGTH} visible ASCII characters and no white space`;
  }
  if (!isLocal && allowedHosts.length === 0) {
    return `${listening}, which others can reach, needs a list of allowed hosts, such as gateway.example:${port}`;
  }
  const badHost = allowedHosts.find((allowed) => !isHostHeader(allowed));
  if (badHost !== undefined) return `Allowed host "${badHost}" must be host or host:port, without a scheme`;
  const badOrigin = allowedOrigins.find((origin) => !isOrigin(origin));
  return badOrigin && `Allowed origin "${badOrigin}" must be scheme://host or scheme://host:port`;
}

/** Accepted names, in lower case. */
export interface AllowedNames {
  /** Values of `Host`. */
  readonly hosts: ReadonlySet<string>;
  /** Values of `Origin`: this gateway itself, and `pages`. */
  readonly origins: ReadonlySet<string>;
  /** Origins of other sites whose pages may read the answers, because the configuration names them. */
  readonly pages: ReadonlySet<string>;
}

/** Returns the accepted names of a gateway that listens on this port. */
export function allowedNames(bind: HttpBind, port: number): AllowedNames {
  const scheme = bind.https === undefined ? 'http' : 'https';
  const own = isLoopback(bind.host) ? [...LOOPBACK_NAMES, inBrackets(bind.host)] : [];
  const isDefaultPort = port === (scheme === 'http' ? 80 : 443);
  const hosts = [...own.map((name) => `${name}:${port}`), ...(isDefaultPort ? own : []), ...bind.allowedHosts];
  const origins = [...hosts.map((host) => `${scheme}://${host}`), ...bind.allowedOrigins];
  return { hosts: lowerCased(hosts), origins: lowerCased(origins), pages: lowerCased(bind.allowedOrigins) };
}

/** Whether the text is a name or an address, with a port or without. */
export function isHostHeader(text: string): boolean {
  return /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(text);
}

/** Whether the text is exactly the form that browsers send. Any other form would never match. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && `${new URL(text).protocol}//${new URL(text).host}` === text.toLowerCase();
}

/** Returns the host as written before a port. IPv6 addresses get brackets. */
export function inBrackets(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}

function lowerCased(names: readonly string[]): Set<string> {
  return new Set(names.map((name) => name.toLowerCase()));
}
