import { isString, readString, type Span, toBytes } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';

/** The id that stands at a span; `undefined` when there is none, or something else than a string. */
export function idAt(bytes: Uint8Array, span: Span | undefined): string | undefined {
  return span !== undefined && isString(bytes, span) ? readString(bytes, span) : undefined;
}

/** Puts another id there; nothing when there is no place or no other id. */
export function replaceId(span: Span | undefined, id: string | undefined): Edit[] {
  return span === undefined || id === undefined ? [] : [{ span, text: toBytes(JSON.stringify(id)) }];
}

const TERMINAL = new Set(['completed', 'failed', 'cancelled']);

/** Whether a task in this state will never be in another. */
export function isTerminal(bytes: Uint8Array, status: Span | undefined): boolean {
  return status !== undefined && isString(bytes, status) && TERMINAL.has(readString(bytes, status));
}
