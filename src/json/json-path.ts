import { readString, type Span, visitMembers } from './json-text.js';

/**
 * The values at a path of member names within the object at `span`; none if there is no such path, and more than one
 * where a member on it stands twice, since readers differ in which one they take.
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
