/**
 * The words of a command that is written as one text: separated by spaces, with quotes around words that have some.
 * `undefined` if a quote does not end.
 */
export function wordsOf(command: string): string[] | undefined {
  const words = command.trim().match(/(?:[^\s"']|"[^"]*"|'[^']*')+|\S/g) ?? [];
  const isOpen = words.some((word) => /["']/.test(word.replace(/"[^"]*"|'[^']*'/g, '')));
  if (isOpen) return undefined;
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single ?? ''));
}
