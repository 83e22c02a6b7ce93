import { readString, type Span, visitMembers } from './json-text.js';

/**
 * Returns the values at a path of member names within the object at `span`. Returns none if there is no such path, and
 * several if a member on the path is duplicated, because readers differ in which of the duplicates they take.
 */
export function valuesAt(bytes: Uint8Array, span: Span, path: readonly string[]): readonly Span[] {
  const [name, ...rest] = path;
  if (name === undefined) return [span];
  const found: Span[] = [];
  visitMembers(bytes, span.start, Number.POSITIVE_INFINITY, (key, value) => {
    if (readString(bytes, key) === name) found.push(...valuesAt(bytes, value, rest));
  });
  return found;
}
