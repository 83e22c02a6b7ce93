import { createHash, timingSafeEqual } from 'node:crypto';
import { RPC_CODES } from '../../wire/jsonrpc/message.js';
import { isLegacyRevision, LEGACY_REVISIONS } from '../../wire/mcp/revisions.js';
import { isHostHeader } from './bind.js';
import { bearerToken, type CallerCheck, type CallerOrRefusal } from './caller.js';
import { type HttpRefusal, retryAfter } from './http-refusal.js';
import { FailureWindow } from './rate-limit.js';

/** Value of a header from Node. Requests that repeat such a header were refused before. */
type Header = string | undefined;

/** Headers that must not be repeated, because programs disagree on which of the values counts. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'authorization', 'origin', 'content-type', 'content-length'],
  ...['mcp-session-id', 'mcp-protocol-version', 'last-event-id', 'mcp-method', 'mcp-name'],
]);

/**
 * Refuses a request that repeats a header with one value (RFC 9112, section 3.2, and RFC 9110, section 5.3). Node would
 * use the first value or join the values, and a proxy in front of Trunkline may have checked another one.
 */
export function refuseRepeatedHeader(
  headers: Readonly<Record<string, unknown>>,
  rawHeaders: readonly string[],
): HttpRefusal | undefined {
  // Names and values alternate in the raw headers. Ordinary requests repeat no header, so one comparison decides.
  if (Object.keys(headers).length * 2 === rawHeaders.length) return undefined;
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const isSingle = (name: string) => SINGLE_HEADERS.has(name) || name.startsWith('mcp-param-');
  const repeated = names.find((name, index) => isSingle(name) && names.indexOf(name) !== index);
  if (repeated === undefined) return undefined;
  return { status: 400, message: `The header ${repeated} is repeated; it must be sent once` };
}

/**
 * Refuses a request of another version (RFC 9110, section 15.6.6), and closes the connection. Node accepts such a
 * version in the request line, although the message then has the syntax of HTTP/1.1.
 */
export function refuseHttpVersion(httpVersion: string): HttpRefusal | undefined {
  if (httpVersion === '1.1' || httpVersion === '1.0') return undefined;
  const message = 'The version of HTTP must be 1.1 or 1.0';
  return { status: 505, code: RPC_CODES.invalidRequest, message, headers: CLOSE };
}

/**
 * Refuses every transfer coding but `chunked` (RFC 9112, section 6.1), and closes the connection. Nothing here decodes
 * another coding. Two programs that disagree about the end of a body can be made to see different requests.
 */
export function refuseTransferEncoding(encoding: Header, httpVersion: string): HttpRefusal | undefined {
  if (encoding === undefined) return undefined;
  if (httpVersion !== '1.1') {
    return { status: 400, message: 'Transfer-Encoding needs HTTP/1.1', headers: CLOSE };
  }
  if (encoding.trim().toLowerCase() === 'chunked') return undefined;
  const message = 'Transfer-Encoding must be chunked and nothing else';
  return { status: 501, code: RPC_CODES.invalidRequest, message, headers: CLOSE };
}

/** Longest value of a header that servers get from a client, in bytes. */
const MAX_PASSED_BYTES = 4 * 1024;

/**
 * Refuses a request whose headers for servers are repeated or too long. A proxy may have checked another one of two values, and a
 * server that misses a header may take the client for another one. Node has refused control characters.
 */
export function refusePassedHeaders(
  headersDistinct: Readonly<Record<string, readonly string[] | undefined>>,
  passed: readonly string[],
): HttpRefusal | undefined {
  for (const name of passed) {
    const [value, ...others] = headersDistinct[name] ?? [];
    if (value === undefined) continue;
    if (others.length > 0) return { status: 400, message: `The header ${name} is repeated; it must be sent once` };
    // Node reads each byte as one character.
    if (value.length > MAX_PASSED_BYTES)
      return { status: 400, message: `The header ${name} is longer than ${MAX_PASSED_BYTES} bytes` };
  }
  return undefined;
}

const CLOSE = { connection: 'close' };

/**
 * Refuses DNS rebinding, in which a page points its own name at this address and so sends that name as `Host`.
 *
 * Compares whole names with the port. Comparing a prefix would accept `127.0.0.1.evil.example`.
 */
export function refuseHost(host: Header, allowed: ReadonlySet<string>): HttpRefusal | undefined {
  if (host !== undefined && allowed.has(host.toLowerCase())) return undefined;
  return {
    status: 403,
    message: 'This Host is not allowed; see --allowed-host',
    named: { header: 'Host', name: nameIn(host, isHostHeader) },
  };
}

/**
 * Refuses an absolute target, such as `http://evil.example/mcp`, if its host is not allowed. The host of the target
 * replaces `Host` (RFC 9112, section 3.2.2). A proxy may have checked either of them, so both must be allowed.
 */
export function refuseTarget(target: string, allowed: ReadonlySet<string>): HttpRefusal | undefined {
  if (target.startsWith('/')) return undefined;
  const [, host] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target) ?? [];
  return refuseHost(host, allowed);
}

/** Refuses other origins. Only browsers send `Origin`; sandboxed pages and files send `null`. */
export function refuseOrigin(origin: Header, allowed: ReadonlySet<string>): HttpRefusal | undefined {
  if (origin === undefined || allowed.has(origin.toLowerCase())) return undefined;
  return {
    status: 403,
    message: 'This Origin is not allowed; see --allowed-origin',
    named: { header: 'Origin', name: nameIn(origin, isOriginHeader) },
  };
}

const MAX_NAME = 100;

/** Returns the value if it is a name. Other text of an unknown client must not reach a model that reads the status. */
function nameIn(value: Header, isName: (value: string) => boolean): string {
  if (value === undefined) return '(none)';
  if (value.length > MAX_NAME) return `(${value.length} characters)`;
  return isName(value) ? value : '(no valid name)';
}

function isOriginHeader(value: string): boolean {
  const [, scheme, host = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.+)$/i.exec(value) ?? [];
  return value === 'null' || (scheme !== undefined && isHostHeader(host));
}

/** Refuses compressed bodies, because a few compressed bytes can unpack to more than the body limit. */
export function refuseContentEncoding(encoding: Header): HttpRefusal | undefined {
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return undefined;
  return { status: 415, message: 'The body must not be compressed', headers: { 'accept-encoding': 'identity' } };
}

/** Refuses other content types than JSON, because an HTML form can send those across sites. */
export function refuseContentType(contentType: Header): HttpRefusal | undefined {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';');
  const isUtf8 = parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=');
    return name.trim() !== 'charset' || /^\s*"?utf-?8"?\s*$/.test(value);
  });
  if (type.trim() === 'application/json' && isUtf8) return undefined;
  return { status: 415, message: 'The body must be application/json in UTF-8' };
}

export function refuseAccept(accept: Header, needed: readonly string[]): HttpRefusal | undefined {
  // Without the header, a client takes everything (RFC 9110, section 12.5.1).
  if (accept === undefined) return undefined;
  const ranges = acceptedRanges(accept);
  if (needed.every((type) => ranges.has(type) || ranges.has(`${type.split('/')[0]}/*`) || ranges.has('*/*'))) {
    return undefined;
  }
  return { status: 406, message: `Accept must allow ${needed.join(' and ')}` };
}

export function refuseLength(contentLength: Header, maxBytes: number): HttpRefusal | undefined {
  return contentLength !== undefined && Number(contentLength) > maxBytes ? tooLarge(maxBytes) : undefined;
}

export function tooLarge(maxBytes: number): HttpRefusal {
  return { status: 413, message: `The body is larger than the limit of ${maxBytes} bytes` };
}

/** Refuses an unknown revision. Clients of the revisions before this header do not send it. */
export function refuseRevision(revision: Header): HttpRefusal | undefined {
  if (revision === undefined || isLegacyRevision(revision)) return undefined;
  return { status: 400, message: `MCP-Protocol-Version must be one of ${LEGACY_REVISIONS.join(', ')}` };
}

function acceptedRanges(accept: string): Set<string> {
  const ranges = new Set<string>();
  for (const part of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    if (!parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter))) ranges.add(range);
  }
  return ranges;
}

interface BearerCheckOptions {
  /** Accepted tokens; empty when no authentication is required. */
  readonly tokens: readonly string[];
  readonly failedLoginsPerMinute: number;
}

const MINUTE_MS = 60_000;

/** Refusal for a missing and for a wrong token. It is the same for both, so that it reveals nothing. */
const UNAUTHORIZED: HttpRefusal = {
  status: 401,
  message: 'A bearer token is required',
  headers: { 'www-authenticate': 'Bearer realm="trunkline"' },
};

/**
 * Authenticates requests by tokens that clients share, and limits failed logins. The principal is the hash of the token.
 *
 * A valid token is accepted even from an address with too many failures. On loopback all clients have the same address,
 * so any local program could otherwise lock out the user. The length of the token protects it against guesses.
 */
export class BearerCheck implements CallerCheck {
  readonly #hashes: readonly Buffer[];
  readonly #failures: FailureWindow;

  constructor({ tokens, failedLoginsPerMinute: limit }: BearerCheckOptions) {
    this.#hashes = tokens.map(sha256);
    this.#failures = new FailureWindow({ limit, windowMs: MINUTE_MS });
  }

  admit(authorization: string | undefined, address: string, now: number): CallerOrRefusal {
    const principal = this.#hashes.length === 0 ? 'anonymous' : this.#principal(authorization);
    if (principal !== undefined) return { principal };
    // A request without the header is no failed login, because clients find out in this way that a token is required.
    const waitMs = authorization === undefined ? 0 : this.#failures.count(address, now);
    if (waitMs === 0) return { refusal: UNAUTHORIZED };
    return { refusal: { status: 429, message: 'Too many failed logins', headers: retryAfter(waitMs) } };
  }

  #principal(authorization: string | undefined): string | undefined {
    const presented = sha256(bearerToken(authorization) ?? '');
    let found: Buffer | undefined;
    // Compares all hashes in constant time, even after a match. Hashes have equal lengths.
    for (const hash of this.#hashes) {
      if (timingSafeEqual(hash, presented)) found = hash;
    }
    return found?.toString('hex');
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
