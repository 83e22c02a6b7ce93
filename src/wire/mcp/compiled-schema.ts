import { isRecord } from '../json/json-value.js';

/*
 * A client on the first generation of the official TypeScript SDK compiles all output schemas when it lists tools, with Ajv for
 * draft 7, which looks only at the keywords that it needs. If one schema does not compile, the client gets no list at all.
 */

type Schema = Readonly<Record<string, unknown>>;

/** The keywords that Ajv compiles, by the types of the values that it takes. It ignores all other keywords. */
const KEYWORDS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    string: [
      '$ref',
      'pattern',
      'format',
      'formatMaximum',
      'formatMinimum',
      'formatExclusiveMaximum',
      'formatExclusiveMinimum',
    ],
    boolean: ['nullable', 'uniqueItems'],
    number: [
      ...['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum', 'multipleOf', 'maxLength', 'minLength'],
      ...['maxItems', 'minItems', 'maxProperties', 'minProperties'],
    ],
    array: ['required', 'enum', 'allOf', 'anyOf', 'oneOf'],
    object: ['properties', 'patternProperties', 'dependencies'],
    'string or array': ['type'],
    'object or boolean': [
      ...['not', 'if', 'then', 'else'],
      ...['propertyNames', 'additionalProperties', 'additionalItems', 'contains'],
    ],
    'object or array or boolean': ['items'],
    'string or number or boolean or object or array or null': ['const'],
    // Draft 4, which Ajv refuses.
    nothing: ['id'],
  }).flatMap(([types, keywords]) => keywords.map((keyword) => [keyword, types.split(' or ')] as const)),
);

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'null', 'object', 'array']);

/** The known formats without an order, so that limits such as `formatMinimum` have no meaning. */
const UNORDERED: ReadonlySet<unknown> = new Set([
  ...['duration', 'uri', 'uri-reference', 'uri-template', 'url', 'email', 'hostname', 'ipv4', 'ipv6', 'regex', 'uuid'],
  ...[
    'json-pointer',
    'json-pointer-uri-fragment',
    'relative-json-pointer',
    'byte',
    'int32',
    'int64',
    'float',
    'double',
  ],
]);

const META_SCHEMA = 'http://json-schema.org/draft-07/schema';

/** Returns the reason why clients cannot compile a schema, to follow its name; `undefined` if they can. Runs no pattern. */
export function findCompileFault(root: Schema): string | undefined {
  const visited = new Set<unknown>();
  const hasIds = JSON.stringify(root).includes('"$id"');
  const visit = (schema: unknown): string | undefined => {
    if (schema === null) return 'has null in place of a schema';
    if (!isRecord(schema) || visited.has(schema)) return undefined;
    visited.add(schema);
    const { $ref } = schema;
    const target = typeof $ref === 'string' ? resolveLocal(root, $ref) : undefined;
    // References below an `$id` are relative to it.
    const mayBeElsewhere = hasIds || typeof $ref !== 'string' || $ref.split('#', 1)[0] === META_SCHEMA;
    if (target === undefined && !mayBeElsewhere) return `refers to ${JSON.stringify($ref)}, which it does not have`;
    let fault = isEndless(root, schema) ? 'refers to itself without end' : findOwnFault(schema);
    for (const each of [target, ...innerOf(schema)]) fault ??= visit(each);
    return fault;
  };
  return visit(root) ?? findAnchorFault(root);
}

/** Returns the fault of an anchor. Looks wherever there may be a schema, also in definitions without a reference. */
function findAnchorFault(root: Schema): string | undefined {
  const seen = new Set<unknown>();
  for (const { $anchor, $dynamicAnchor } of schemasBelow(root)) {
    for (const anchor of [$anchor, $dynamicAnchor]) {
      if (typeof anchor !== 'string') continue;
      if (!/^[a-z_][-a-z0-9._]*$/i.test(anchor)) return `has the anchor ${JSON.stringify(anchor)}, which is not valid`;
      if (seen.has(anchor)) return `has the anchor ${JSON.stringify(anchor)} twice`;
      seen.add(anchor);
    }
  }
  return undefined;
}

/** The values within a schema in which Ajv looks for anchors. */
function* schemasBelow(schema: Schema): Generator<Schema> {
  for (const [keyword, value] of Object.entries(schema)) {
    if (NO_SCHEMAS.has(keyword)) continue;
    const isMany = Array.isArray(value)
      ? LISTS_OF_SCHEMAS.has(keyword)
      : isRecord(value) && MAPS_OF_SCHEMAS.has(keyword);
    for (const each of isMany ? Object.values(value as object) : [value]) {
      if (!isRecord(each)) continue;
      yield each;
      yield* schemasBelow(each);
    }
  }
}

const NO_SCHEMAS = new Set(['default', 'enum', 'const']);
const LISTS_OF_SCHEMAS = new Set(['items', 'allOf', 'anyOf', 'oneOf']);
const MAPS_OF_SCHEMAS = new Set(['$defs', 'definitions', 'properties', 'patternProperties', 'dependencies']);

/** Whether references lead only to further references, without end. */
function isEndless(root: Schema, schema: Schema): boolean {
  let at: unknown = schema;
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const { $ref, ...others } = isRecord(at) ? at : {};
    if (typeof $ref !== 'string' || !/^#\/./.test($ref) || !isAnything(others)) return false;
    at = resolveLocal(root, $ref);
  }
  return true;
}

const MAX_STEPS = 100;

function findOwnFault(schema: Schema): string | undefined {
  for (const [keyword, value] of Object.entries(schema)) {
    const types = KEYWORDS.get(keyword);
    if (types?.includes(typeOf(value)) === false) return `has a malformed "${keyword}"`;
  }
  const { type, nullable, enum: values, $id = '', format } = schema;
  const types = [type || []].flat();
  if (!types.every((each) => TYPES.has(each))) return 'has an unknown "type"';
  if (nullable !== undefined && (types.length === 0 || (nullable === false && types.includes('null'))))
    return 'has a "nullable" that does not fit its type';
  if (Array.isArray(values) && values.length === 0) return 'has an empty "enum"';
  if (typeof $id !== 'string') return 'has a malformed "$id"';
  if ((format === undefined || UNORDERED.has(format)) && Object.keys(schema).some((key) => /^format(?:Ex|M)/.test(key)))
    return 'has limits for a "format" without an order';
  const pattern = patternsOf(schema).find((each) => !isPattern(each));
  return pattern === undefined ? undefined : `has the pattern ${JSON.stringify(pattern)}, which is not valid`;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function patternsOf({ pattern, patternProperties, additionalProperties = true }: Schema): readonly unknown[] {
  const named = Object.entries(isRecord(patternProperties) ? patternProperties : {});
  const areNeeded = !isAnything(additionalProperties) || named.some(([, schema]) => !isAnything(schema));
  return [...(pattern === undefined ? [] : [pattern]), ...(areNeeded ? named.map(([each]) => each) : [])];
}

function isPattern(pattern: unknown): boolean {
  try {
    return new RegExp(String(pattern), 'u') !== undefined;
  } catch {
    return false;
  }
}

/** Whether a schema has no keyword that Ajv compiles. */
function isAnything(schema: unknown): boolean {
  if (!isRecord(schema)) return schema !== false && schema !== null;
  return !Object.keys(schema).some((key) => KEYWORDS.has(key));
}

function innerOf(schema: Schema): readonly unknown[] {
  const { items, additionalItems, anyOf: choices, if: condition, then = true, else: otherwise = true } = schema;
  const anyOf = Array.isArray(choices) ? choices : [];
  // Ajv reads no further than the first choice that allows everything.
  const end = anyOf.findIndex(isAnything);
  const maps = [schema.properties, schema.patternProperties, schema.dependencies];
  return [
    ...maps.flatMap((map) => (isRecord(map) ? Object.values(map) : [])),
    ...[schema.not, schema.propertyNames, schema.additionalProperties, schema.contains],
    ...[schema.allOf, schema.oneOf, items].flat(),
    ...(Array.isArray(items) ? [additionalItems] : []),
    ...(end < 0 ? anyOf : anyOf.slice(0, end).filter((each) => each === null)),
    ...(condition === undefined || (isAnything(then) && isAnything(otherwise)) ? [] : [condition, then, otherwise]),
  ];
}

/** Resolves a reference such as `#`, `#/a/b` or `#name`. Never resolves references to other documents. */
export function resolveLocal(root: unknown, reference: string): unknown {
  if (/^#?\/?$/.test(reference)) return root;
  if (!reference.startsWith('#')) return undefined;
  if (!reference.startsWith('#/')) return findAnchor(root, reference.slice(1));
  let value = root;
  for (const step of reference.slice(2).split('/')) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
  }
  return value;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function findAnchor(root: unknown, name: string): unknown {
  if (!isRecord(root)) return undefined;
  for (const schema of schemasBelow(root)) {
    if ([schema.$anchor, schema.$dynamicAnchor].includes(name) || schema.$id === `#${name}`) return schema;
  }
  return undefined;
}
