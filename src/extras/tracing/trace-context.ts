import { addFirst } from '../../wire/json/edit-members.js';
import { isObject, isString, readString, type Span, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import type { ScanEnvelope } from '../../wire/mcp/envelope.js';
import {
  EnvelopeRequest,
  type RelayedRequest,
  type RequestParams,
  type RequestTokens,
} from '../../wire/mcp/relayed-request.js';

/** The identity of a span in messages to other programs, as in W3C Trace Context: https://www.w3.org/TR/trace-context. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits. */
  readonly spanId: string;
  readonly traceFlags: number;
  /** Whether another program has made the span. */
  readonly isRemote?: boolean;
}

/** The flag in `traceFlags` which says that the sender records its span. */
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

/**
 * The `traceparent` in `_meta` of a request. `value` is the position of its value in the bytes. `undefined` if it is absent or
 * malformed, or if there are several.
 */
export function contextIn({
  bytes,
  tokens: { requestMeta },
}: RequestTokens): (TraceContext & { readonly value: Span }) | undefined {
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
 * a malformed one, or if its parameters are missing or no object, or have a `_meta` that is none. A missing `_meta` is added.
 * `span` is the position of the whole message in the bytes.
 */
export function withTraceparent(
  { bytes, params, tokens }: RequestParams,
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
