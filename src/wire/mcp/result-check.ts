import { skipString } from '../json/json-string.js';
import { equalsAt, readText, type Span, toBytes } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { clipText, escapeUnsafe } from '../json/printable.js';
import * as check from './entry-check.js';
import { isText, type Mend, type Rule, type Say } from './entry-check.js';
import { RELATED_TASK } from './envelope.js';

/** A result of `tools/call`, `prompts/get` or `resources/read`, which clients check by a schema. */
export type ResultKind = 'tool' | 'prompt' | 'resource';

/** The eras of both sides, which decide the form that the client accepts, and the resource that the client reads. */
interface ResultContext {
  readonly isModernServer: boolean;
  readonly isModernClient: boolean;
  readonly uri?: string | undefined;
}

/**
 * Judges a result as the official SDKs do, because a client drops a whole result over one malformed part, although the call has
 * taken effect. Returns the result as they accept it, with the bytes of all sound members; `undefined` if they accept it as it
 * is, or if its type is unknown. `repaired` describes the faults, unless members were only null.
 */
export function mendResult(kind: ResultKind, bytes: Uint8Array, span: Span, context: ResultContext) {
  if (kind === 'tool' && isOneText(bytes, span)) return undefined;
  const result = JSON.parse(readText(bytes, span)) as Readonly<Record<string, unknown>>;
  const isLegacy = !context.isModernServer && !context.isModernClient;
  if (isText(result.resultType) && result.resultType !== 'complete' && !isLegacy) return undefined;
  const { found, say } = check.collectFaults();
  const { changes } = check.mendMembers(result, rulesOf(kind, result, context), say);
  if (changes.size === 0) return undefined;
  return { bytes: check.withChanges(bytes, span, changes), repaired: check.summaryOf(found) };
}

function rulesOf(kind: ResultKind, result: object, { isModernServer, isModernClient, uri }: ResultContext): Rule[] {
  const common = isModernClient ? MODERN : LEGACY;
  if (kind === 'prompt') return [...common, ['description', check.text], ['messages', MESSAGES, 'required']];
  if (kind === 'resource') {
    const contents = elements((each, say) => [mendContents(each, say, uri)]);
    return [...common, ...(isModernClient ? [TTL, SCOPE] : []), ['contents', contents, 'required']];
  }
  // Before revision 2026-07-28, clients add a missing `content`, except beside members of other results.
  const isNeeded = isModernClient || ['task', 'inputRequests', 'requestState'].some((name) => name in result);
  const content: Rule = isNeeded ? ['content', CONTENT, 'required'] : ['content', CONTENT];
  // The bridge between the eras wraps the output of a modern server.
  return [...common, ['isError', mendFlag], content, ...(isModernServer || isModernClient ? [] : [OUTPUT])];
}

/** Whether a result of a tool has one text and nothing else, as most have. Clients accept it, so it need not be parsed. */
function isOneText(bytes: Uint8Array, { start, end }: Span): boolean {
  if (!equalsAt(bytes, start, BEFORE_TEXT)) return false;
  const at = skipString(bytes, start + BEFORE_TEXT.length - 1);
  return AFTER_TEXT.some((rest) => at + rest.length === end && equalsAt(bytes, at, rest));
}
const BEFORE_TEXT = toBytes('{"content":[{"type":"text","text":"');
const AFTER_TEXT = ['}]}', '}],"isError":false}'].map(toBytes);

/** A list whose elements are mended. Another value than a list counts as its only element, and null as none. */
function elements(mend: (value: unknown, say: Say) => readonly unknown[]): Mend {
  return (value, say) => {
    if (!Array.isArray(value)) say(' is not a list');
    const before: readonly unknown[] = [value ?? []].flat();
    const after = before.flatMap((each, index) => mend(each, (fault) => say(`[${index}]${fault}`)));
    const isSame = after.length === before.length && after.every((each, index) => each === before[index]);
    return isSame && Array.isArray(value) ? value : after;
  };
}

/** The text of a block. Another value becomes its JSON. */
const mendText: Mend = (value, say) => check.text(value, say) ?? (value === null ? undefined : JSON.stringify(value));
const META: Rule = ['_meta', check.anyObject];
const OF_MEDIA: readonly Rule[] = [
  ['data', mendData, 'required'],
  ['mimeType', check.text, 'required'],
];
const BLOCKS: ReadonlyMap<unknown, readonly Rule[]> = new Map([
  ['text', [['text', mendText, 'required']]],
  ['image', OF_MEDIA],
  ['audio', OF_MEDIA],
  ['resource', [['resource', mendContents, 'required']]],
  ['resource_link', [['uri', check.text, 'required'], ['name', check.text, 'required'], ...check.RESOURCE_MEMBERS]],
]);

/** Mends a content block. A block of an unknown type, or without a required member, becomes a text with its JSON. */
function mendBlock(value: unknown, say: Say): unknown {
  const { found, say: note } = check.collectFaults(say);
  const block = isRecord(value) ? value : {};
  const rules = BLOCKS.get(block.type);
  if (rules === undefined) note(isText(value) ? ' is a string' : '.type is not known');
  const { changes, isLost } = check.mendMembers(block, [...(rules ?? []), check.ANNOTATIONS, META], note);
  if (rules !== undefined && !isLost) return check.changed(block, changes);
  return { type: 'text', text: isText(value) ? value : shown(value, found) };
}
const CONTENT = elements((value, say) => [mendBlock(value, say)]);

function shown(part: unknown, found: readonly string[], maxBytes = 4_096): string {
  const json = escapeUnsafe((JSON.stringify(part) ?? '').slice(0, maxBytes + 1));
  return `[Trunkline shows this part as JSON, because clients reject its form (${found.at(-1)}): ${clipText(json, maxBytes, '…')}]`;
}

/** Mends the contents of a resource. Contents with neither a text nor bytes become a text with their JSON. */
function mendContents(value: unknown, say: Say, uri = 'urn:trunkline:resource'): unknown {
  const { found, say: note } = check.collectFaults(say);
  const contents = isRecord(value) ? value : { text: value };
  const { text = null, blob = null } = contents;
  const { changes } = check.mendMembers(contents, [['mimeType', check.text], META], note);
  if (check.text(contents.uri, (fault) => note(`.uri${fault}`)) === undefined) changes.set('uri', uri);
  if (isText(text) || isBase64(blob)) return check.changed(contents, changes);
  note(text !== null ? '.text is not a string' : blob === null ? ' has neither text nor blob' : '.blob is not Base64');
  return check.changed(contents, changes.set('text', text === null ? shown(value, found) : JSON.stringify(text)));
}

/** The messages of a prompt. A message with a list of blocks becomes one message for each block. */
const MESSAGES = elements((value, say) => {
  const message = isRecord(value) ? value : {};
  const { role, content = value } = message;
  const isKnown = role === 'user' || role === 'assistant';
  if (!isKnown) say('.role is neither "user" nor "assistant"');
  if (Array.isArray(content)) say('.content is a list');
  const blocks = [content].flat().map((block) => mendBlock(block, (fault) => say(`.content${fault}`)));
  if (isKnown && blocks[0] === message.content) return [value];
  return blocks.map((block) => ({ ...message, role: isKnown ? role : 'user', content: block }));
});

/** Bytes in Base64, also those of a URL such as `data:image/png;base64,iVBO`. */
function mendData(value: unknown, say: Say): unknown {
  if (isBase64(value)) return value;
  say(' is not Base64');
  const [, inner] = (isText(value) && /^data:[^,]*;base64,(.*)$/s.exec(value)) || [];
  return isBase64(inner) ? inner : undefined;
}

/** Whether `atob` decodes the value, as clients do. */
function isBase64(value: unknown): boolean {
  if (!isText(value)) return false;
  const inner = value.replace(/[\t\n\f\r ]+/g, '');
  const bare = inner.length % 4 === 0 ? inner.replace(/={1,2}$/, '') : inner;
  return bare.length % 4 !== 1 && !/[^A-Za-z0-9+/]/.test(bare);
}

/** A text or a number that stands for true says that the call has failed. */
const mendFlag: Mend = (value, say) =>
  check.isFlag(value, say) ?? (/^(?:true|yes|1)$/i.test(String(value)) || undefined);

const OUTPUT: Rule = ['structuredContent', (value, say) => check.anyObject(value, say) ?? { result: value }];

const isToken = check.is((value) => isText(value) || Number.isSafeInteger(value), 'a string or a whole number');
const TASK = check.object(['taskId', check.text, 'required']);
const LEGACY: readonly Rule[] = [['_meta', check.object(['progressToken', isToken], [RELATED_TASK, TASK])]];
const MODERN: readonly Rule[] = [META, ['resultType', check.text]];
const TTL: Rule = ['ttlMs', check.is((value) => Number.isSafeInteger(value) && Number(value) >= 0, 'a whole number')];
const SCOPE: Rule = ['cacheScope', check.oneOf('public', 'private')];
