import { REMOVED, rewriteObject } from '../json/edit-members.js';
import {
  isObject,
  isString,
  OPEN_BRACKET,
  readString,
  readText,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
  visitElements,
  visitMembers,
} from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import type { Edit } from '../json/splice.js';
import type { ResponseEnvelope } from './envelope.js';
import { METHODS } from './methods.js';
import type { RelayedRequest } from './relayed-request.js';
import { isOlder } from './revisions.js';

/** The types of content blocks that every revision knows, and since when there are more. */
const ALWAYS_KNOWN: ReadonlySet<string> = new Set(['text', 'image', 'resource']);
const AUDIO_SINCE = '2025-03-26';
const LINKS_SINCE = '2025-06-18';

/** Since when the choices of an elicitation have titles of their own. */
const TITLED_SINCE = '2025-11-25';

/** Whether a client of this revision does not know all types of content blocks. Such clients may reject a whole result. */
export function knowsOldContentOnly(revision: string | undefined): revision is string {
  return revision !== undefined && isOlder(revision, LINKS_SINCE);
}

/**
 * Edits the content blocks that a client of this revision does not know, in the result of a tool or in that of a prompt. A link to a resource becomes text,
 * audio becomes an embedded resource, and everything else becomes its own JSON as text.
 */
export function asOlderContent(
  { bytes, result }: ResponseEnvelope,
  kind: 'tool' | 'prompt',
  revision: string,
): readonly Edit[] {
  if (result === undefined) return [];
  const blocks =
    kind === 'tool'
      ? elementsAt(bytes, result, ['content'])
      : elementsAt(bytes, result, ['messages']).flatMap((message) =>
          isObject(bytes, message) ? valuesAt(bytes, message, ['content']) : [],
        );
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
    return replaced(bytes, block, 'resource', `"resource":${resource}`);
  }
  const [uri, name = uri] = [textAt('uri'), textAt('title') ?? textAt('name')];
  const isLink = type === 'resource_link' && uri !== undefined;
  const lines = isLink ? [`${name}: ${uri}`, textAt('description')] : [readText(bytes, block)];
  const text = lines.filter((line) => line !== undefined).join('\n');
  return replaced(bytes, block, 'text', `"text":${JSON.stringify(text)}`);
}

/** The block as one of another type. Of its members, only those remain that every block can have. */
function replaced(bytes: Uint8Array, block: Span, type: string, content: string): Uint8Array {
  return rewriteObject(bytes, block, {
    change: (name) => (COMMON.has(name) ? undefined : REMOVED),
    insert: () => [toBytes(`"type":"${type}"`), toBytes(content)],
  });
}

const COMMON: ReadonlySet<string> = new Set(['annotations', '_meta']);

/** Edits the choices with titles in an elicitation, for a client of a revision that writes them in two lists. */
export function asOlderInput({ method, bytes, params }: RelayedRequest, revision: string | undefined): readonly Edit[] {
  if (method !== METHODS.elicit || params === undefined || revision === undefined) return [];
  if (!isOlder(revision, TITLED_SINCE)) return [];
  const edits: Edit[] = [];
  for (const properties of valuesAt(bytes, params, ['requestedSchema', 'properties'])) {
    if (!isObject(bytes, properties)) continue;
    visitMembers(bytes, properties.start, Number.POSITIVE_INFINITY, (_, property) => {
      if (!isObject(bytes, property)) return;
      visitMembers(bytes, property.start, Number.POSITIVE_INFINITY, (key, value) => {
        const text = readString(bytes, key) === 'oneOf' ? choices(JSON.parse(readText(bytes, value))) : undefined;
        if (text !== undefined) edits.push({ span: { start: key.start, end: value.end }, text: toBytes(text) });
      });
    });
  }
  return edits;
}

function choices(list: unknown): string | undefined {
  if (!Array.isArray(list) || !list.every(isChoice)) return undefined;
  const [values, titles] = [list.map((choice) => choice.const), list.map(({ title }) => title)];
  return `"enum":${JSON.stringify(values)},"enumNames":${JSON.stringify(titles)}`;
}

function isChoice(value: unknown): value is { readonly const: string; readonly title: string } {
  return isRecord(value) && typeof value.const === 'string' && typeof value.title === 'string';
}

function elementsAt(bytes: Uint8Array, span: Span, path: readonly string[]): Span[] {
  const elements: Span[] = [];
  for (const list of valuesAt(bytes, span, path)) {
    if (bytes[list.start] !== OPEN_BRACKET) continue;
    visitElements(bytes, list.start, Number.POSITIVE_INFINITY, (element) => elements.push(element));
  }
  return elements;
}
