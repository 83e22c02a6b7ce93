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
  const whole = new Intl.Segmenter().segment(text.slice(0, fitting + LONGEST_CHARACTER)).containing(fitting);
  const cut = text.slice(0, whole?.index ?? 0);
  const words = cut.replace(/\s+\S{0,24}$/, '');
  const kept = (words === '' ? cut : words).trimEnd();
  return kept === '' ? '' : kept + mark;
}

/** In UTF-16 units. No emoji is longer; of a longer cluster, which no language has, a part may be kept. */
const LONGEST_CHARACTER = 64;

/** The bytes of one UTF-16 unit; the two units of a pair take four together. */
function bytesOfUnit(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit < 0xe000 ? 2 : 3;
}
