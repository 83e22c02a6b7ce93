import { isString, readString, type Span, toBytes } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';

/** The task id at a span; `undefined` if there is no span or no string. */
export function idAt(bytes: Uint8Array, span: Span | undefined): string | undefined {
  return span !== undefined && isString(bytes, span) ? readString(bytes, span) : undefined;
}

/** Replaces the id at the span; no edit if either is missing. */
export function replaceId(span: Span | undefined, id: string | undefined): Edit[] {
  return span === undefined || id === undefined ? [] : [{ span, text: toBytes(JSON.stringify(id)) }];
}

const TERMINAL = new Set(['completed', 'failed', 'cancelled']);

/** Whether this status is final. */
export function isTerminal(bytes: Uint8Array, status: Span | undefined): boolean {
  return status !== undefined && isString(bytes, status) && TERMINAL.has(readString(bytes, status));
}
