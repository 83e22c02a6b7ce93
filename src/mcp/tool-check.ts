import { toBytes } from '../jsonrpc/json-text.js';

/** A schema beyond this is no schema that a model could use; the largest seen in the field is about half of it. */
const MAX_SCHEMA_BYTES = 64 * 1024;
const MAX_SCHEMA_DEPTH = 32;

/** Members that a tool may lack but that must not be null: strict clients refuse the whole list for one such tool. */
const OPTIONAL_MEMBERS = ['title', 'description', 'outputSchema', 'annotations', 'icons', 'execution', '_meta'];

/** What is to be done with one tool of a server's list. */
export type ToolVerdict =
  | { readonly kind: 'sound'; readonly name: string; readonly nullMembers: readonly string[] }
  | { readonly kind: 'unsound'; readonly name: string | undefined; readonly reason: string };

/**
 * Whether a client can be expected to take this tool. One that it would refuse makes some clients drop every tool.
 *
 * Only shape and size are looked at; no schema of a child is ever compiled, nor a pattern of one run.
 */
export function checkTool(tool: unknown): ToolVerdict {
  if (!isRecord(tool)) return { kind: 'unsound', name: undefined, reason: 'is not an object' };
  const { name } = tool;
  if (typeof name !== 'string' || name === '') return { kind: 'unsound', name: undefined, reason: 'has no name' };
  const nullMembers = OPTIONAL_MEMBERS.filter((member) => tool[member] === null);
  for (const [member, isRight, expected] of MEMBER_RULES) {
    const value = tool[member];
    const isAbsent = value === undefined || (value === null && nullMembers.includes(member));
    if (isAbsent && member !== 'inputSchema') continue;
    if (!isRight(value)) return { kind: 'unsound', name, reason: `${member} is not ${expected}` };
  }
  const fault = findSchemaFault('inputSchema', tool.inputSchema) ?? findSchemaFault('outputSchema', tool.outputSchema);
  return fault === undefined ? { kind: 'sound', name, nullMembers } : { kind: 'unsound', name, reason: fault };
}

type MemberRule = readonly [member: string, isRight: (value: unknown) => boolean, expected: string];

const MEMBER_RULES: readonly MemberRule[] = [
  ['title', isText, 'a string'],
  ['description', isText, 'a string'],
  ['inputSchema', isObjectSchema, 'a schema of type "object"'],
  ['outputSchema', isObjectSchema, 'a schema of type "object"'],
  ['annotations', isRecord, 'an object'],
  ['icons', Array.isArray, 'a list'],
  ['execution', isRecord, 'an object'],
  ['_meta', isRecord, 'an object'],
];

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

function findSchemaFault(member: string, schema: unknown): string | undefined {
  if (schema === undefined || schema === null) return undefined;
  if (depthOf(schema, MAX_SCHEMA_DEPTH + 1) > MAX_SCHEMA_DEPTH)
    return `${member} nests deeper than ${MAX_SCHEMA_DEPTH}`;
  if (toBytes(JSON.stringify(schema)).length > MAX_SCHEMA_BYTES)
    return `${member} is larger than ${MAX_SCHEMA_BYTES} bytes`;
  return undefined;
}

/** Levels of nesting, counted no further than `limit`. */
function depthOf(value: unknown, limit: number): number {
  if (typeof value !== 'object' || value === null || limit === 0) return 0;
  let deepest = 0;
  for (const inner of Object.values(value)) deepest = Math.max(deepest, depthOf(inner, limit - 1));
  return deepest + 1;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
