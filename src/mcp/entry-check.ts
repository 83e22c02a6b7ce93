import { isRecord } from '../json/is-record.js';
import { hidesCharacters } from './hidden-text.js';
import type { ListKind } from './lists.js';
import { findSchemaFault } from './schema-check.js';

/** The result of the check of one entry of a server's list. `name` is what identifies the entry: a name or a URI. */
export type EntryVerdict =
  | { readonly kind: 'sound'; readonly name: string; readonly nullMembers: readonly string[] }
  | { readonly kind: 'unsound'; readonly name: string | undefined; readonly reason: string };

/**
 * Checks whether clients can be expected to accept an entry, because some clients drop the whole list over one entry
 * that they reject. One reason is an optional member that is null. A name with hidden characters is rejected too,
 * because it is not what it looks like.
 *
 * Checks shape and size only. Never compiles a server's schema and never runs a pattern in it.
 */
export function checkEntry(list: ListKind, entry: unknown): EntryVerdict {
  const { identity, required, members } = SHAPES[list];
  if (!isRecord(entry)) return { kind: 'unsound', name: undefined, reason: 'is not an object' };
  const name = entry[identity];
  if (typeof name !== 'string' || name === '') {
    return { kind: 'unsound', name: undefined, reason: `has no ${identity}` };
  }
  if (hidesCharacters(name)) return { kind: 'unsound', name, reason: `its ${identity} hides characters` };
  const nullMembers: string[] = [];
  for (const [member, isRight, expected] of members) {
    const value = entry[member];
    const isOptional = !required.includes(member);
    if (isOptional && value === null) nullMembers.push(member);
    if (isOptional && (value === undefined || value === null)) continue;
    if (!isRight(value)) return { kind: 'unsound', name, reason: `${member} is not ${expected}` };
  }
  if (typeof entry.name === 'string' && hidesCharacters(entry.name)) {
    return { kind: 'unsound', name, reason: 'its name hides characters' };
  }
  const fault = list === 'tools' ? findToolFault(entry) : undefined;
  return fault === undefined ? { kind: 'sound', name, nullMembers } : { kind: 'unsound', name, reason: fault };
}

type MemberRule = readonly [member: string, isRight: (value: unknown) => boolean, expected: string];

interface Shape {
  /** The member that identifies an entry. */
  readonly identity: string;
  readonly required: readonly string[];
  readonly members: readonly MemberRule[];
}

const COMMON: readonly MemberRule[] = [
  ['title', isText, 'a string'],
  ['description', isText, 'a string'],
  ['icons', Array.isArray, 'a list'],
  ['_meta', isRecord, 'an object'],
];

const RESOURCE_MEMBERS: readonly MemberRule[] = [
  ...COMMON,
  ['name', isText, 'a string'],
  ['mimeType', isText, 'a string'],
  ['annotations', isRecord, 'an object'],
];

const SHAPES: Readonly<Record<ListKind, Shape>> = {
  tools: {
    identity: 'name',
    required: ['inputSchema'],
    members: [
      ...COMMON,
      ['inputSchema', isObjectSchema, 'a schema of type "object"'],
      ['outputSchema', isObjectSchema, 'a schema of type "object"'],
      ['annotations', isRecord, 'an object'],
      ['execution', isRecord, 'an object'],
    ],
  },
  prompts: {
    identity: 'name',
    required: [],
    members: [...COMMON, ['arguments', isArgumentList, 'a list of named ones']],
  },
  resources: {
    identity: 'uri',
    required: ['name'],
    members: [...RESOURCE_MEMBERS, ['size', (value) => typeof value === 'number', 'a number']],
  },
  templates: { identity: 'uriTemplate', required: ['name'], members: RESOURCE_MEMBERS },
};

function isArgumentList(value: unknown): boolean {
  return Array.isArray(value) && value.every(isArgument);
}

function isArgument(value: unknown): boolean {
  if (!isRecord(value) || !isText(value.name)) return false;
  const isTextOrAbsent = (member: unknown) => member === undefined || isText(member);
  const isFlagOrAbsent = value.required === undefined || typeof value.required === 'boolean';
  return isTextOrAbsent(value.title) && isTextOrAbsent(value.description) && isFlagOrAbsent;
}

function findToolFault(tool: Record<string, unknown>): string | undefined {
  return findSchemaFault('inputSchema', tool.inputSchema) ?? findSchemaFault('outputSchema', tool.outputSchema);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isObjectSchema(value: unknown): boolean {
  if (!isRecord(value) || value.type !== 'object') return false;
  const { properties, required } = value;
  const hasProperties = properties === undefined || isRecord(properties);
  const hasRequired = required === undefined || (Array.isArray(required) && required.every(isText));
  return hasProperties && hasRequired;
}
