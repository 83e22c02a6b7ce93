import { unsafeCharacters } from './unsafe-characters.js';

/**
 * Makes a text safe to print on one line: escapes characters that move the cursor, hide text or change its direction.
 */
export function printable(text: string): string {
  return text.replace(unsafeCharacters(), (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** The same for a text of several lines: keeps line breaks and tabs. */
export function printableLines(text: string): string {
  const lines = text.split(/\r?\n/);
  return lines.map((line) => line.split('\t').map(printable).join('\t')).join('\n');
}
