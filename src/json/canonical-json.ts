import {
  isObject,
  isString,
  OPEN_BRACKET,
  readString,
  readText,
  type Span,
  visitElements,
  visitMembers,
} from './json-text.js';

/**
 * Returns an object as canonical JSON: no spaces, sorted members, of which only those that are included at the top. Numbers
 * keep their raw text. Duplicate members are all kept.
 */
export function canonicalObject(bytes: Uint8Array, object: Span, isIncluded: (name: string) => boolean): string {
  const members: { readonly name: string; readonly text: string }[] = [];
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key, value) => {
    const name = readString(bytes, key);
    if (isIncluded(name)) members.push({ name, text: `${JSON.stringify(name)}:${canonical(bytes, value)}` });
  });
  // A stable sort: members of the same name stay in their order.
  members.sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name)));
  return `{${members.map(({ text }) => text).join()}}`;
}

function canonical(bytes: Uint8Array, value: Span): string {
  if (isObject(bytes, value)) return canonicalObject(bytes, value, () => true);
  if (isString(bytes, value)) return JSON.stringify(readString(bytes, value));
  if (bytes[value.start] !== OPEN_BRACKET) return readText(bytes, value);
  const elements: string[] = [];
  visitElements(bytes, value.start, Number.POSITIVE_INFINITY, (element) => elements.push(canonical(bytes, element)));
  return `[${elements.join()}]`;
}
