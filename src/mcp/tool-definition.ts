import { isObject, isString, readString, readText, type Span, visitElements, visitMembers } from '../json/json-text.js';

/** The members of a tool's entry that tell a model what the tool is and how to call it. */
const DEFINING_MEMBERS: ReadonlySet<string> = new Set([
  'name',
  'title',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
]);

/**
 * Returns the definition of a tool as canonical JSON: no spaces, sorted members. Entries with the same definition give
 * the same text.
 *
 * Numbers keep their raw text, because 1 and 1.0 differ for some clients, and large numbers would lose digits.
 * Duplicate members are all kept, because clients differ in which of them they take.
 */
export function toolDefinition(bytes: Uint8Array, entry: Span): string {
  return canonicalObject(bytes, entry, (name) => DEFINING_MEMBERS.has(name));
}

function canonical(bytes: Uint8Array, value: Span): string {
  if (isObject(bytes, value)) return canonicalObject(bytes, value, () => true);
  if (isString(bytes, value)) return JSON.stringify(readString(bytes, value));
  if (bytes[value.start] !== OPEN_BRACKET) return readText(bytes, value);
  const elements: string[] = [];
  visitElements(bytes, value.start, Number.POSITIVE_INFINITY, (element) => elements.push(canonical(bytes, element)));
  return `[${elements.join()}]`;
}

function canonicalObject(bytes: Uint8Array, object: Span, isIncluded: (name: string) => boolean): string {
  const members: { readonly name: string; readonly text: string }[] = [];
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key, value) => {
    const name = readString(bytes, key);
    if (isIncluded(name)) members.push({ name, text: `${JSON.stringify(name)}:${canonical(bytes, value)}` });
  });
  // A stable sort: members of the same name stay in their order.
  members.sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name)));
  return `{${members.map(({ text }) => text).join()}}`;
}

const OPEN_BRACKET = 0x5b;
