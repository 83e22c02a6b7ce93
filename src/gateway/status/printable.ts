/**
 * A text from outside made safe to show: what could move a cursor, hide text or turn its direction is spelt out.
 *
 * Covers C0 and C1 controls (line ends included), bidirectional marks, zero-width, filling and tag characters, variation
 * selectors, and lone surrogates.
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

const CONTROLS = String.raw`[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]`;
const FILLERS = String.raw`\u034f|\u115f|\u1160|\u3164|\uffa0`;
const VARIATION_SELECTORS = String.raw`[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]`;
const UNSAFE = new RegExp(`${CONTROLS}|${FILLERS}|${VARIATION_SELECTORS}`, 'gu');
