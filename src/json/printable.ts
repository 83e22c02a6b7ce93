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
