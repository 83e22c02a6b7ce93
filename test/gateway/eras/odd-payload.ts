// Members that no revision knows, in JSON that a parser and a serializer would change.

/** Placeholder for the odd member until the message is text, because `JSON.stringify` cannot write that member. */
export const ODD = '<odd>';

/** A value with numbers beyond a double, escapes, and a duplicate member. The label identifies the value. */
function oddJson(label: string): string {
  return `{"label":"${label}","big":9007199254740993,"one":1.0,"huge":1e400,"zero":-0,"escaped":"\\u00e9\\/\\ud83d","twice":1,"twice":[1.50]}`;
}

/** The message as text, with the odd value in place of each `ODD`. */
export function oddText(message: unknown, label: string): string {
  return JSON.stringify(message).replaceAll(JSON.stringify(ODD), () => oddJson(label));
}

/** Number of occurrences of the value in a line, exactly as it was written. */
export function countOf(line: string, label: string): number {
  return line.split(oddJson(label)).length - 1;
}

/** The labels in a line, whatever form the values have. */
export function labelsIn(line: string): string[] {
  return [...line.matchAll(/"label":\s*"([^"]*)"/g)].map(([, label = '']) => label);
}
