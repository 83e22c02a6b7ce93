/**
 * Matches a text against a glob with `*`, which stands for any characters, and `?`, which stands for one. A mismatch goes back to
 * the last star only, because a regular expression could take very long for a text that a stranger chose.
 */
export function matchesGlob(glob: string, text: string): boolean {
  let at = 0;
  let position = 0;
  let star: { readonly next: number; from: number } | undefined;
  while (position < text.length) {
    const expected = glob[at];
    if (expected === '*') {
      at += 1;
      star = { next: at, from: position };
    } else if (expected === '?') {
      at += 1;
      position += (text.codePointAt(position) ?? 0) > 0xffff ? 2 : 1;
    } else if (expected !== undefined && expected === text[position]) {
      at += 1;
      position += 1;
    } else if (star !== undefined) {
      star.from += 1;
      at = star.next;
      position = star.from;
    } else {
      return false;
    }
  }
  while (glob[at] === '*') at += 1;
  return at === glob.length;
}
