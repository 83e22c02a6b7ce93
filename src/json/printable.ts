import { unsafeCharacters } from './unsafe-characters.js';

/** A text from outside made safe to show on one line: what could move a cursor, hide or turn text is spelt out. */
export function printable(text: string): string {
  return text.replace(unsafeCharacters(), (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** The same for a text of several lines, which stay lines, and keep their tabs. */
export function printableLines(text: string): string {
  const lines = text.split(/\r?\n/);
  return lines.map((line) => line.split('\t').map(printable).join('\t')).join('\n');
}
