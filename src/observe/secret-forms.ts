import type { Span } from '../json/json-text.js';
import { SHORTEST_SECRET } from './secret-values.js';

/** A text to search for. What stands next to it, and has some bits of the secret in Base64, goes with it. */
interface Needle {
  readonly text: string;
  readonly before: number;
  readonly after: number;
}

/**
 * Returns a function that finds secrets in a text, as they are and in the forms that programs give them: Base64 at any
 * position of a longer one, hexadecimal, percent-encoded, and escaped as in JSON, also several times and within each other.
 *
 * Base64 and hexadecimal are searched for as texts of their own. The other forms have many variants, so the text is
 * decoded instead. All secrets together take one pass over the text, because each line of each log is searched.
 */
export function createSecretFinder(secrets: readonly string[]): (text: string) => Span[] {
  const needles = new Map<string, Needle>();
  for (const needle of secrets.flatMap(needlesOf)) needles.set(needle.text, needle);
  if (needles.size === 0) return () => [];
  const search = createSearch([...needles.values()]);
  return (text) => {
    const spans = search(text);
    let view: View = { text, starts: undefined };
    for (let round = 0; round < MAX_DECODED; round += 1) {
      const decoded = decode(view);
      if (decoded === undefined) break;
      view = decoded;
      const { starts } = decoded;
      for (const { start, end } of search(decoded.text)) {
        spans.push({ start: starts[start] ?? start, end: starts[end] ?? text.length });
      }
    }
    return spans;
  };
}

/** How often a text is decoded: for example a percent-encoded text in a JSON text in a JSON text. */
const MAX_DECODED = 4;

function needlesOf(secret: string): Needle[] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  // As the secret is after all escapes were removed, and after percent-encoding was decoded to bytes.
  const withoutEscapes = unescaped({ text: JSON.stringify(secret).slice(1, -1), starts: undefined }).text;
  const decoded = [secret, withoutEscapes].flatMap((text) => [text, Buffer.from(text).toString('latin1')]);
  const texts = [...decoded, ...decoded.map((text) => text.replaceAll(' ', '+')), hex, hex.toUpperCase()];
  return [...texts.map((text) => ({ text, before: 0, after: 0 })), ...base64Of(bytes)].filter(
    ({ text }) => text.length >= SHORTEST_SECRET,
  );
}

/** The characters that contain nothing but bits of these bytes, for each of the three positions in groups of three bytes. */
function base64Of(bytes: Buffer): Needle[] {
  return [0, 1, 2].flatMap((offset) => {
    const bits = (offset + bytes.length) * 8;
    const [first, end] = [Math.ceil((offset * 8) / 6), Math.floor(bits / 6)];
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    return (['base64', 'base64url'] as const).map((encoding) => ({
      text: shifted.toString(encoding).slice(first, end),
      before: offset === 0 ? 0 : 1,
      after: bits % 6 === 0 ? 0 : 1,
    }));
  });
}

/** How many characters the search looks for first. Needles are longer. */
const GRAM = 4;
const HASHES = 0x1_0000;

/** A needle, and where in it the characters are that the search looks for first. */
interface Anchored {
  readonly needle: Needle;
  readonly at: number;
}

/**
 * Returns a function that finds all needles in one pass. It keeps a hash of the last four characters, from which each
 * further character shifts the oldest one out, and compares needles only where the hash is that of four of their own.
 */
function createSearch(needles: readonly Needle[]): (text: string) => Span[] {
  const byHash = new Map<number, Anchored[]>();
  for (const needle of needles) anchor(needle, byHash);
  const isKnown = new Uint8Array(HASHES);
  for (const hash of byHash.keys()) isKnown[hash] = 1;
  return (text) => {
    const spans: Span[] = [];
    let hash = 0;
    for (let index = 0; index < text.length; index += 1) {
      hash = nextHash(hash, text, index);
      if (isKnown[hash] === 0) continue;
      for (const { needle, at } of byHash.get(hash) ?? []) {
        const start = index - at;
        if (start >= 0 && text.startsWith(needle.text, start)) spans.push(spanOf(needle, text, start));
      }
    }
    return spans;
  };
}

/** Chooses the four characters that the fewest other needles have: many secrets begin alike. */
function anchor(needle: Needle, byHash: Map<number, Anchored[]>): void {
  let hash = 0;
  let best = { hash: 0, at: 0, others: Number.POSITIVE_INFINITY };
  for (let at = 0; at < needle.text.length; at += 1) {
    hash = nextHash(hash, needle.text, at);
    const others = byHash.get(hash)?.length ?? 0;
    if (at >= GRAM - 1 && others < best.others) best = { hash, at, others };
  }
  byHash.set(best.hash, [...(byHash.get(best.hash) ?? []), { needle, at: best.at }]);
}

function nextHash(hash: number, text: string, index: number): number {
  return ((hash << 4) ^ text.charCodeAt(index)) & (HASHES - 1);
}

function spanOf({ text: { length }, before, after }: Needle, text: string, start: number): Span {
  let end = start + length;
  if (after > 0 && BASE64.test(text[end] ?? '')) end += after;
  while (after > 0 && text[end] === '=') end += 1;
  return { start: before > 0 && BASE64.test(text[start - 1] ?? '') ? start - before : start, end };
}

const BASE64 = /^[\w+/-]$/;

/** A decoded text, and where each of its characters, and its end, was in the original one. */
interface View {
  readonly text: string;
  /** `undefined` for the original text itself. */
  readonly starts: readonly number[] | undefined;
}

type Decoded = View & { readonly starts: readonly number[] };

function decode(view: View): Decoded | undefined {
  if (view.text.includes('\\')) return unescaped(view);
  return view.text.includes('%') && PERCENT.test(view.text) ? rewritten(view, PERCENT_ALL) : undefined;
}

/**
 * Removes all backslashes, so that it does not matter how often a text was escaped. A character in its place stays, such as
 * the `n` of a line feed; secrets are changed in the same way.
 */
function unescaped(view: View): Decoded {
  return rewritten(view, ESCAPES);
}

const ESCAPES = /\\+(?:u([0-9a-f]{4})|x([0-9a-f]{2})|([^\\]))?/gi;
const PERCENT_ALL = /%([0-9a-f]{2})/gi;
const PERCENT = /%[0-9a-f]{2}/i;

/** Replaces each match by the character whose hexadecimal number it has, or by the character in its last group. */
function rewritten(view: View, escapes: RegExp): Decoded {
  const starts: number[] = [];
  const pieces: string[] = [];
  let position = 0;
  const copyTo = (end: number) => {
    pieces.push(view.text.slice(position, end));
    for (; position < end; position += 1) starts.push(view.starts?.[position] ?? position);
  };
  for (const match of view.text.matchAll(escapes)) {
    copyTo(match.index);
    const code = match[1] ?? match[2];
    const character = code === undefined ? (match[3] ?? '') : String.fromCharCode(Number.parseInt(code, 16));
    pieces.push(character);
    if (character !== '') starts.push(view.starts?.[position] ?? position);
    position += match[0].length;
  }
  copyTo(view.text.length);
  starts.push(view.starts?.[position] ?? position);
  return { text: pieces.join(''), starts };
}
