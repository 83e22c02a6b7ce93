import { isObject, isString, readString, readText, type Span, visitElements, visitMembers } from '../json/json-text.js';

/** What of a tool's entry tells a model what the tool is and how it is called. */
const DEFINING_MEMBERS: ReadonlySet<string> = new Set([
  'name',
  'title',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
]);

/**
 * What a tool says it is: the same text for entries of a list that say the same, as JSON without spaces, its members
 * sorted.
 *
 * A number stays as it is spelt, since 1 and 1.0 are not the same to every client, and large ones would lose digits. Of
 * a member that stands twice both are kept: which of them counts differs from client to client.
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

function canonicalObject(bytes: Uint8Array, object: Span, isKept: (name: string) => boolean): string {
  const members: { readonly name: string; readonly text: string }[] = [];
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key, value) => {
    const name = readString(bytes, key);
    if (isKept(name)) members.push({ name, text: `${JSON.stringify(name)}:${canonical(bytes, value)}` });
  });
  // A stable sort: members of the same name stay in their order.
  members.sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name)));
  return `{${members.map(({ text }) => text).join()}}`;
}

const OPEN_BRACKET = 0x5b;
