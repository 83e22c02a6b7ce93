/** Replaces the home folder by `~`, so that the text can be shown to others. */
export function withoutHome(text: string, home: string): string {
  if (home.length < 2) return text;
  return text.split(home).reduce((before, after) => before + (/^(?![\w-])/.test(after) ? '~' : home) + after);
}
