import { rewriteObject } from '../json/edit-members.js';
import {
  isObject,
  OPEN_BRACKET,
  readString,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
  visitElements,
  visitMembers,
} from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { type Edit, splice } from '../json/splice.js';
import { join } from '../jsonrpc/message.js';
import type { ResponseEnvelope } from './envelope.js';

/*
 * From revision 2026-07-28 on, the structured output of a tool can be any JSON value. Before, it was an object. For clients of
 * the earlier revisions, any other output becomes the member `result` of an object, in the schema and in the results. The
 * official TypeScript SDK does the same, so that a server which speaks both eras looks the same directly.
 */

/** Whether a tool has an output schema whose root need not be an object. */
export function hasOtherOutput(tool: unknown): boolean {
  return isRecord(tool) && isRecord(tool.outputSchema) && tool.outputSchema.type !== 'object';
}

/** Returns the entry of such a tool for clients of earlier revisions. Only the schema changes. */
export function asLegacyTool(bytes: Uint8Array, entry: Span): Uint8Array {
  return rewriteObject(bytes, entry, {
    change: (name, value) => (name === 'outputSchema' && isObject(bytes, value) ? wrapSchema(bytes, value) : undefined),
  });
}

/**
 * Edits the result of a tool for clients of earlier revisions. `isOther` is whether the tool has another output than an
 * object: then an object is wrapped, too.
 */
export function asLegacyResult({ bytes, result }: ResponseEnvelope, isOther: boolean): readonly Edit[] {
  const contents = result === undefined ? [] : valuesAt(bytes, result, ['structuredContent']);
  return contents.flatMap((span) => {
    if (!isOther && isObject(bytes, span)) return [];
    return [{ span, text: join([BEFORE_RESULT, bytes.subarray(span.start, span.end), CLOSE]) }];
  });
}

const BEFORE_RESULT = toBytes('{"result":');
const CLOSE = toBytes('}');

function wrapSchema(bytes: Uint8Array, schema: Span): Uint8Array {
  const dialect = valuesAt(bytes, schema, ['$schema'])
    .map((span) => stringAt(bytes, span))
    .findLast((text) => text !== undefined);
  const isAnchored = valuesAt(bytes, schema, ['$recursiveAnchor']).some(({ start }) => bytes[start] === LETTER_T);
  const isRecursive = dialect?.includes('/2019-09/') === true && !isAnchored;
  const edits: Edit[] = [];
  pointReferences(bytes, schema, isRecursive, edits);
  const declared = dialect === undefined ? '' : `"$schema":${JSON.stringify(dialect)},`;
  return join([
    toBytes(`{${declared}"type":"object","properties":{"result":`),
    splice({ bytes, span: schema, edits }),
    toBytes('},"required":["result"]}'),
  ]);
}

/** The first byte of the token `true`. */
const LETTER_T = 0x74;

/** Path to the schema in the wrapped one. */
const NEW_ROOT = '#/properties/result';

/** Keywords whose values are data, in which `$ref` means nothing. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
/** Keywords whose values map names to schemas. A name there is no keyword. */
const NAME_MAPS: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', 'dependentSchemas', 'dependencies'],
  ...['$defs', 'definitions'],
]);

/**
 * Points the references within a schema to its new place. Those to other documents stay. `isRecursive` tells whether
 * `$recursiveRef` of 2019-09 means the root of the schema, as it does there without an anchor.
 */
function pointReferences(bytes: Uint8Array, root: Span, isRecursive: boolean, edits: Edit[]): void {
  const visit = (value: Span, kind: 'schema' | 'names'): void => {
    if (bytes[value.start] === OPEN_BRACKET)
      visitElements(bytes, value.start, Number.POSITIVE_INFINITY, (element) => visit(element, 'schema'));
    if (!isObject(bytes, value)) return;
    const members: { name: string; key: Span; inner: Span }[] = [];
    visitMembers(bytes, value.start, Number.POSITIVE_INFINITY, (key, inner) => {
      members.push({ name: readString(bytes, key), key, inner });
    });
    if (kind === 'names') {
      for (const { inner } of members) visit(inner, 'schema');
      return;
    }
    // References below such an id are relative to it.
    if (members.some(({ name, inner }) => name === '$id' && stringAt(bytes, inner)?.startsWith('#') !== true)) return;
    const hasRef = members.some(({ name }) => name === '$ref');
    for (const { name, key, inner } of members) {
      const reference = stringAt(bytes, inner);
      if (name === '$ref' || name === '$dynamicRef') {
        if (reference === '#' || reference?.startsWith('#/') === true)
          edits.push({ span: inner, text: toBytes(JSON.stringify(`${NEW_ROOT}${reference.slice(1)}`)) });
      } else if (name === '$recursiveRef' && isRecursive && !hasRef && reference === '#') {
        edits.push({ span: { start: key.start, end: inner.end }, text: toBytes(`"$ref":"${NEW_ROOT}"`) });
      } else if (!DATA.has(name)) visit(inner, NAME_MAPS.has(name) ? 'names' : 'schema');
    }
  };
  visit(root, 'schema');
}
