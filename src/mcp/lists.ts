import { canonicalObject } from '../json/canonical-json.js';
import type { Span } from '../json/json-text.js';

/** The lists that servers offer and the gateway merges. */
export const LIST_KINDS = ['tools', 'prompts', 'resources', 'templates'] as const;

export type ListKind = (typeof LIST_KINDS)[number];

/** The names of one kind of list in the protocol. */
export interface ListFacts {
  readonly method: string;
  /** The member of the result with the entries, and the name of its token. */
  readonly member: string;
  readonly token: 'resultTools' | 'resultPrompts' | 'resultResources' | 'resultTemplates';
  /** The server capability that goes with it. */
  readonly capability: 'tools' | 'prompts' | 'resources';
  /** The notification that the list has changed. */
  readonly changed: string;
}

const RESOURCES_CHANGED = 'notifications/resources/list_changed';

export const LISTS: Readonly<Record<ListKind, ListFacts>> = {
  tools: {
    method: 'tools/list',
    member: 'tools',
    token: 'resultTools',
    capability: 'tools',
    changed: 'notifications/tools/list_changed',
  },
  prompts: {
    method: 'prompts/list',
    member: 'prompts',
    token: 'resultPrompts',
    capability: 'prompts',
    changed: 'notifications/prompts/list_changed',
  },
  resources: {
    method: 'resources/list',
    member: 'resources',
    token: 'resultResources',
    capability: 'resources',
    changed: RESOURCES_CHANGED,
  },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    token: 'resultTemplates',
    capability: 'resources',
    changed: RESOURCES_CHANGED,
  },
};

/** Whether names identify the entries, which get the server's prefix. Otherwise URIs do, which stay as they are. */
export function isNamed(kind: ListKind): boolean {
  return kind === 'tools' || kind === 'prompts';
}

/** Returns the list that a method requests, if any. */
export function requestedList(method: string): ListKind | undefined {
  return BY_METHOD.get(method);
}

/** Returns the lists that a notification reports as changed. */
export function listsChangedBy(method: string): readonly ListKind[] {
  return BY_CHANGE.get(method) ?? [];
}

const BY_METHOD = new Map(LIST_KINDS.map((kind) => [LISTS[kind].method, kind]));
const BY_CHANGE = new Map<string, readonly ListKind[]>([
  [LISTS.tools.changed, ['tools']],
  [LISTS.prompts.changed, ['prompts']],
  [RESOURCES_CHANGED, ['resources', 'templates']],
]);

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
