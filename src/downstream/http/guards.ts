import { isLegacyRevision, LEGACY_REVISIONS } from '../../mcp/revisions.js';
import type { Refusal } from './refusal.js';

/** A header as Node hands it over; those that clients may repeat are joined by commas. */
type Header = string | undefined;

/**
 * A page that rebinds its own name to our address is sent with its own name as Host.
 *
 * Names are compared whole and with the port: a prefix would let `127.0.0.1.evil.example` in.
 */
export function refuseHost(host: Header, allowed: ReadonlySet<string>): Refusal | undefined {
  if (host !== undefined && allowed.has(host.toLowerCase())) return undefined;
  return { status: 403, message: 'This Host is not allowed; see --allowed-host' };
}

/** Programs send no Origin, browsers do; `null` is what a sandboxed page or a file sends. */
export function refuseOrigin(origin: Header, allowed: ReadonlySet<string>): Refusal | undefined {
  if (origin === undefined || allowed.has(origin.toLowerCase())) return undefined;
  return { status: 403, message: 'This Origin is not allowed; see --allowed-origin' };
}

/** A few compressed bytes can unpack to more than we would ever take. */
export function refuseContentEncoding(encoding: Header): Refusal | undefined {
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return undefined;
  return { status: 415, message: 'The body must not be compressed', headers: { 'accept-encoding': 'identity' } };
}

/** Anything but JSON could be sent across sites by a plain HTML form. */
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

/** Whether the body is known to be too large before any of it came. */
export function refuseLength(contentLength: Header, maxBytes: number): Refusal | undefined {
  return contentLength !== undefined && Number(contentLength) > maxBytes ? tooLarge(maxBytes) : undefined;
}

export function tooLarge(maxBytes: number): Refusal {
  return { status: 413, message: `The body is larger than the limit of ${maxBytes} bytes` };
}

/** Clients older than the header do not send it. */
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
