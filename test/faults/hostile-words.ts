// A server whose names and texts hold characters that change what a terminal shows.
import { unsafeCharacters } from '../../src/wire/json/printable.js';
import type { Workplace } from '../cli/cli-run.js';
import { FAULTY } from '../support/in-process-gateway.js';

/** An escape, a link, a reversed text, a zero-width space and tag characters. */
export const HOSTILE =
  '\u001b[31mred \u001b]8;;https://evil.test\u0007link \u009b \u202egnp zero\u200bwidth \u{e0041}\u{e0042}';

export function configureHostile(place: Workplace): void {
  place.configure({ f: { command: 'node', args: [FAULTY, 'list=escapes', 'reveal', HOSTILE, `run=${place.folder}`] } });
}

/** Harmful characters of a text, except for line ends and tabs. */
export function unsafe(text: string): string[] {
  return text.replace(/[\t\r\n]/g, ' ').match(unsafeCharacters()) ?? [];
}
