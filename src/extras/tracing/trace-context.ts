import { addFirst } from '../../wire/json/edit-members.js';
import { isObject, isString, readString, type Span, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import type { ScanEnvelope } from '../../wire/mcp/envelope.js';
import { EnvelopeRequest, type RelayedRequest } from '../../wire/mcp/relayed-request.js';

/** A span as others name it: W3C Trace Context, page https://www.w3.org/TR/trace-context. */
export interface TraceContext {
  /** 32 and 16 lower-case hexadecimal digits. */
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  /** Whether another program has the span. */
  readonly isRemote?: boolean;
}

/** The flag that the sender records its span. */
export const SAMPLED = 1;

/** A later version may append fields to those of version 00. Version ff is invalid. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/s;

/** Reads a `traceparent`. Returns `undefined` for a malformed one, which counts as absent. */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  const [, version, traceId, spanId, flags = '', more] = TRACEPARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || (version === '00' && more !== undefined)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

export function formatTraceparent({ traceId, spanId, traceFlags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** The only `traceparent` in `_meta` of a request, with the span of its value. `undefined` if it is absent or malformed. */
export function contextIn({
  bytes,
  tokens: { requestMeta },
}: Pick<RelayedRequest, 'bytes' | 'tokens'>): (TraceContext & { readonly value: Span }) | undefined {
  if (requestMeta === undefined || !isObject(bytes, requestMeta)) return undefined;
  const [value, ...others] = valuesAt(bytes, requestMeta, ['traceparent']);
  if (value === undefined || others.length > 0 || !isString(bytes, value)) return undefined;
  const context = parseTraceparent(readString(bytes, value));
  return context && { ...context, value };
}

/** Replaces the value of a `traceparent` by the context of another span. */
export function replacing(value: Span, context: TraceContext): Edit {
  return { span: value, text: toBytes(`"${formatTraceparent(context)}"`) };
}

/**
 * Adds a `traceparent` to a request as if its sender had sent it. Returns `undefined` if the request has a `traceparent`, even
 * a malformed one, or parameters of another form than MCP has. `span` is the whole message.
 */
export function withTraceparent(
  { bytes, params, tokens }: Pick<RelayedRequest, 'bytes' | 'params' | 'tokens'>,
  span: Span,
  context: TraceContext,
  scan: ScanEnvelope,
): RelayedRequest | undefined {
  const { requestMeta } = tokens;
  const object = requestMeta ?? params;
  if (object === undefined || !isObject(bytes, object)) return undefined;
  if (requestMeta !== undefined && valuesAt(bytes, requestMeta, ['traceparent']).length > 0) return undefined;
  const member = `"traceparent":"${formatTraceparent(context)}"`;
  const members = toBytes(requestMeta === undefined ? `"_meta":{${member}},` : `${member},`);
  const message = scan(splice({ bytes, span, edits: [addFirst(bytes, object, members)] }));
  return message.kind === 'request' ? new EnvelopeRequest(message) : undefined;
}
