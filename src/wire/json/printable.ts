/** Makes a text safe to print on one line: escapes characters that move the cursor, hide text or change its direction. */
export function printable(text: string): string {
  return text.replace(unsafeCharacters(), (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** The same for a text of several lines: keeps line breaks and tabs. */
export function printableLines(text: string): string {
  const lines = text.split(/\r?\n/);
  return lines.map((line) => line.split('\t').map(printable).join('\t')).join('\n');
}

/** Quotes a path or another word for the shell of a platform, as in `process.platform`. */
export function quotedPath(path: string, platform: string): string {
  if (/^[\w./:\\@+-]+$/.test(path)) return path;
  return platform === 'win32' ? `"${path.replaceAll('"', '\\"')}"` : `'${path.replaceAll("'", `'\\''`)}'`;
}

/** `1 tool`, `2 tools`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Makes a sentence of a hint, which has neither a capital letter nor a period. */
export function sentence(phrase: string): string {
  return phrase === '' || /[.!?]$/.test(phrase) ? capitalized(phrase) : `${capitalized(phrase)}.`;
}

/** `files`, or `files and 2 more`. */
export function someOf(names: readonly string[], max = 5): string {
  const shown = names.slice(0, max).join(', ');
  return names.length > max ? `${shown} and ${names.length - max} more` : shown;
}

/** Controls, line breaks included, fillers, and variation selectors. */
const UNSAFE = String.raw`[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]`;

let unsafe: RegExp | undefined;

/**
 * Matches characters that could move the cursor, hide text or change its direction: C0 and C1 controls (line breaks included),
 * bidirectional marks, zero-width characters, fillers, tag characters, variation selectors and lone surrogates.
 */
export function unsafeCharacters(): RegExp {
  // Made on first use, because compiling Unicode classes takes time that the start should not wait for.
  unsafe ??= new RegExp(UNSAFE, 'gu');
  return unsafe;
}

/** Replaces unsafe characters in JSON by escapes. The JSON must have none between its tokens, not even line breaks or tabs. */
export function escapeUnsafe(json: string): string {
  return json.replace(unsafeCharacters(), (character) => {
    let escaped = '';
    for (let index = 0; index < character.length; index += 1) {
      escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
    }
    return escaped;
  });
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * Describes a number of bytes in the units of the configuration, such as `1.2 GiB`. Rounds up to one decimal place, so that a
 * number above a limit also reads as more than the limit.
 */
export function describeBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Math.ceil((bytes / 1024 ** power) * 10) / 10} ${UNITS[power]}`;
}

export function utf8Length(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) length += bytesOfUnit(text, at);
  return length;
}

/**
 * The beginning of a text, at most `maxBytes` of UTF-8, and `mark` at its end if something is left out. Never cuts a character as a reader
 * sees it, such as a letter with its accents or an emoji that is made of several; cuts between two words if there is a space nearby.
 */
export function clipText(text: string, maxBytes: number, mark: string): string {
  const markLength = utf8Length(mark);
  let end = 0;
  let fitting = 0;
  for (let length = 0; end < text.length; end += 1) {
    length += bytesOfUnit(text, end);
    if (length > maxBytes) break;
    if (length + markLength <= maxBytes) fitting = end + 1;
  }
  if (end === text.length) return text;
  const cut = text.slice(0, wholeCharacters(text, fitting));
  const nearby = cut.slice(-LONGEST_WORD);
  const space = Math.max(nearby.lastIndexOf(' '), nearby.lastIndexOf('\n'));
  const words = space < 0 ? cut : cut.slice(0, cut.length - nearby.length + space).trimEnd();
  const kept = words === '' ? cut.trimEnd() : words;
  return kept === '' ? '' : kept + mark;
}

/** The beginning of a text up to the end of its first sentence, or of its first line with content. */
export function firstSentence(text: string): string {
  return /^\s*(?:[^.!?\n]|[.!?](?!\s|$))*[.!?]?/.exec(text)?.[0] ?? '';
}

const LONGEST_WORD = 25;
/** Limit of a character as a reader sees it, in UTF-16 units. No emoji is longer. A longer cluster may be cut. */
const LONGEST_CHARACTER = 64;

/** Returns the last position up to `end` that is between two characters. `Intl.Segmenter` would take 10 ms to load. */
function wholeCharacters(text: string, end: number): number {
  for (let at = end; at > 0 && at > end - LONGEST_CHARACTER; at -= 1) if (!isWithinCharacter(text, at)) return at;
  if (end <= LONGEST_CHARACTER) return 0;
  return isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end;
}

function isWithinCharacter(text: string, at: number): boolean {
  const next = text.charCodeAt(at);
  if (next < FIRST_COMBINING && text.charCodeAt(at - 1) < FIRST_COMBINING) return false;
  if (isLowSurrogate(next)) return true;
  if (text.charCodeAt(at - 1) === ZERO_WIDTH_JOINER) return true;
  joined ??= new RegExp(JOINED, 'uy');
  joined.lastIndex = at;
  if (joined.test(text)) return true;
  // Two letters make a flag, and the next two the next flag.
  let start = at;
  if (isFlagLetter(text, at)) while (isFlagLetter(text, start - 2)) start -= 2;
  return (at - start) % 4 === 2;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

function isFlagLetter(text: string, at: number): boolean {
  const low = text.charCodeAt(at + 1);
  return text.charCodeAt(at) === 0xd83c && low >= 0xdde6 && low <= 0xddff;
}

const ZERO_WIDTH_JOINER = 0x200d;
const FIRST_COMBINING = 0x300;
/** Characters that belong to the one before: marks, joiners, skin colors, tags, and the later parts of a Hangul syllable. */
const JOINED = String.raw`[\p{M}\u200d\u{1f3fb}-\u{1f3ff}\u{e0020}-\u{e007f}\u1160-\u11ff\ud7b0-\ud7ff]`;
/** Made on first use, because compiling Unicode classes takes time. */
let joined: RegExp | undefined;

/** The bytes of one UTF-16 unit; the two units of a pair take four together. */
function bytesOfUnit(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit < 0xe000 ? 2 : 3;
}

/**
 * Whether a text contains characters that its reader cannot see or is misled by, such as controls, zero-width and tag characters, or
 * direction overrides.
 *
 * Characters that scripts and emoji need are allowed: joiners and a variation selector within an emoji, flags made of tag characters,
 * joiners between letters of scripts that join, and direction marks beside letters of right-to-left scripts.
 */
export function hidesCharacters(text: string): boolean {
  if (PLAIN.test(text)) return false;
  patterns ??= makePatterns();
  if (!patterns.invisible.test(text)) return false;
  const rest = patterns.rightToLeft.test(text) ? text.replace(MARKS, '') : text;
  for (const { groups } of rest.matchAll(patterns.neededOrNot)) if (groups?.hidden !== undefined) return true;
  return false;
}

/** Whether any text within a JSON value hides characters. Line breaks and tabs are allowed. */
export function hidesCharactersWithin(value: unknown): boolean {
  if (typeof value === 'string') return hidesCharacters(value.replace(/[\t\r\n]/g, ' '));
  if (Array.isArray(value)) return value.some(hidesCharactersWithin);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => hidesCharactersWithin(key) || hidesCharactersWithin(inner));
}

/** The text without the characters that `hidesCharacters` finds, and without byte order marks. Line breaks and tabs stay. */
export function withoutHiddenCharacters(text: string): string {
  return text
    .replaceAll('\ufeff', '')
    .split(/\r\n?|\n/)
    .map((line) => line.split('\t').map(visibleOnly).join('\t'))
    .join('\n');
}

function visibleOnly(text: string): string {
  if (!hidesCharacters(text)) return text;
  patterns ??= makePatterns();
  const needsMarks = patterns.rightToLeft.test(text);
  return text.replace(patterns.neededOrNot, (...match) => {
    const character = match[0] as string;
    const groups = match.at(-1) as { readonly hidden?: string };
    const isNeeded = groups.hidden === undefined || (needsMarks && MARK.test(character));
    return isNeeded ? character : '';
  });
}

/** Matches most texts, and saves compiling Unicode classes for them. */
const PLAIN = /^[ -~]*$/;

let patterns: ReturnType<typeof makePatterns> | undefined;

function makePatterns() {
  return {
    invisible: new RegExp(INVISIBLES, 'u'),
    rightToLeft: new RegExp(RIGHT_TO_LEFT, 'u'),
    neededOrNot: new RegExp(`${NEEDED}|(?<hidden>${INVISIBLES})`, 'gu'),
  };
}

/** Unsafe characters, except the soft hyphen, which marks where a word may break. */
const INVISIBLES = String.raw`(?!\u00ad)${UNSAFE}`;

/** Direction marks, which right-to-left text needs. */
const MARKS = /[\u200e\u200f\u061c]/gu;
const MARK = /^[\u200e\u200f\u061c]$/u;
const RIGHT_TO_LEFT = String.raw`[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}]`;

const EMOJI = String.raw`\p{Emoji}\p{Emoji_Modifier}?(?:\ufe0e|\ufe0f\u20e3?)?`;
const COMPOSED_EMOJI = String.raw`(?=\p{Emoji}\p{Emoji_Modifier}?[\u200d\ufe0e\ufe0f])${EMOJI}(?:\u200d${EMOJI})*`;
/** England, Scotland and Wales: a black flag, the region in tag characters, and the cancel tag. */
const FLAG = String.raw`\u{1f3f4}[\u{e0061}-\u{e007a}]{5}\u{e007f}`;
/** Joiners between letters, as in Persian and in the scripts of India, where a joiner decides the form of two letters. */
const JOINER = String.raw`(?<=[\p{L}\p{M}])(?<![A-Za-z])[\u200c\u200d](?=\p{L})(?![A-Za-z])`;
const IDEOGRAPH = String.raw`(?<=\p{Ideographic})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]`;
const BYTE_ORDER_MARK = String.raw`^\ufeff`;

const NEEDED = [FLAG, COMPOSED_EMOJI, JOINER, IDEOGRAPH, BYTE_ORDER_MARK].join('|');
