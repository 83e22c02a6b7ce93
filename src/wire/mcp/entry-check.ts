import { canonicalObject, REMOVED, rewriteObject } from '../json/edit-members.js';
import { foldKey, type Span, toBytes } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { clipText, hidesCharacters } from '../json/printable.js';
import { findCompileFault, resolveLocal } from './compiled-schema.js';
import { isNamed, type ListKind } from './methods.js';

/** Result of the check of one list entry. `name` is the name or URI that identifies the entry. */
export type EntryVerdict =
  | {
      readonly kind: 'sound';
      readonly name: string;
      /** New values of members, without which clients would reject the entry; `undefined` for a key to leave out. */
      readonly changes: Changes;
      /** Reason for the changes. `undefined` if there are none, or if only null and lookalikes are left out. */
      readonly repaired: string | undefined;
    }
  | { readonly kind: 'unsound'; readonly name: string | undefined; readonly reason: string };

/**
 * Judges an entry as the official SDKs of both generations do, because a client drops the whole list over one entry that
 * it rejects. A malformed part that no client could have used is left out or replaced. An entry without such a repair is
 * unsound. A name with hidden characters is rejected too, because it is misleading.
 *
 * Checks shape and size only. Never runs a server's schema or a pattern in it. From revision 2026-07-28
 * on (`isModern`), the output of a tool need not be an object.
 */
export function checkEntry(list: ListKind, entry: unknown, isModern = false): EntryVerdict {
  const { identity, members } = isModern && list === 'tools' ? MODERN_TOOLS : SHAPES[list];
  if (!isRecord(entry)) return { kind: 'unsound', name: undefined, reason: 'is not an object' };
  const name = entry[identity];
  if (typeof name !== 'string' || name === '') {
    return { kind: 'unsound', name: undefined, reason: `has no ${identity}` };
  }
  const unsound = (reason: string): EntryVerdict => ({ kind: 'unsound', name, reason });
  if (hidesCharacters(name)) return unsound(`its ${identity} hides characters`);
  const { found, say } = collectFaults();
  const { changes, isLost } = mendMembers(entry, members, say);
  if (isLost) return unsound(found.at(-1) ?? '');
  if (!isNamed(list) && !isText(entry.name)) {
    say('.name is not a string');
    changes.set('name', isText(entry.title) ? entry.title : name);
  }
  if (isText(entry.name) && hidesCharacters(entry.name)) return unsound('its name hides characters');
  for (const key of lookalikesIn(entry)) changes.set(key, undefined);
  const { inputSchema, outputSchema } = list === 'tools' ? changed(entry, changes) : {};
  const fault = findSchemaFault('inputSchema', inputSchema) ?? findSchemaFault('outputSchema', outputSchema);
  if (fault !== undefined) return unsound(fault);
  const uncompiled = isRecord(outputSchema) ? findCompileFault(outputSchema) : undefined;
  if (uncompiled !== undefined) {
    say(`.outputSchema ${uncompiled}`);
    changes.set('outputSchema', undefined);
  }
  return { kind: 'sound', name, changes, repaired: summaryOf(found) };
}

/** Limit of the text about one fault, which has names of the server. */
const MAX_FAULT_BYTES = 200;

/** Collects faults, and passes them on to `next`. */
export function collectFaults(next?: Say) {
  const found: string[] = [];
  const say: Say = (fault) => {
    found.push(clipText(fault.slice(1), MAX_FAULT_BYTES, '…'));
    next?.(fault);
  };
  return { found, say };
}

/** The first fault, and the number of the others; `undefined` without any. */
export function summaryOf([first, ...others]: readonly string[]): string | undefined {
  return first !== undefined && others.length > 0 ? `${first}, and ${others.length} more` : first;
}

type Changes = ReadonlyMap<string, unknown>;

/** Receives a fault: the path of a value, such as `.icons[0]`, and the words that follow it. */
export type Say = (fault: string) => void;

/**
 * Returns a sound value as it is, a malformed one as clients accept it, `undefined` if it has to be left out, or `LOST` if the
 * object that has it is of no use without it.
 */
export type Mend = (value: unknown, say: Say) => unknown;

const LOST = Symbol('lost');

/** Rule for one member of an object, and whether the object is of no use without this member. */
export type Rule = readonly [member: string, mend: Mend, need?: 'required'];

/** Mends the members that have a rule. Returns the new values, and whether a required member is lost. */
export function mendMembers(value: Readonly<Record<string, unknown>>, rules: readonly Rule[], say: Say) {
  const changes = new Map<string, unknown>();
  let isLost = false;
  for (const [member, mend, need] of rules) {
    const before = value[member];
    if (need === undefined && (before === undefined || before === null)) {
      if (before === null) changes.set(member, undefined);
      continue;
    }
    const after = mend(before, (fault) => say(`.${member}${fault}`));
    isLost ||= after === LOST || (after === undefined && need !== undefined);
    if (after !== before) changes.set(member, after);
  }
  return { changes, isLost };
}

/** Returns the object with new values of members. A value that is `undefined` removes its member. */
export function changed(value: Readonly<Record<string, unknown>>, changes: Changes): Readonly<Record<string, unknown>> {
  if (changes.size === 0) return value;
  const members = Object.entries({ ...value, ...Object.fromEntries(changes) });
  return Object.fromEntries(members.filter(([, each]) => each !== undefined));
}

/** Makes the same changes in the bytes of an object. All other bytes stay. */
export function withChanges(bytes: Uint8Array, span: Span, changes: Changes): Uint8Array {
  if (changes.size === 0) return bytes;
  return rewriteObject(bytes, span, {
    change: (member) => {
      const value = changes.get(member);
      if (value === undefined) return changes.has(member) ? REMOVED : undefined;
      return toBytes(JSON.stringify(value));
    },
    insert: (names) =>
      [...changes].flatMap(([member, value]) => {
        const isThere = value === undefined || names.has(member);
        return isThere ? [] : [toBytes(`${JSON.stringify(member)}:${JSON.stringify(value)}`)];
      }),
  });
}

/** Returns a `Mend` for an object with these members. Other members stay. */
export function object(...rules: readonly Rule[]): Mend {
  return (value, say) => {
    if (!isRecord(value)) return void say(' is not an object');
    const { changes, isLost } = mendMembers(value, rules, say);
    return isLost ? undefined : changed(value, changes);
  };
}

/** A list without its malformed elements; `undefined` if no other is left. */
function list(mend: Mend): Mend {
  return (value, say) => {
    if (!Array.isArray(value)) return void say(' is not a list');
    const mended = value.map((each, index) => mend(each, (fault) => say(`[${index}]${fault}`)));
    const kept = mended.filter((each) => each !== undefined);
    if (kept.length === 0 && value.length > 0) return undefined;
    return kept.length === value.length && kept.every((each, index) => each === value[index]) ? value : kept;
  };
}

/** Returns a `Mend` that leaves out a value that is not right. `expected` follows *is not* in the fault. */
export function is(isRight: (value: unknown) => boolean, expected: string): Mend {
  return (value, say) => (isRight(value) ? value : void say(` is not ${expected}`));
}

export function oneOf(...texts: readonly string[]): Mend {
  const names = texts.map((each) => `"${each}"`).join(' or ');
  return is((value) => isText(value) && texts.includes(value), names);
}

/** A list in which a client needs each element. */
function wholeList(mend: Mend): Mend {
  return (value, say) => {
    const mended = list(mend)(value, say);
    return Array.isArray(mended) && mended.length === (value as unknown[]).length ? mended : LOST;
  };
}

export const text = is(isText, 'a string');
export const isFlag = is((value) => typeof value === 'boolean', 'true or false');
export const anyObject = object();

interface Shape {
  readonly identity: string;
  readonly members: readonly Rule[];
}

const COMMON: readonly Rule[] = [
  ['title', text],
  ['description', text],
  [
    'icons',
    list(
      object(['src', text, 'required'], ['mimeType', text], ['sizes', list(text)], ['theme', oneOf('light', 'dark')]),
    ),
  ],
  ['_meta', anyObject],
];

export const ANNOTATIONS: Rule = [
  'annotations',
  object(
    ['audience', list(oneOf('user', 'assistant'))],
    ['priority', is((value) => typeof value === 'number' && value >= 0 && value <= 1, 'a number from 0 to 1')],
    ['lastModified', is(isMoment, 'a time with date and offset')],
  ),
];

export const RESOURCE_MEMBERS: readonly Rule[] = [
  ...COMMON,
  ['mimeType', text],
  ['size', is(Number.isFinite, 'a number')],
  ANNOTATIONS,
];

const TOOL_MEMBERS: readonly Rule[] = [
  ...COMMON,
  ['inputSchema', mendInputSchema, 'required'],
  [
    'annotations',
    object(
      ['title', text],
      ...['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'].map((hint) => [hint, isFlag] as const),
    ),
  ],
  ['execution', object(['taskSupport', oneOf('required', 'optional', 'forbidden')])],
];

const SHAPES: Readonly<Record<ListKind, Shape>> = {
  tools: { identity: 'name', members: [...TOOL_MEMBERS, ['outputSchema', mendOutputSchema]] },
  prompts: {
    identity: 'name',
    members: [
      ...COMMON,
      ['arguments', wholeList(object(['name', text, 'required'], ['description', text], ['required', isFlag]))],
    ],
  },
  resources: { identity: 'uri', members: RESOURCE_MEMBERS },
  templates: { identity: 'uriTemplate', members: RESOURCE_MEMBERS.filter(([member]) => member !== 'size') },
};

const MODERN_TOOLS: Shape = { identity: 'name', members: [...TOOL_MEMBERS, ['outputSchema', mendAnySchema]] };

const KNOWN: ReadonlySet<string> = new Set(
  Object.values(SHAPES).flatMap(({ identity, members }) => [identity, ...members.map(([member]) => member)]),
);
const FOLDED: ReadonlySet<string> = new Set([...KNOWN].map(foldKey));

/** The keys that differ from a member of entries in case only, because clients that ignore case could take them for it. */
export function lookalikesIn(entry: object): readonly string[] {
  return Object.keys(entry).filter((key) => !KNOWN.has(key) && FOLDED.has(foldKey(key)));
}

export function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Whether a value is a time such as `2025-01-12T15:00:58Z`, on a day that exists. */
function isMoment(value: unknown): boolean {
  const [, year = 0, month = 0, day = 0] = (isText(value) && MOMENT.exec(value)?.map(Number)) || [];
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 ? 28 + Number(isLeap) : 31 - Number([4, 6, 9, 11].includes(month));
  return month >= 1 && month <= 12 && day >= 1 && day <= days;
}

const MOMENT =
  /^(\d{4})-(\d{2})-(\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Arguments are always an object. An empty list stands for an empty object, because PHP writes it so. */
function mendInputSchema(value: unknown, say: Say): unknown {
  const schema = Array.isArray(value) && value.length === 0 ? {} : value;
  return mendObjectSchema(schema, say);
}

/** In revisions with a handshake, the output of a tool is an object, if it is not null. */
function mendOutputSchema(value: unknown, say: Say): unknown {
  if (!isRecord(value)) return void say(' is not an object');
  return mendObjectSchema(value, say, ['object', 'null']);
}

/** Gives a schema the type "object" if it has no type, or "object" and others that are `allowed`, by default any. */
function mendObjectSchema(schema: unknown, say: Say, allowed?: readonly unknown[]): unknown {
  const types = isRecord(schema) ? [schema.type ?? 'object'].flat() : [];
  if (!types.includes('object') || types.some((type) => allowed?.includes(type) === false)) {
    say(' is not a schema of type "object"');
    return LOST;
  }
  const mended = OBJECT_SCHEMA(schema, say);
  if (isRecord(schema) && schema.type === 'object') return mended;
  say(' has no type "object"');
  return { ...(mended as object), type: 'object' };
}

/** A schema of any type. Clients with a handshake get it within a property. */
function mendAnySchema(value: unknown, say: Say): unknown {
  if (!isRecord(value) || value.type === 'object') return mendOutputSchema(value, say);
  return mendNumbers(object(['$schema', text])(value, say), say);
}

const OBJECT_SCHEMA = object(['$schema', text], ['properties', mendProperties], ['required', list(text)]);

/** Mends the schemas of properties, because the first generation of the official SDK wants objects, and the second finite numbers. */
function mendProperties(value: unknown, say: Say): unknown {
  if (!isRecord(value)) return void say(' is not an object');
  const changes = new Map<string, unknown>();
  for (const [name, schema] of Object.entries(value)) {
    // The SDKs skip a property of this name.
    if (name === '__proto__') continue;
    const mended = mendProperty(schema, (fault) => say(`.${name}${fault}`));
    if (mended !== schema) changes.set(name, mended);
  }
  return changed(value, changes);
}

function mendProperty(schema: unknown, say: Say): unknown {
  if (typeof schema === 'object' && schema !== null) return mendNumbers(schema, say);
  say(' is not an object');
  return schema === false ? { not: {} } : {};
}

function mendNumbers(value: unknown, say: Say): unknown {
  if (!hasInfinite(value)) return value;
  say(' has a number that is too large');
  return withFinite(value);
}

function hasInfinite(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasInfinite);
}

/** Replaces each number that is too large for JavaScript by the largest one. */
function withFinite(value: unknown): unknown {
  if (typeof value === 'number') return Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE);
  if (Array.isArray(value)) return value.map(withFinite);
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withFinite(each)]))
    : value;
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

/**
 * Whether a JSON text has only visible ASCII characters, and no escapes but those of quotes, backslashes, line breaks and tabs. Such a text
 * hides nothing, and each key is written as it reads. Most entries of lists are like that, which makes their checks fast.
 */
export function isOrdinary(json: string): boolean {
  return VISIBLE.test(json) && !RARE_ESCAPE.test(json);
}

const VISIBLE = /^[ -~]*$/;
/** Finds rare escapes. Also matches the character after an escaped backslash, which only costs time. */
const RARE_ESCAPE = /\\[^"\\nrt]/;

/**
 * Returns the whole definition of an entry as canonical JSON, without spaces and with sorted members. Entries with the same
 * definition give the same text. No member is left out, because clients may show any of them to a model.
 *
 * Numbers keep their raw text, because some clients distinguish 1 and 1.0, and large numbers would lose digits.
 * Duplicate members stay, because clients differ in which of them counts.
 */
export function entryDefinition(bytes: Uint8Array, entry: Span): string {
  return canonicalObject(bytes, entry, () => true);
}

/**
 * Estimates the tokens that a model reads of a definition or a list: its bytes as JSON in UTF-8, divided by 4, rounded up.
 * The tokenizers of models differ by more than this rule errs.
 */
export function estimateTokens(jsonBytes: number): number {
  return Math.ceil(jsonBytes / 4);
}

/** The estimated tokens of a list with these entries; 0 without entries. */
export function tokensOfList(entries: readonly Uint8Array[]): number {
  return entries.length === 0 ? 0 : estimateTokens(entries.reduce((sum, { length }) => sum + length + 1, 1));
}
