import { toBytes } from '../../wire/json/json-text.js';
import { boundaryAfter, boundaryBefore, textInside, textLength } from '../../wire/json/literal-text.js';

/*
 * Reads parts of a long text that is stored as the inside of a string literal. Offsets and lengths are bytes of UTF-8. The text
 * is decoded in pieces, and `turn` lets other work run between them.
 */

interface LongText {
  readonly inside: Uint8Array;
  readonly turn: () => Promise<void>;
}

const PIECE_BYTES = 64 * 1024;
const PIECES_PER_TURN = 8;

/** Reads the characters from `offset` on that fit into `length` bytes. If `offset` is within a character, begins with the next one. */
export async function readRange(
  { inside, turn }: LongText,
  offset: number,
  length: number,
): Promise<{ readonly start: number; readonly end: number; readonly text: string }> {
  const parts: string[] = [];
  let start: number | undefined;
  let end = offset;
  for await (const piece of piecesFrom({ inside, turn }, offset)) {
    const text = textInside(inside.subarray(piece.start, piece.end));
    const first = positionOf(offset - piece.at, text, 'behind');
    start ??= piece.at + first.bytes;
    const last = positionOf(start + length - piece.at, text, 'before');
    parts.push(text.slice(first.units, last.units));
    end = piece.at + last.bytes;
    if (last.units < text.length) break;
  }
  return { start: start ?? offset, end, text: parts.join('') };
}

/** Bytes of the literal around a piece that are searched for the ends of its lines. */
const CONTEXT_BYTES = 4 * 1024;
/** Characters of a long line that are shown on each side of the found text. */
const SHOWN = 200;
/** Bytes that count for a line besides its text, because it is shown with its offset. */
const OFFSET_BYTES = 12;

/** A line, or a part of a long line, with the offset of its first character. */
interface Line {
  readonly at: number;
  readonly text: string;
}

/**
 * Finds the lines that contain a text, in upper or lower case, from `offset` on. A long line is shown in part. Ends before the line
 * with which all lines would be longer than `maxBytes`, and returns the offset of that line as `next`.
 */
export async function findLines(
  { inside, turn }: LongText,
  offset: number,
  maxBytes: number,
  wanted: string,
): Promise<{ readonly lines: readonly Line[]; readonly next: number | undefined }> {
  // Escapes the operators, because the text is plain, and a pattern of a client could take very long.
  const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu');
  const lines: Line[] = [];
  let size = 0;
  let searched = offset;
  for await (const { at, start, end } of piecesFrom({ inside, turn }, offset)) {
    const before = textInside(inside.subarray(boundaryBefore(inside, Math.max(0, start - CONTEXT_BYTES)), start));
    const own = textInside(inside.subarray(start, end));
    const after = textInside(inside.subarray(end, boundaryAfter(inside, end + CONTEXT_BYTES)));
    const text = before + own + after;
    // The offset of the character at `counted`.
    let countedAt = at - bytesOf(before);
    let counted = 0;
    pattern.lastIndex = positionOf(searched - countedAt, text, 'behind').units;
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      if (match.index >= before.length + own.length) break;
      const [from, to] = lineAround(text, match.index, match.index + match[0].length);
      countedAt += bytesOf(text.slice(counted, from));
      counted = from;
      const line = { at: countedAt, text: text.slice(from, to) };
      size += bytesOf(line.text) + OFFSET_BYTES;
      if (size > maxBytes && lines.length > 0) return { lines, next: line.at };
      lines.push(line);
      searched = line.at + bytesOf(line.text);
      pattern.lastIndex = to;
    }
  }
  return { lines, next: undefined };
}

/** Returns the bounds of the line around a part of a text, or of the shown part of a long line. */
function lineAround(text: string, start: number, end: number): [from: number, to: number] {
  const first = wholeUnits(text, Math.max(0, start - SHOWN));
  const last = wholeUnits(text, Math.min(text.length, end + SHOWN));
  const breakAfter = text.slice(end, last).indexOf('\n');
  return [first + text.slice(first, start).lastIndexOf('\n') + 1, breakAfter < 0 ? last : end + breakAfter];
}

async function* piecesFrom(
  { inside, turn }: LongText,
  offset: number,
): AsyncGenerator<{ readonly at: number; readonly start: number; readonly end: number }> {
  let at = 0;
  let count = 0;
  for (let start = 0, end = 0; start < inside.length; start = end) {
    end = boundaryBefore(inside, start + PIECE_BYTES, start);
    const length = textLength(inside.subarray(start, end));
    if (at + length > offset) yield { at, start, end };
    at += length;
    count += 1;
    if (count % PIECES_PER_TURN === 0) await turn();
  }
}

/** Returns the place between two characters at which `length` bytes end, on this `side` of a character that they cut. */
function positionOf(length: number, text: string, side: 'before' | 'behind') {
  let units = 0;
  let bytes = 0;
  while (units < text.length && bytes < length) {
    const code = text.codePointAt(units) ?? 0;
    const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (side === 'before' && bytes + size > length) break;
    bytes += size;
    units += code < 0x10000 ? 1 : 2;
  }
  return { units, bytes };
}

function bytesOf(text: string): number {
  return toBytes(text).length;
}

/** The last place up to `at` that is not within a surrogate pair. */
function wholeUnits(text: string, at: number): number {
  return (text.codePointAt(at - 1) ?? 0) >= 0x10000 ? at - 1 : at;
}
