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

const CONTROLS = String.raw`[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]`;
const FILLERS = String.raw`\u034f|\u115f|\u1160|\u3164|\uffa0`;
const VARIATION_SELECTORS = String.raw`[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]`;

let unsafe: RegExp | undefined;

/**
 * Matches characters that could move the cursor, hide text or change its direction: C0 and C1 controls (line breaks
 * included), bidirectional marks, zero-width characters, fillers, tag characters, variation selectors and lone
 * surrogates.
 */
export function unsafeCharacters(): RegExp {
  // Made on first use, because compiling Unicode classes takes time that the start should not wait for.
  unsafe ??= new RegExp(`${CONTROLS}|${FILLERS}|${VARIATION_SELECTORS}`, 'gu');
  return unsafe;
}

/**
 * Replaces unsafe characters in JSON by escapes. Between its tokens there must be none, not even line breaks or tabs.
 */
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
 * Describes a number of bytes in the units of the configuration, such as `1.2 GiB`. Rounds up to one decimal place, so
 * that what exceeds a limit also reads as more than the limit.
 */
export function describeBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Math.ceil((bytes / 1024 ** power) * 10) / 10} ${UNITS[power]}`;
}
