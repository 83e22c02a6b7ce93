// Members that no revision knows, in JSON that a parser and a serializer would change.

/** Stands for the odd member until the message is text: `JSON.stringify` cannot write it. */
export const ODD = '<odd>';

/** A value with numbers beyond a double, escapes and a member that is there twice. The label tells one from another. */
function oddJson(label: string): string {
  return `{"label":"${label}","big":9007199254740993,"one":1.0,"huge":1e400,"zero":-0,"escaped":"\\u00e9\\/\\ud83d","twice":1,"twice":[1.50]}`;
}

/** The message as text, with the odd value wherever `ODD` stands. */
export function oddText(message: unknown, label: string): string {
  return JSON.stringify(message).replaceAll(JSON.stringify(ODD), () => oddJson(label));
}

/** Number of times that the value stands in a line, as it was written. */
export function countOf(line: string, label: string): number {
  return line.split(oddJson(label)).length - 1;
}

/** The labels in a line, in whatever shape the values are. */
export function labelsIn(line: string): string[] {
  return [...line.matchAll(/"label":\s*"([^"]*)"/g)].map(([, label = '']) => label);
}
