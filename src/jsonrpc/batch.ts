import { type Span, skipWhitespace, TOO_DEEP, toBytes, visitElements } from '../json/json-text.js';
import { type Edit, type SplicedMessage, visitPieces } from '../json/splice.js';

export interface BatchLimits {
  /** Levels of nesting beyond which a line is refused; the array itself is the first. */
  readonly maxDepth: number;
  /** Elements beyond which an array is refused. */
  readonly maxElements: number;
  /** Whether the bytes are valid UTF-8; asked once for each line that is otherwise an array. */
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}

/** Why a line that begins as an array is not taken apart. */
export type BatchFault = 'not-json' | 'too-deep' | 'invalid-utf8' | 'batch-too-long';

/**
 * Where the elements stand of the array that is all of `bytes` but white space, its bracket at `at`.
 *
 * The whole line must be what `JSON.parse` accepts. What the elements are is not looked at. Of an array that is too
 * long no more places are kept than the limit allows.
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

/** The messages as one array, which takes their bytes as they are and copies none. */
export function batchMessage(messages: readonly SplicedMessage[]): SplicedMessage {
  const pieces: Uint8Array[] = [OPEN];
  for (const message of messages) {
    if (pieces.length > 1) pieces.push(COMMA);
    visitPieces(message, (piece) => pieces.push(piece));
  }
  pieces.push(CLOSE);
  // Each piece takes the place of one byte of a text that has as many.
  const edits = pieces.map((text, start): Edit => ({ span: { start, end: start + 1 }, text }));
  return { bytes: new Uint8Array(pieces.length), span: { start: 0, end: pieces.length }, edits };
}

const OPEN = toBytes('[');
const COMMA = toBytes(',');
const CLOSE = toBytes(']');
