import type { Span } from './json-text.js';

/** Replaces the bytes at `span` by `text`. */
export interface Edit {
  readonly span: Span;
  readonly text: Uint8Array;
  /** The part of `text` to insert; all of it if absent. Saves a view if the text is part of another message. */
  readonly part?: Span;
}

/** The text of one token, such as an id: the bytes of `text` at `part`. */
export type TokenText = Omit<Required<Edit>, 'span'>;

/** A message to be written: the bytes at `span`, with some of them replaced. */
export interface SplicedMessage {
  readonly bytes: Uint8Array;
  readonly span: Span;
  /** Edits in any order, whose spans do not overlap. Several insertions at one position stay in this order. */
  readonly edits: readonly Edit[];
  /**
   * The lease on the memory of `bytes`, if the message is large (`Lease` in `io/buffer-pool.ts`). The code that writes, copies or drops
   * the message releases it.
   */
  readonly lease?: { release(): void } | undefined;
}

/** Returns the message's length in bytes with the edits made. */
export function splicedLength({ span, edits }: SplicedMessage): number {
  let length = span.end - span.start;
  for (const { span: replaced, text, part } of edits) {
    length += part === undefined ? text.length : part.end - part.start;
    length -= replaced.end - replaced.start;
  }
  return length;
}

/** Calls `visit` with the pieces of the message in order. Copies none. */
export function visitPieces({ bytes, span, edits }: SplicedMessage, visit: (piece: Uint8Array) => void): void {
  let position = span.start;
  for (const edit of edits.length > 1 ? inOrder(edits) : edits) {
    if (edit.span.start > position) visit(bytes.subarray(position, edit.span.start));
    visit(edit.part === undefined ? edit.text : edit.text.subarray(edit.part.start, edit.part.end));
    position = edit.span.end;
  }
  if (position < span.end) visit(bytes.subarray(position, span.end));
}

/** Copies the message into `target` from `at` on, which must have enough space. Returns the position after it. */
export function copySpliced({ bytes, span, edits }: SplicedMessage, target: Uint8Array, at: number): number {
  let position = span.start;
  let end = at;
  for (const edit of edits.length > 1 ? inOrder(edits) : edits) {
    end = copy(bytes, position, edit.span.start, target, end);
    end = copy(edit.text, edit.part?.start ?? 0, edit.part?.end ?? edit.text.length, target, end);
    position = edit.span.end;
  }
  return copy(bytes, position, span.end, target, end);
}

export function splice(message: SplicedMessage): Uint8Array {
  const out = new Uint8Array(splicedLength(message));
  copySpliced(message, out, 0);
  return out;
}

/** Below this size, the view that `set` needs costs more than a loop that copies. */
const VIEW_FROM_BYTES = 256;

function copy(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): number {
  if (end - start >= VIEW_FROM_BYTES) {
    to.set(from.subarray(start, end), at);
    return at + end - start;
  }
  let target = at;
  let index = start;
  // Four bytes each time, because the loop costs more than the copying.
  for (; index + 3 < end; index += 4, target += 4) {
    to[target] = from[index] ?? 0;
    to[target + 1] = from[index + 1] ?? 0;
    to[target + 2] = from[index + 2] ?? 0;
    to[target + 3] = from[index + 3] ?? 0;
  }
  for (; index < end; index += 1, target += 1) to[target] = from[index] ?? 0;
  return target;
}

/** Sorts edits by position. Nearly every message has two, and most others have them in order, so those are not passed to `sort`. */
function inOrder(edits: readonly Edit[]): readonly Edit[] {
  const [first, second] = edits;
  if (edits.length === 2 && first !== undefined && second !== undefined) {
    return first.span.start <= second.span.start ? edits : [second, first];
  }
  return areInOrder(edits) ? edits : [...edits].sort((a, b) => a.span.start - b.span.start);
}

function areInOrder(edits: readonly Edit[]): boolean {
  let position = 0;
  for (const { span } of edits) {
    if (span.start < position) return false;
    position = span.start;
  }
  return true;
}

/** Returns the edits of both lists. Avoids an allocation when one of them is empty, as it is for most messages. */
export function concatEdits(some: readonly Edit[] = NO_EDITS, others: readonly Edit[] = NO_EDITS): readonly Edit[] {
  if (others.length === 0) return some;
  return some.length === 0 ? others : [...some, ...others];
}

const NO_EDITS: readonly Edit[] = [];

const ZERO = 0x30;
const MAX_DIGITS = 16;
const CHUNK_BYTES = 4 * 1024;

/**
 * Writes non-negative integers, such as the gateway's own ids, as edits.
 *
 * The engine caches each text that it makes of a number, and ids never repeat, so texts would keep the garbage
 * collector busy. So would an array of bytes for each id. The digits of many ids therefore share larger arrays.
 */
export class NumberWriter {
  /** Allocated with the first number, because each session has a `NumberWriter`, and few sessions write any. */
  #bytes = new Uint8Array(0);
  #filled = CHUNK_BYTES;

  /** Returns the digits of `value` as part of a text. That text never changes, so the edit may be kept. */
  write(value: number): TokenText {
    if (this.#filled + MAX_DIGITS > CHUNK_BYTES) {
      this.#bytes = new Uint8Array(CHUNK_BYTES);
      this.#filled = 0;
    }
    const start = this.#filled;
    let end = start + 1;
    for (let bound = 10; value >= bound; bound *= 10) end += 1;
    for (let at = end - 1, rest = value; at >= start; at -= 1) {
      // Most ids fit into 32-bit integers, which divide faster.
      const tenth = rest < 0x7fffffff ? (rest / 10) | 0 : Math.floor(rest / 10);
      this.#bytes[at] = ZERO + (rest - tenth * 10);
      rest = tenth;
    }
    this.#filled = end;
    return { text: this.#bytes, part: { start, end } };
  }
}
