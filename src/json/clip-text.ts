/** The number of bytes that a text takes in UTF-8. */
export function utf8Length(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) length += bytesOfUnit(text, at);
  return length;
}

/**
 * The beginning of a text, at most `maxBytes` of UTF-8, and `mark` at its end if something is left out. Never cuts a
 * character as a reader sees it, such as a letter with its accents or an emoji that is made of several; cuts between two
 * words if there is a space nearby.
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

const LONGEST_WORD = 25;
/** In UTF-16 units. No emoji is longer; of a longer cluster, which no language has, a part may be kept. */
const LONGEST_CHARACTER = 64;

/** The last place up to `end` that is between two characters. `Intl.Segmenter` would take 10 ms to load. */
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
/** Made on first use: compiling Unicode classes takes time. */
let joined: RegExp | undefined;

/** The bytes of one UTF-16 unit; the two units of a pair take four together. */
function bytesOfUnit(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit < 0xe000 ? 2 : 3;
}
