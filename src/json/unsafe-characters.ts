const CONTROLS = String.raw`[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]`;
const FILLERS = String.raw`\u034f|\u115f|\u1160|\u3164|\uffa0`;
const VARIATION_SELECTORS = String.raw`[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]`;

let unsafe: RegExp | undefined;

/**
 * What in a text could move a cursor, hide text or turn its direction: C0 and C1 controls (line ends included),
 * bidirectional marks, zero-width, filling and tag characters, variation selectors, and lone surrogates.
 */
export function unsafeCharacters(): RegExp {
  // Looking up classes of Unicode takes time that no start has to wait for.
  unsafe ??= new RegExp(`${CONTROLS}|${FILLERS}|${VARIATION_SELECTORS}`, 'gu');
  return unsafe;
}

/** The same JSON, its unsafe characters spelt as escapes. Between its tokens there must be none, not even white space. */
export function escapeUnsafe(json: string): string {
  return json.replace(unsafeCharacters(), (character) => {
    let escaped = '';
    for (let index = 0; index < character.length; index += 1) {
      escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
    }
    return escaped;
  });
}
