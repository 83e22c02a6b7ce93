import { isRecord } from '../json/is-record.js';
import { toBytes } from '../json/json-text.js';

/** A larger schema is of no use to a model; the largest seen in the field is about half of it. */
const MAX_SCHEMA_BYTES = 64 * 1024;
const MAX_SCHEMA_DEPTH = 32;
const MAX_SUBSCHEMAS = 1_000;
/** The most references in a row that apply to the same value. */
const MAX_REFERENCES = 100;

/**
 * Returns why a schema would stall or overflow a client that compiles it; `undefined` if it would not. Checks shape and
 * size only: never compiles the schema and never runs a pattern in it.
 */
export function findSchemaFault(member: string, schema: unknown): string | undefined {
  if (schema === undefined || schema === null) return undefined;
  const tooLarge = `${member} is larger than ${MAX_SCHEMA_BYTES} bytes`;
  if (leastBytesOf(schema, MAX_SCHEMA_BYTES) > MAX_SCHEMA_BYTES) return tooLarge;
  if (depthOf(schema, MAX_SCHEMA_DEPTH + 1) > MAX_SCHEMA_DEPTH)
    return `${member} nests deeper than ${MAX_SCHEMA_DEPTH}`;
  const text = JSON.stringify(schema);
  if (toBytes(text).length > MAX_SCHEMA_BYTES) return tooLarge;
  // Most schemas are small and have no references, and a client waits for this check.
  if (text.length > MAX_SUBSCHEMAS * LEAST_SUBSCHEMA.length && countSubschemas(schema) > MAX_SUBSCHEMAS)
    return `${member} has more than ${MAX_SUBSCHEMAS} subschemas`;
  return text.includes('"$ref"') && refersToItself(schema) ? `${member} refers to itself without end` : undefined;
}

/** The shortest subschema, and the comma behind it. */
const LEAST_SUBSCHEMA = '{},';

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
  for (const [keyword, value] of Object.entries(schema)) {
    const isMap = NAMED_SUBSCHEMA_KEYWORDS.has(keyword) && isRecord(value);
    const inner = isMap ? Object.values(value) : SUBSCHEMA_KEYWORDS.has(keyword) ? [value].flat() : [];
    for (const each of inner) if (isRecord(each) || typeof each === 'boolean') count += 1 + countSubschemas(each);
  }
  return count;
}

/** Returns the least bytes that a value takes as JSON. Stops counting above `limit`. */
function leastBytesOf(value: unknown, limit: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 1;
  let least = 2;
  for (const key in value) {
    if (!Array.isArray(value)) least += key.length + 3;
    least += 1 + leastBytesOf(Reflect.get(value, key), limit - least);
    if (least > limit) break;
  }
  return least - 1;
}

/** Returns the levels of nesting in a value, or `limit` if there are more. */
function depthOf(value: unknown, limit: number): number {
  if (typeof value !== 'object' || value === null || limit === 0) return 0;
  let deepest = 0;
  for (const inner of Object.values(value)) deepest = Math.max(deepest, depthOf(inner, limit - 1));
  return deepest + 1;
}

/** Keywords whose schemas apply to the same value as the schema that contains them. */
const IN_PLACE = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'];

/**
 * Whether validation of a value would lead back to the same schema for the same value, and so never end. A recursive
 * reference within properties or items ends with the value; schemas of trees need those.
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
