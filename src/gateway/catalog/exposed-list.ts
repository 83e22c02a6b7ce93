import {
  isString,
  readString,
  readText,
  type Span,
  toBytes,
  valuesAt,
  visitElements,
  visitMembers,
} from '../../json/json-text.js';
import { isRecord } from '../../json/json-value.js';
import { copySpliced, type Edit, type SplicedMessage, splice, splicedLength } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import { checkEntry, type EntryVerdict, isOrdinary } from '../../mcp/entry-check.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { exposedName, type Sha256 } from '../../mcp/exposed-name.js';
import { isUiUri, uiAlias, uiPointers } from '../../mcp/extensions.js';
import { hidesCharactersWithin } from '../../mcp/hidden-text.js';
import { asLegacyTool, hasOtherOutput } from '../../mcp/legacy-output.js';
import { isNamed, type ListKind, toolDefinition } from '../../mcp/lists.js';
import type { CachingHint } from '../../mcp/modern-members.js';
import { MAX_ENTRY_BYTES, type RawEntry, type ReceivedList } from './list-pages.js';
import { type ApprovalVerdict, type ToolApprovals, WITHHELD_BECAUSE } from './tool-approval.js';
import type { ToolPolicy } from './tool-policy.js';
import type { ListShaping, ToolShaping } from './tool-shaping.js';

/** A `ui://` URI in an entry: the URI of a resource, or one that a tool refers to. */
interface UiReference {
  readonly uri: string;
  /** The URI that clients see if another server owns this one. */
  readonly alias: string;
  /** Position of the URI in the entry; `undefined` if the entry is withheld. */
  readonly span: Span | undefined;
}

/** One entry of a server's list, ready for the merged list. */
export interface ExposedEntry {
  /** Name or URI that clients use. */
  readonly exposed: string;
  /** Name or URI that the server uses. */
  readonly original: string;
  /** The server's bytes with the exposed name; `undefined` if the entry is withheld from lists. */
  readonly entry: Uint8Array | undefined;
  /** Absent if the entry has no `ui://` URI. */
  readonly ui?: readonly UiReference[];
}

/**
 * An entry that is not listed, and the reason. Clients can still use it by its exposed name, unless it lacks a name or
 * approval.
 */
interface WithheldEntry {
  readonly name: string;
  readonly reason: string;
}

/** Entries of one server for a merged list. Made once for each list that the server sends. */
export interface ExposedList {
  readonly entries: readonly ExposedEntry[];
  readonly withheld: readonly WithheldEntry[];
  /** Original names that the tool policy of the configuration denies. */
  readonly denied: readonly string[];
  /** Why the list was cut short; `undefined` if it is complete. */
  readonly truncated: string | undefined;
  /** How the server lets the list be cached; `undefined` if it does not say. */
  readonly hint?: CachingHint | undefined;
  /** Exposed names of entries with invisible characters in their texts. They are listed, and the status names them. */
  readonly withHiddenCharacters: readonly string[];
  /** Original names of tools with `execution.taskSupport: required`. */
  readonly taskOnly: ReadonlySet<string>;
  /** Original names of tools whose annotations say that a call may be repeated. */
  readonly repeatable: ReadonlySet<string>;
  /** Original names of tools whose output need not be an object, as clients with a handshake need it. */
  readonly otherOutputs: ReadonlySet<string>;
  /** Names that clients see without a prefix, by original name, of the tools that the configuration renames. */
  readonly renamed?: ReadonlyMap<string, string> | undefined;
  /** Sentences about what the configuration shapes and the server does not have. */
  readonly unshaped?: readonly string[] | undefined;
  /** Approval verdict of each tool by original name; absent if the tools need no approval. */
  readonly verdicts?: ReadonlyMap<string, ApprovalVerdict> | undefined;
}

export const EMPTY_LIST: ExposedList = {
  entries: [],
  withheld: [],
  denied: [],
  truncated: undefined,
  withHiddenCharacters: [],
  taskOnly: new Set(),
  repeatable: new Set(),
  otherOutputs: new Set(),
};

/** Of a server that does not offer the list: nothing that could become stale, or differ from user to user. */
export const UNOFFERED_LIST: ExposedList = {
  ...EMPTY_LIST,
  hint: { freshUntil: Number.POSITIVE_INFINITY, isPublic: true },
};

export interface ExposureRules {
  readonly key: string;
  /** Empty if names are exposed without a prefix; `undefined` if original names are exposed without any change. */
  readonly prefix: string | undefined;
  readonly policy: ToolPolicy;
  /** Absent if the tools need no approval. */
  readonly approvals?: ToolApprovals | undefined;
  /** Absent if the tools are shown as the server lists them. */
  readonly shaping?: ToolShaping | undefined;
  readonly sha256: Sha256;
}

/** Checks the entries of a list one by one and inserts the exposed names. A bad entry does not affect the others. */
export function exposeList(kind: ListKind, list: ReceivedList, rules: ExposureRules): ExposedList {
  const { key, prefix, policy, approvals, sha256 } = rules;
  const shaping = kind === 'tools' ? beginShaping(list.entries, rules) : undefined;
  const verdicts = kind === 'tools' ? approvals?.judge(definitionsOf(list.entries, policy)) : undefined;
  const drafts: Draft[] = [];
  const withheld: WithheldEntry[] = [];
  const denied: string[] = [];
  const withHiddenCharacters: string[] = [];
  const taskOnly = new Set<string>();
  const repeatable = new Set<string>();
  const otherOutputs = new Set<string>();
  const seen = new Set<string>();

  list.entries.forEach((raw, index) => {
    const text = readText(raw.bytes, raw.span);
    const value: unknown = JSON.parse(text);
    const ordinaryText = isOrdinary(text) ? text : undefined;
    const verdict = verdictOn(kind, raw, value, ordinaryText, list.isModern);
    const { name } = verdict;
    if (name === undefined) {
      withheld.push({ name: `#${index + 1}`, reason: verdict.kind === 'unsound' ? verdict.reason : '' });
      return;
    }
    if (kind === 'tools' && !policy(name)) {
      denied.push(name);
      return;
    }
    if (seen.has(name)) {
      withheld.push({ name, reason: 'the server lists this name twice; only the first entry is used' });
      return;
    }
    seen.add(name);
    const shown = shaping?.names.get(name) ?? name;
    const isRenamed = (isNamed(kind) && prefix !== undefined) || shown !== name;
    const exposed = isNamed(kind) && prefix !== undefined ? exposedName(key, prefix, shown, sha256) : shown;
    const approval = verdicts?.get(name) ?? 'approved';
    if (approval !== 'approved') {
      withheld.push({ name, reason: WITHHELD_BECAUSE[approval] });
      drafts.push({ exposed, original: name, message: undefined, hasUi: true });
      return;
    }
    if (kind === 'tools' && isTaskOnly(value)) taskOnly.add(name);
    if (kind === 'tools' && isRepeatable(value)) repeatable.add(name);
    if (kind === 'tools' && list.isModern === true && hasOtherOutput(value)) otherOutputs.add(name);
    if (verdict.kind === 'unsound') withheld.push({ name, reason: verdict.reason });
    else if (ordinaryText === undefined && hidesCharactersWithin(value)) withHiddenCharacters.push(exposed);
    const newName = isRenamed ? exposed : undefined;
    const shaped = verdict.kind === 'sound' ? shaping?.shape(name, raw) : undefined;
    const before = shaped === undefined ? ordinaryText : undefined;
    const message = verdict.kind === 'sound' ? renamed(shaped ?? raw, newName, verdict, before) : undefined;
    drafts.push({ exposed, original: name, message, hasUi: ordinaryText?.includes('ui://') !== false });
  });
  const { truncated, hint } = list;
  const entries = toEntries(kind, drafts, rules);
  return {
    ...{ entries, withheld, denied, truncated, hint, withHiddenCharacters, verdicts },
    ...{ taskOnly, repeatable, otherOutputs },
    ...(shaping && { renamed: shaping.names, unshaped: shaping.end() }),
  };
}

function beginShaping(entries: readonly RawEntry[], { shaping, policy }: ExposureRules): ListShaping | undefined {
  return shaping?.begin(namesOf(entries), policy);
}

function namesOf(entries: readonly RawEntry[]): string[] {
  return entries.flatMap(({ bytes, span }): string[] => {
    const { name } = JSON.parse(readText(bytes, span)) ?? {};
    return typeof name === 'string' ? [name] : [];
  });
}

/** An entry with its exposed name, before its bytes are written. */
interface Draft extends Pick<ExposedEntry, 'exposed' | 'original'> {
  readonly message: SplicedMessage | undefined;
  /** Whether it can have a `ui://` URI. */
  readonly hasUi: boolean;
}

/** Writes all entries to one block of memory. Thousands of blocks would keep the garbage collector busy. */
function toEntries(kind: ListKind, drafts: readonly Draft[], rules: ExposureRules): ExposedEntry[] {
  const lengths = drafts.map(({ message }) => (message === undefined ? 0 : splicedLength(message)));
  const block = new Uint8Array(lengths.reduce((total, length) => total + length, 0));
  let end = 0;
  return drafts.map(({ exposed, original, message, hasUi }) => {
    const start = end;
    if (message !== undefined) end = copySpliced(message, block, start);
    const entry = message === undefined ? undefined : block.subarray(start, end);
    const ui = hasUi ? findUiReferences(kind, original, entry, rules) : [];
    return { exposed, original, entry, ...(ui.length === 0 ? {} : { ui }) };
  });
}

/** Returns the definitions of the allowed tools by name. If a name is listed twice, the first entry counts. */
function definitionsOf(entries: readonly RawEntry[], policy: ToolPolicy): ReadonlyMap<string, string> {
  const definitions = new Map<string, string>();
  for (const { bytes, span } of entries) {
    const { name } = JSON.parse(readText(bytes, span)) ?? {};
    if (typeof name !== 'string' || name === '' || definitions.has(name) || !policy(name)) continue;
    definitions.set(name, toolDefinition(bytes, span));
  }
  return definitions;
}

function verdictOn(
  kind: ListKind,
  { isTooLarge }: RawEntry,
  value: unknown,
  ordinaryText: string | undefined,
  isModern?: boolean,
): EntryVerdict {
  const verdict = checkEntry(kind, value, ordinaryText, isModern);
  if (isTooLarge !== true) return verdict;
  return { kind: 'unsound', name: verdict.name, reason: `is larger than ${MAX_ENTRY_BYTES} bytes` };
}

function isTaskOnly(tool: unknown): boolean {
  const { execution } = tool as { readonly execution?: { readonly taskSupport?: unknown } | null };
  return execution?.taskSupport === 'required';
}

/** Whether the annotations say that a repeated call has no further effect: `readOnlyHint` or `idempotentHint`. */
function isRepeatable(tool: unknown): boolean {
  const { annotations } = tool as { readonly annotations?: Readonly<Record<string, unknown>> | null };
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

function findUiReferences(
  kind: ListKind,
  name: string,
  entry: Uint8Array | undefined,
  { key, sha256 }: ExposureRules,
): UiReference[] {
  const whole = { start: 0, end: entry?.length ?? 0 };
  const toReference = (uri: string, span: Span | undefined) => ({ uri, alias: uiAlias(key, uri, sha256), span });
  if (kind === 'tools' && entry !== undefined) {
    return uiPointers(entry, whole).map(({ uri, span }) => toReference(uri, span));
  }
  if (kind !== 'resources' || !isUiUri(name)) return [];
  const spans = entry === undefined ? [undefined] : valuesAt(entry, whole, ['uri']);
  return spans.map((span) => toReference(name, span));
}

/** Returns a sound entry with its exposed name, if it needs one. */
function renamed(
  raw: RawEntry,
  exposed: string | undefined,
  { name, nullMembers }: Extract<EntryVerdict, { kind: 'sound' }>,
  ordinaryText: string | undefined,
): SplicedMessage {
  const hasNameFirst =
    nullMembers.length === 0 &&
    ordinaryText?.startsWith(`${BEFORE_NAME}"${name}"`) &&
    !ordinaryText.includes('"name"', BEFORE_NAME.length);
  if (!hasNameFirst || exposed === undefined) return rename(raw, exposed, nullMembers);
  const { bytes, span } = raw;
  const start = span.start + BEFORE_NAME.length;
  const value = { start, end: start + name.length + 2 };
  return { bytes, span, edits: exposed === name ? [] : [{ span: value, text: toBytes(`"${exposed}"`) }] };
}

/** Most servers write an entry like this. */
const BEFORE_NAME = '{"name":';

/** Returns the entry with the exposed name and without the members of `nullMembers`. */
function rename(
  { bytes, span }: RawEntry,
  exposed: string | undefined,
  nullMembers: readonly string[],
): SplicedMessage {
  if (exposed === undefined && nullMembers.length === 0) return { bytes, span, edits: [] };
  const members: { name: string; key: Span; value: Span }[] = [];
  visitMembers(bytes, span.start, Number.POSITIVE_INFINITY, (key, value) => {
    members.push({ name: readString(bytes, key), key, value });
  });
  const edits = members
    .filter(({ name, value }) => exposed !== undefined && name === 'name' && !readsAs(bytes, value, exposed))
    .map(({ value }) => ({ span: value, text: toBytes(JSON.stringify(exposed)) }));
  if (nullMembers.length === 0) return { bytes, span, edits };

  const remaining = members.filter((member) => !nullMembers.includes(member.name));
  const parts = remaining.flatMap(({ key, value }, index) => {
    const member = { bytes, span: { start: key.start, end: value.end } };
    const ownEdits = edits.filter((edit) => edit.span === value);
    return [toBytes(index === 0 ? '' : ','), splice({ ...member, edits: ownEdits })];
  });
  const whole = join([toBytes('{'), ...parts, toBytes('}')]);
  return { bytes: whole, span: { start: 0, end: whole.length }, edits: [] };
}

/** Whether the JSON string `token` has the value `text`. Then the server's own escapes stay as they are. */
function readsAs(bytes: Uint8Array, token: Span, text: string): boolean {
  return isString(bytes, token) && readString(bytes, token) === text;
}

/**
 * Edits one page of a server's tool list for a client that sees only this server: removes the tools that the
 * configuration denies or a person has not approved, and shapes those that the configuration shapes. A page without such
 * tools stays as it is, byte for byte. `known` is the list as far as it was read. `isTranslated`: the client has a handshake,
 * and the server has none.
 */
export function editToolPage(
  { bytes, tokens: { resultTools } }: ResponseEnvelope,
  { policy, approvals, shaping }: Pick<ExposureRules, 'policy' | 'approvals' | 'shaping'>,
  known: Pick<ExposedList, 'renamed'>,
  isTranslated = false,
): readonly Edit[] {
  if (resultTools === undefined) return [];
  const entries: Span[] = [];
  visitElements(bytes, resultTools.start, Number.POSITIVE_INFINITY, (entry) => entries.push(entry));
  const raw = entries.map((span) => ({ bytes, span }));
  const verdicts = approvals?.judge(definitionsOf(raw, policy));
  const shown = entries.filter((entry) => {
    const name = nameOf(bytes, entry);
    if (name === undefined) return approvals === undefined;
    return policy(name) && (verdicts === undefined || verdicts.get(name) === 'approved');
  });
  const texts = shown.map((span) => {
    const name = shaping === undefined ? undefined : nameOf(bytes, span);
    const text = name === undefined ? undefined : shaping?.shapeWhole(name, { bytes, span }, known.renamed);
    return isTranslated ? (translated(text ?? bytes.subarray(span.start, span.end)) ?? text) : text;
  });
  if (shown.length === entries.length && texts.every((text) => text === undefined)) return [];
  const parts = shown.flatMap(({ start, end }, at) => [
    toBytes(at === 0 ? '' : ','),
    texts[at] ?? bytes.subarray(start, end),
  ]);
  return [{ span: resultTools, text: join([toBytes('['), ...parts, toBytes(']')]) }];
}

/** The entry for a client with a handshake; `undefined` if it stays as it is. */
function translated(entry: Uint8Array): Uint8Array | undefined {
  const span = { start: 0, end: entry.length };
  return hasOtherOutput(JSON.parse(readText(entry, span))) ? asLegacyTool(entry, span) : undefined;
}

function nameOf(bytes: Uint8Array, entry: Span): string | undefined {
  const value: unknown = JSON.parse(readText(bytes, entry));
  return isRecord(value) && typeof value.name === 'string' ? value.name : undefined;
}
