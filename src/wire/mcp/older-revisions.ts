import { editMembers, REMOVED, rewriteObject } from '../json/edit-members.js';
import {
  elementsOf,
  isObject,
  isString,
  membersOf,
  readString,
  readText,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
  visitMembers,
} from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { type Edit, splice } from '../json/splice.js';
import { join } from '../jsonrpc/message.js';
import type { ResponseEnvelope } from './envelope.js';
import { METHODS } from './methods.js';
import type { RelayedRequest, RequestParams } from './relayed-request.js';
import { isOlder } from './revisions.js';

/** Member of a notification's `_meta` with the id of the `subscriptions/listen` request that it belongs to. */
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** Members of `_meta` that a modern client puts into each request. Legacy servers know none of them. */
const OF_META: ReadonlySet<string> = new Set(
  ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map((name) => `io.modelcontextprotocol/${name}`),
);
/** Members of `params` that a modern client adds when it repeats a request. */
const OF_PARAMS: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);

/** Removes the members of a modern client's request or notification that a legacy server must not get. */
export function withoutEraMembers({ bytes, params, tokens }: RequestParams): readonly Edit[] {
  const { requestMeta, inputResponses, requestState } = tokens;
  const ofMeta = requestMeta === undefined ? [] : without(OF_META, bytes, requestMeta);
  if (params === undefined || (inputResponses === undefined && requestState === undefined)) return ofMeta;
  return [...ofMeta, ...without(OF_PARAMS, bytes, params)];
}

/** Member of a result's `_meta` that names the server. Legacy clients get the name from `initialize`. */
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
/** Members of a modern server's result that a legacy client does not know. */
const OF_RESULT = ['resultType', 'ttlMs', 'cacheScope'] as const;

/** Removes the members of a modern server's result that a legacy client must not get, and a `_meta` that becomes empty. */
export function withoutResultMembers({ bytes, result, tokens }: ResponseEnvelope): readonly Edit[] {
  const { resultMeta, resultServerInfo } = tokens;
  if (result === undefined) return [];
  const isNamed = resultMeta !== undefined && resultServerInfo !== undefined;
  const isOnlyNamed = isNamed && hasOnly(SERVER_INFO, bytes, resultMeta);
  const names = OF_RESULT.filter((name) => tokens[name] !== undefined);
  const all = new Set<string>(isOnlyNamed ? [...names, '_meta'] : names);
  return [
    ...(isNamed && !isOnlyNamed ? without(new Set([SERVER_INFO]), bytes, resultMeta) : []),
    ...(all.size > 0 ? without(all, bytes, result) : []),
  ];
}

/** Whether an object has no member with another name. */
export function hasOnly(name: string, bytes: Uint8Array, object: Span): boolean {
  let isAlone = true;
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key) => {
    isAlone &&= readString(bytes, key) === name;
  });
  return isAlone;
}

function without(names: ReadonlySet<string>, bytes: Uint8Array, object: Span): Edit[] {
  return editMembers(bytes, object, { removes: (name) => names.has(name) });
}

/** Types of content blocks that every revision knows. Later types follow, with the revision that added them. */
const ALWAYS_KNOWN: ReadonlySet<string> = new Set(['text', 'image', 'resource']);
const AUDIO_SINCE = '2025-03-26';

/** First revision in which the choices of an elicitation have titles. */
const TITLED_SINCE = '2025-11-25';

/**
 * Edits the content blocks that a client of this revision does not know, in the result of a tool or of a prompt. A link
 * to a resource becomes text, audio becomes an embedded resource, and every other block becomes its own JSON as text.
 */
export function asOlderContent(
  { bytes, result }: ResponseEnvelope,
  kind: 'tool' | 'prompt',
  revision: string,
): readonly Edit[] {
  if (result === undefined) return [];
  const blocks =
    kind === 'tool'
      ? elementsAt(bytes, result, 'content')
      : elementsAt(bytes, result, 'messages').flatMap((message) => valuesAt(bytes, message, ['content']));
  return blocks.flatMap((span, index) => {
    const text = isObject(bytes, span) ? asOlderBlock(bytes, span, revision, index) : undefined;
    return text === undefined ? [] : [{ span, text }];
  });
}

function asOlderBlock(bytes: Uint8Array, block: Span, revision: string, index: number): Uint8Array | undefined {
  const textAt = (member: string) => stringAt(bytes, valuesAt(bytes, block, [member])[0]);
  const type = textAt('type');
  if (type === undefined || ALWAYS_KNOWN.has(type)) return undefined;
  const isAudio = type === 'audio';
  if (isAudio && !isOlder(revision, AUDIO_SINCE)) return undefined;
  const [data] = isAudio ? valuesAt(bytes, block, ['data']) : [];
  if (data !== undefined && isString(bytes, data)) {
    const about = JSON.stringify({ uri: `urn:trunkline:audio:${index + 1}`, mimeType: textAt('mimeType') });
    const resource = `${about.slice(0, -1)},"blob":${readText(bytes, data)}}`;
    return withContent(bytes, block, 'resource', `"resource":${resource}`);
  }
  const [uri, name = uri] = [textAt('uri'), textAt('title') ?? textAt('name')];
  const isLink = type === 'resource_link' && uri !== undefined;
  const lines = isLink ? [`${name}: ${uri}`, textAt('description')] : [readText(bytes, block)];
  const text = lines.filter((line) => line !== undefined).join('\n');
  return withContent(bytes, block, 'text', `"text":${JSON.stringify(text)}`);
}

/** Returns a content block as another type. Only the members that every block can have remain. */
export function withContent(bytes: Uint8Array, block: Span, type: string, content: string): Uint8Array {
  return rewriteObject(bytes, block, {
    change: (name) => (COMMON.has(name) ? undefined : REMOVED),
    insert: () => [toBytes(`"type":"${type}"`), toBytes(content)],
  });
}

const COMMON: ReadonlySet<string> = new Set(['annotations', '_meta']);

/** Edits the choices with titles in an elicitation for a client whose revision has separate lists of values and titles. */
export function asOlderInput({ method, bytes, params }: RelayedRequest, revision: string | undefined): readonly Edit[] {
  if (method !== METHODS.elicit || params === undefined || revision === undefined) return [];
  if (!isOlder(revision, TITLED_SINCE)) return [];
  const edits: Edit[] = [];
  for (const properties of valuesAt(bytes, params, ['requestedSchema', 'properties']))
    visitMembers(bytes, properties.start, Number.POSITIVE_INFINITY, (_, property) => {
      visitMembers(bytes, property.start, Number.POSITIVE_INFINITY, (key, value) => {
        const text = readString(bytes, key) === 'oneOf' ? choices(JSON.parse(readText(bytes, value))) : undefined;
        if (text !== undefined) edits.push({ span: { start: key.start, end: value.end }, text: toBytes(text) });
      });
    });
  return edits;
}

function choices(list: unknown): string | undefined {
  if (!Array.isArray(list) || !list.every(isChoice)) return undefined;
  const values = list.map((choice) => choice.const);
  const titles = list.map(({ title }) => title);
  return `"enum":${JSON.stringify(values)},"enumNames":${JSON.stringify(titles)}`;
}

function isChoice(value: unknown): value is { readonly const: string; readonly title: string } {
  return isRecord(value) && typeof value.const === 'string' && typeof value.title === 'string';
}

function elementsAt(bytes: Uint8Array, object: Span, member: string): Span[] {
  return valuesAt(bytes, object, [member]).flatMap((list) => elementsOf(bytes, list));
}

/*
 * From revision 2026-07-28 on, the structured output of a tool can be any JSON value; before, it had to be an object.
 * For clients of earlier revisions, any other output becomes the member `result` of an object, in the schema and in the
 * results. The official TypeScript SDK does the same, so a server of both eras looks the same without Trunkline.
 */

/** Whether a tool has an output schema whose root need not be an object. */
export function hasOtherOutput(tool: unknown): boolean {
  return isRecord(tool) && isRecord(tool.outputSchema) && tool.outputSchema.type !== 'object';
}

/** Returns the entry of a tool with another output for clients of earlier revisions. Only the schema changes. */
export function asLegacyTool(bytes: Uint8Array, entry: Span): Uint8Array {
  return rewriteObject(bytes, entry, {
    change: (name, value) => (name === 'outputSchema' && isObject(bytes, value) ? wrapSchema(bytes, value) : undefined),
  });
}

/** `isOther` says that the tool's schema allows other values than objects. The output of such a tool is wrapped even if it is an object. */
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

const LETTER_T = 0x74;

/** Path to the original schema within the wrapping schema. */
const NEW_ROOT = '#/properties/result';

/** Keywords whose values are data, in which `$ref` means nothing. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
/** Keywords whose values map names to schemas. Such a name is no keyword. */
const NAME_MAPS: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', 'dependentSchemas', 'dependencies'],
  ...['$defs', 'definitions'],
]);

/**
 * Points the references within a schema to its new position. References to other documents stay. `isRecursive` says
 * that `$recursiveRef` of 2019-09 refers to the root of the schema, because there is no anchor.
 */
function pointReferences(bytes: Uint8Array, root: Span, isRecursive: boolean, edits: Edit[]): void {
  const visit = (value: Span, kind: 'schema' | 'names'): void => {
    for (const element of elementsOf(bytes, value)) visit(element, 'schema');
    const members = membersOf(bytes, value);
    if (kind === 'names') {
      for (const [, inner] of members) visit(inner, 'schema');
      return;
    }
    // References below another `$id` are relative to that id.
    if (members.some(([name, inner]) => name === '$id' && stringAt(bytes, inner)?.startsWith('#') !== true)) return;
    const hasRef = members.some(([name]) => name === '$ref');
    for (const [name, inner, key] of members) {
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
