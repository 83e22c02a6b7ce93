/**
 * A text from outside made safe to show: what could move a cursor, hide text or turn its direction is spelt out.
 *
 * Covers C0 and C1 controls (line ends included), bidirectional marks, zero-width and tag characters, and lone
 * surrogates.
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;
