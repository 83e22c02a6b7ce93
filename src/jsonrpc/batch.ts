import { type Span, skipWhitespace, TOO_DEEP, toBytes, visitElements } from '../json/json-text.js';
import { type Edit, type SplicedMessage, visitPieces } from '../json/splice.js';

export interface BatchLimits {
  /** The most levels of nesting in a line; the array itself is the first. */
  readonly maxDepth: number;
  /** The most elements in an array. */
  readonly maxElements: number;
  /** Whether the bytes are valid UTF-8. Called once for each line that is otherwise a valid array. */
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}

/** Reason for which a line that begins as an array is rejected. */
export type BatchFault = 'not-json' | 'too-deep' | 'invalid-utf8' | 'batch-too-long';

/**
 * Finds the elements of an array whose opening bracket is at `at`. The array must be all of `bytes` apart from white
 * space.
 *
 * The whole line must be valid for `JSON.parse`. The elements may be of any kind. Collects no more elements than the
 * limit allows.
 */
export function splitBatch(bytes: Uint8Array, at: number, limits: BatchLimits): readonly Span[] | BatchFault {
  const elements: Span[] = [];
  let count = 0;
  const end = visitElements(bytes, at, limits.maxDepth - 1, (element) => {
    count += 1;
    if (count <= limits.maxElements) elements.push(element);
  });
  if (end === TOO_DEEP) return 'too-deep';
  if (end < 0 || skipWhitespace(bytes, end) !== bytes.length) return 'not-json';
  if (!limits.isUtf8(bytes)) return 'invalid-utf8';
  return count > limits.maxElements ? 'batch-too-long' : elements;
}

/** Combines messages to one array, without copying their bytes. */
export function batchMessage(messages: readonly SplicedMessage[]): SplicedMessage {
  const pieces: Uint8Array[] = [OPEN];
  for (const message of messages) {
    if (pieces.length > 1) pieces.push(COMMA);
    visitPieces(message, (piece) => pieces.push(piece));
  }
  pieces.push(CLOSE);
  // The bytes are placeholders, one for each piece. An edit replaces each one by its piece.
  const edits = pieces.map((text, start): Edit => ({ span: { start, end: start + 1 }, text }));
  return { bytes: new Uint8Array(pieces.length), span: { start: 0, end: pieces.length }, edits };
}

const OPEN = toBytes('[');
const COMMA = toBytes(',');
const CLOSE = toBytes(']');
