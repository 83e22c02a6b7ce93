import { canonicalObject } from '../json/edit-members.js';
import { foldKey, type Span, toBytes } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { hidesCharacters } from '../json/printable.js';
import type { ListKind } from './methods.js';

/** Result of the check of one list entry. `name` is the name or URI that identifies the entry. */
export type EntryVerdict =
  /** The `nullMembers` are those to leave out: optional ones that are null, and lookalikes. */
  | { readonly kind: 'sound'; readonly name: string; readonly nullMembers: readonly string[] }
  | { readonly kind: 'unsound'; readonly name: string | undefined; readonly reason: string };

/**
 * Checks whether clients will probably accept an entry, because some clients drop the whole list over one entry that
 * they reject. One reason is an optional member that is null. A name with hidden characters is rejected too, because it
 * is misleading.
 *
 * Checks shape and size only. Never compiles a server's schema and never runs a pattern in it. From revision 2026-07-28
 * on (`isModern`), the output of a tool need not be an object.
 */
export function checkEntry(list: ListKind, entry: unknown, isModern = false): EntryVerdict {
  const { identity, required, members } = isModern && list === 'tools' ? MODERN_TOOLS : SHAPES[list];
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
  nullMembers.push(...lookalikesIn(entry));
  const { inputSchema, outputSchema } = list === 'tools' ? entry : {};
  const fault = findSchemaFault('inputSchema', inputSchema) ?? findSchemaFault('outputSchema', outputSchema);
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

const MODERN_TOOLS: Shape = {
  ...SHAPES.tools,
  members: SHAPES.tools.members.map((rule) =>
    rule[0] === 'outputSchema' ? ['outputSchema', isAnySchema, 'a schema'] : rule,
  ),
};

const KNOWN: ReadonlySet<string> = new Set(
  Object.values(SHAPES).flatMap(({ identity, members }) => [identity, ...members.map(([member]) => member)]),
);
const FOLDED: ReadonlySet<string> = new Set([...KNOWN].map(foldKey));

/** The keys that differ from a member of entries in case only, because clients that ignore case could take them for it. */
export function lookalikesIn(entry: object): readonly string[] {
  return Object.keys(entry).filter((key) => !KNOWN.has(key) && FOLDED.has(foldKey(key)));
}

function isArgumentList(value: unknown): boolean {
  return Array.isArray(value) && value.every(isArgument);
}

function isArgument(value: unknown): boolean {
  if (!isRecord(value) || !isText(value.name)) return false;
  const isTextOrAbsent = (member: unknown) => member === undefined || isText(member);
  const isFlagOrAbsent = value.required === undefined || typeof value.required === 'boolean';
  return isTextOrAbsent(value.title) && isTextOrAbsent(value.description) && isFlagOrAbsent;
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

function isAnySchema(value: unknown): boolean {
  return isRecord(value) && (value.type !== 'object' || isObjectSchema(value));
}

/** Limit of a schema in bytes. A larger one is of no use to a model; the largest real one has about half of this size. */
const MAX_SCHEMA_BYTES = 64 * 1024;
const MAX_SCHEMA_DEPTH = 32;
const MAX_SUBSCHEMAS = 1_000;
/** Limit of consecutive references that apply to the same value. */
const MAX_REFERENCES = 100;

/** Whether a value has more than `levels` levels of nesting. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const key in value) if (isDeeper((value as Record<string, unknown>)[key], levels - 1)) return true;
  return false;
}

/** Returns the reason why a schema would stall or overflow a client that compiles it; `undefined` if there is none. */
function findSchemaFault(member: string, schema: unknown): string | undefined {
  if (schema === undefined || schema === null) return undefined;
  if (isDeeper(schema, MAX_SCHEMA_DEPTH)) return `${member} nests deeper than ${MAX_SCHEMA_DEPTH}`;
  const text = JSON.stringify(schema);
  if (toBytes(text).length > MAX_SCHEMA_BYTES) return `${member} is larger than ${MAX_SCHEMA_BYTES} bytes`;
  if (countSubschemas(schema) > MAX_SUBSCHEMAS) return `${member} has more than ${MAX_SUBSCHEMAS} subschemas`;
  return text.includes('"$ref"') && refersToItself(schema) ? `${member} refers to itself without end` : undefined;
}

/** Keywords whose value is a schema, or a list of them. */
const SUBSCHEMA_KEYWORDS: ReadonlySet<string> = new Set([
  ...['items', 'additionalItems', 'prefixItems', 'unevaluatedItems', 'contains'],
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'contentSchema'],
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'],
]);
/** Keywords whose value maps names to schemas. */
const NAMED_SUBSCHEMA_KEYWORDS: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions'],
]);

/** Counts the schemas within a schema, at any depth. */
function countSubschemas(schema: unknown): number {
  if (!isRecord(schema)) return 0;
  let count = 0;
  for (const each of subschemasOf(schema))
    if (isRecord(each) || typeof each === 'boolean') count += 1 + countSubschemas(each);
  return count;
}

/** The schemas directly within a schema. Values that are no schemas may be among them. */
export function subschemasOf(schema: Readonly<Record<string, unknown>>): readonly unknown[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (NAMED_SUBSCHEMA_KEYWORDS.has(keyword) && isRecord(value)) return Object.values(value);
    return SUBSCHEMA_KEYWORDS.has(keyword) ? [value].flat() : [];
  });
}

/** Keywords whose schemas apply to the same value as the schema that contains them. */
const IN_PLACE = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'];

/**
 * Whether the validation of a value would never end, because it leads back to the same schema for the same value. A
 * recursive reference within properties or items ends with the value, and schemas of trees need such references.
 */
function refersToItself(root: unknown): boolean {
  const finished = new Set<unknown>();
  const underWay = new Set<unknown>();
  const leadsBack = (schema: unknown): boolean => {
    if (!isRecord(schema) || finished.has(schema)) return false;
    if (underWay.has(schema) || underWay.size > MAX_REFERENCES) return true;
    underWay.add(schema);
    const found = inPlaceOf(root, schema).some(leadsBack);
    underWay.delete(schema);
    finished.add(schema);
    return found;
  };
  const visit = (value: unknown): boolean => {
    if (typeof value !== 'object' || value === null) return false;
    return leadsBack(value) || Object.values(value).some(visit);
  };
  return visit(root);
}

function inPlaceOf(root: unknown, schema: Record<string, unknown>): unknown[] {
  const inner = IN_PLACE.flatMap((keyword) => [schema[keyword]].flat());
  const target = typeof schema.$ref === 'string' ? resolveLocal(root, schema.$ref) : undefined;
  return [...inner, target];
}

/** Resolves the reference `#` or `#/a/b`. Never resolves references to other documents. */
function resolveLocal(root: unknown, reference: string): unknown {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let value = root;
  for (const step of reference.slice(2).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
  }
  return value;
}

/**
 * Whether a JSON text has only visible ASCII characters, and no escapes but those of quotes, backslashes, line breaks
 * and tabs. Such a text hides nothing, and each key is written as it reads. Most entries of lists are like that, which
 * makes their checks fast.
 */
export function isOrdinary(json: string): boolean {
  return VISIBLE.test(json) && !RARE_ESCAPE.test(json);
}

const VISIBLE = /^[ -~]*$/;
/** Finds rare escapes. Also matches the character after an escaped backslash, which only costs time. */
const RARE_ESCAPE = /\\[^"\\nrt]/;

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
 * Returns the definition of a tool as canonical JSON, without spaces and with sorted members. Entries with the same
 * definition give the same text.
 *
 * Numbers keep their raw text, because some clients distinguish 1 and 1.0, and large numbers would lose digits.
 * Duplicate members stay, because clients differ in which of them counts.
 */
export function toolDefinition(bytes: Uint8Array, entry: Span): string {
  return canonicalObject(bytes, entry, (name) => DEFINING_MEMBERS.has(name));
}

/**
 * Estimates the tokens that a model reads of a definition or a list: its bytes as JSON in UTF-8, divided by 4, rounded up.
 * The tokenizers of models differ by more than this rule errs.
 */
export function estimateTokens(jsonBytes: number): number {
  return Math.ceil(jsonBytes / 4);
}

/** The estimated tokens of a list with these entries; 0 without entries. */
export function listTokens(entries: readonly Uint8Array[]): number {
  return entries.length === 0 ? 0 : estimateTokens(entries.reduce((sum, { length }) => sum + length + 1, 1));
}
