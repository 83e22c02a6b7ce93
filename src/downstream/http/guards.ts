import { isLegacyRevision, LEGACY_REVISIONS } from '../../mcp/revisions.js';
import type { Refusal } from './refusal.js';

/** A header value from Node, which joins repeated headers with commas. */
type Header = string | undefined;

/**
 * Refuses DNS rebinding: a page that points its own name at this address sends its own name as `Host`.
 *
 * Names are compared whole and with the port. Comparing a prefix would accept `127.0.0.1.evil.example`.
 */
export function refuseHost(host: Header, allowed: ReadonlySet<string>): Refusal | undefined {
  if (host !== undefined && allowed.has(host.toLowerCase())) return undefined;
  return { status: 403, message: 'This Host is not allowed; see --allowed-host' };
}

/** Browsers send `Origin`, other programs do not. Sandboxed pages and files send `null`. */
export function refuseOrigin(origin: Header, allowed: ReadonlySet<string>): Refusal | undefined {
  if (origin === undefined || allowed.has(origin.toLowerCase())) return undefined;
  return { status: 403, message: 'This Origin is not allowed; see --allowed-origin' };
}

/** A few compressed bytes can unpack to more than the body limit. */
export function refuseContentEncoding(encoding: Header): Refusal | undefined {
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return undefined;
  return { status: 415, message: 'The body must not be compressed', headers: { 'accept-encoding': 'identity' } };
}

/** An HTML form can send other content types across sites, but not JSON. */
export function refuseContentType(contentType: Header): Refusal | undefined {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';');
  const isUtf8 = parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=');
    return name.trim() !== 'charset' || /^\s*"?utf-?8"?\s*$/.test(value);
  });
  if (type.trim() === 'application/json' && isUtf8) return undefined;
  return { status: 415, message: 'The body must be application/json in UTF-8' };
}

export function refuseAccept(accept: Header, needed: readonly string[]): Refusal | undefined {
  const ranges = acceptedRanges(accept ?? '');
  if (needed.every((type) => ranges.has(type) || ranges.has(`${type.split('/')[0]}/*`) || ranges.has('*/*'))) {
    return undefined;
  }
  return { status: 406, message: `Accept must allow ${needed.join(' and ')}` };
}

/** Refuses a body that is too large according to its `Content-Length`. */
export function refuseLength(contentLength: Header, maxBytes: number): Refusal | undefined {
  return contentLength !== undefined && Number(contentLength) > maxBytes ? tooLarge(maxBytes) : undefined;
}

export function tooLarge(maxBytes: number): Refusal {
  return { status: 413, message: `The body is larger than the limit of ${maxBytes} bytes` };
}

/** Clients of revisions before this header do not send it. */
export function refuseRevision(revision: Header): Refusal | undefined {
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
