import {
  type ApprovalFacts,
  type ApprovalVerdict,
  type ToolApprovals,
  type Unapproved,
  WITHHELD_BECAUSE,
} from '../../spec/tool-approvals.js';
import { REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import { elementsOf, readText, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { isRecord } from '../../wire/json/json-value.js';
import { hidesCharactersWithin } from '../../wire/json/printable.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { jsonArray } from '../../wire/jsonrpc/message.js';
import {
  checkEntry,
  type EntryVerdict,
  entryDefinition,
  isOrdinary,
  lookalikesIn,
  withChanges,
} from '../../wire/mcp/entry-check.js';
import type { CachingHint, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { exposedName, type Sha256 } from '../../wire/mcp/exposed-name.js';
import { isNamed, LISTS, type ListKind } from '../../wire/mcp/methods.js';
import { type MirroredParam, readMirroredParams } from '../../wire/mcp/mirrored-params.js';
import { asLegacyTool, hasOtherOutput } from '../../wire/mcp/older-revisions.js';
import { isUiUri, uiAlias, uiPointers } from '../../wire/mcp/ui-uris.js';
import { MAX_ENTRY_BYTES, type RawEntry, type ReceivedList } from './pagination.js';
import type { ToolPolicy } from './tool-policy.js';
import type { ToolShaping } from './tool-shaping.js';

/** A `ui://` URI in an entry: the URI of a resource, or one that a tool refers to. */
interface UiReference {
  readonly uri: string;
  /** The URI that clients see if another server owns this one. */
  readonly alias: string;
  /** Position of the URI in the entry; `undefined` if the entry is withheld. */
  readonly span: Span | undefined;
}

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

/** An entry with the reason why it is not listed, or not as the server sent it. */
export interface EntryRemark {
  readonly name: string;
  readonly reason: string;
}

/** Entries of one server for a merged list. Made once for each list that the server sends. */
export interface ExposedList {
  readonly entries: readonly ExposedEntry[];
  /** Unlisted entries. Clients can still use those that have a name and do not wait for approval. */
  readonly withheld: readonly EntryRemark[];
  /** Entries that are listed without their malformed parts, or with other values for these. */
  readonly repaired: readonly EntryRemark[];
  /** Original names that the tool policy of the configuration denies. */
  readonly denied: readonly string[];
  /** Reason why the list was cut short; `undefined` if it is complete. */
  readonly truncated: string | undefined;
  /** Caching that the server allows; `undefined` without a caching hint. */
  readonly hint?: CachingHint | undefined;
  /** Exposed names of entries with invisible characters in their texts. They are listed, and the status names them. */
  readonly withHiddenCharacters: readonly string[];
  /** Original names of tools with `execution.taskSupport: required`. */
  readonly taskOnly: ReadonlySet<string>;
  /** Original names of tools that may be called again: by their annotations if the server is trusted, or by the configuration. */
  readonly repeatable: ReadonlySet<string>;
  /** Original names of tools whose output need not be an object. Clients with a handshake need an object. */
  readonly otherOutputs: ReadonlySet<string>;
  /** Parameters that the server wants repeated in headers, by original name of the tool. Other tools are absent. */
  readonly mirrored: ReadonlyMap<string, readonly MirroredParam[]>;
  /** New names of the tools that the configuration renames, without the prefix, by original name. */
  readonly renamed?: ReadonlyMap<string, string> | undefined;
  /** Original names of the tools that clients in search mode see in the list. */
  readonly pinned?: ReadonlySet<string> | undefined;
  /** Sentences about shapes of the configuration that do not apply, because a name is missing or taken. */
  readonly unshaped?: readonly string[] | undefined;
  /** Approval verdict of each entry by original name or URI; absent if the entries need no approval. */
  readonly verdicts?: ReadonlyMap<string, ApprovalVerdict> | undefined;
}

export const EMPTY_LIST: ExposedList = {
  entries: [],
  withheld: [],
  repaired: [],
  denied: [],
  truncated: undefined,
  withHiddenCharacters: [],
  taskOnly: new Set(),
  repeatable: new Set(),
  otherOutputs: new Set(),
  mirrored: new Map(),
};

/** List of a server that does not offer this kind of list. It never becomes stale, and is the same for all users. */
export const UNOFFERED_LIST: ExposedList = {
  ...EMPTY_LIST,
  hint: { freshUntil: Number.POSITIVE_INFINITY, isPublic: true },
};

export interface ExposureRules extends ToolRules {
  readonly key: string;
  /**
   * Empty if names are exposed without a prefix; `undefined` if they are also exposed without being shortened. Renames of the
   * configuration apply in both cases.
   */
  readonly prefix: string | undefined;
  readonly sha256: Sha256;
}

/** The tools of a server that clients see, and their form. */
export interface ToolRules {
  readonly policy: ToolPolicy;
  /** Absent if the tools need no approval. */
  readonly approvals?: ToolApprovals | undefined;
  /** Absent if the tools are shown as the server lists them. */
  readonly shaping?: ToolShaping | undefined;
  /** Whether the configuration trusts the annotations of this server's tools (`readOnlyHint`, `idempotentHint`). */
  readonly isTrusted?: boolean;
  /**
   * Whether the server is behind a URL. From revision 2026-07-28 on, its tools are withheld if their annotations for headers are not valid.
   */
  readonly isRemote?: boolean;
}

/** Checks the entries of a list one by one and inserts the exposed names. A bad entry does not affect the others. */
export function exposeList(kind: ListKind, list: ReceivedList, rules: ExposureRules): ExposedList {
  const { key, prefix, policy, approvals, sha256 } = rules;
  const isTools = kind === 'tools';
  const listed = list.entries.map((raw) => judge(kind, readEntry(raw), list.isModern));
  const owners = ownersOf(listed);
  const shaping = isTools ? rules.shaping?.begin(listed.flatMap(nameOf), policy) : undefined;
  const verdicts = approvals?.judge(definitionsOf(kind, [...owners.values()], policy), kind);
  const entries: ExposedEntry[] = [];
  const withheld: EntryRemark[] = [];
  const repaired: EntryRemark[] = [];
  const denied: string[] = [];
  const withHiddenCharacters: string[] = [];
  const taskOnly = new Set<string>();
  const repeatable = new Set<string>();
  const otherOutputs = new Set<string>();
  const mirrored = new Map<string, readonly MirroredParam[]>();

  listed.forEach((each, index) => {
    const { text, value, verdict } = each;
    const ordinaryText = isOrdinary(text) ? text : undefined;
    const { name } = verdict;
    if (name === undefined) {
      withheld.push({ name: `#${index + 1}`, reason: verdict.kind === 'unsound' ? verdict.reason : '' });
      return;
    }
    if (isTools && !policy(name)) {
      denied.push(name);
      return;
    }
    if (owners.get(name) !== each) {
      withheld.push({ name, reason: verdict.kind === 'unsound' ? verdict.reason : LISTED_TWICE });
      return;
    }
    const shown = shaping?.names.get(name) ?? name;
    const exposed = isNamed(kind) && prefix !== undefined ? exposedName(key, prefix, shown, sha256) : shown;
    const add = (entry: Uint8Array | undefined) => {
      // Few entries have a `ui://` URI, and the text of most entries shows at once that they have none.
      const ui = ordinaryText?.includes('ui://') === false ? [] : findUiReferences(kind, name, entry, rules);
      entries.push({ exposed, original: name, entry, ...(ui.length === 0 ? {} : { ui }) });
    };
    const approval = verdicts?.get(name) ?? 'approved';
    if (approval !== 'approved') {
      withheld.push({ name, reason: WITHHELD_BECAUSE[approval] });
      add(undefined);
      return;
    }
    if (isTools && isTaskOnly(value)) taskOnly.add(name);
    if (isTools && isRepeatable(name, value, rules)) repeatable.add(name);
    if (isTools && list.isModern === true && hasOtherOutput(value)) otherOutputs.add(name);
    const bytes = verdict.kind === 'sound' ? withChanges(each.bytes, wholeOf(each.bytes), verdict.changes) : each.bytes;
    const { params = [], fault } = isTools && verdict.kind === 'sound' ? readMirroredParams(bytes) : {};
    if (params.length > 0) mirrored.set(name, params);
    const isRejected = fault !== undefined && rules.isRemote === true && list.isModern === true;
    if (verdict.kind === 'unsound' || isRejected) {
      withheld.push({ name, reason: verdict.kind === 'unsound' ? verdict.reason : `its ${fault}` });
      add(undefined);
      return;
    }
    if (verdict.repaired !== undefined) repaired.push({ name, reason: verdict.repaired });
    if (ordinaryText === undefined && hidesCharactersWithin(value)) withHiddenCharacters.push(exposed);
    const isRenamed = (isNamed(kind) && prefix !== undefined) || shown !== name;
    const shaped = shaping?.shape(name, bytes) ?? bytes;
    add(isRenamed ? rename(shaped, name, exposed, shaped === each.bytes ? ordinaryText : undefined) : shaped);
  });
  const { truncated, hint } = list;
  return {
    entries,
    withheld,
    repaired,
    denied,
    truncated,
    hint,
    withHiddenCharacters,
    verdicts,
    taskOnly,
    repeatable,
    otherOutputs,
    mirrored,
    ...(shaping && { renamed: shaping.names, unshaped: shaping.end(), pinned: shaping.pinned }),
  };
}

const TOO_LARGE = `is larger than ${MAX_ENTRY_BYTES} bytes`;
const LISTED_TWICE = 'the server lists this name twice; only the first entry is used';

interface ReadEntry extends RawEntry {
  readonly text: string;
  readonly value: unknown;
}

function readEntry(raw: RawEntry): ReadEntry {
  const text = readText(raw.bytes, wholeOf(raw.bytes));
  return { ...raw, text, value: JSON.parse(text) };
}

interface JudgedEntry extends ReadEntry {
  readonly verdict: EntryVerdict;
}

function judge(kind: ListKind, entry: ReadEntry, isModern: boolean | undefined): JudgedEntry {
  const verdict = checkEntry(kind, entry.value, isModern);
  if (entry.isTooLarge !== true) return { ...entry, verdict };
  return { ...entry, verdict: { kind: 'unsound', name: verdict.name, reason: TOO_LARGE } };
}

/** Returns the entry of each name: the first sound one, or the first one if none is sound. */
function ownersOf(entries: readonly JudgedEntry[]): ReadonlyMap<string, JudgedEntry> {
  const owners = new Map<string, JudgedEntry>();
  for (const entry of entries) {
    const { kind, name } = entry.verdict;
    const before = name === undefined ? undefined : owners.get(name)?.verdict.kind;
    if (name !== undefined && (before === undefined || (before === 'unsound' && kind === 'sound')))
      owners.set(name, entry);
  }
  return owners;
}

function wholeOf({ length }: Uint8Array): Span {
  return { start: 0, end: length };
}

function nameOf({ value }: ReadEntry): string[] {
  return isRecord(value) && typeof value.name === 'string' ? [value.name] : [];
}

/** The name or URI of an entry. */
function identityOf(kind: ListKind, { value }: ReadEntry): string | undefined {
  const identity = isRecord(value) ? value[IDENTITY[kind]] : undefined;
  return typeof identity === 'string' ? identity : undefined;
}

const IDENTITY = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' } as const;

/** Returns the definitions by name or URI, of the allowed tools only. If a name is listed twice, the first entry counts. */
function definitionsOf(kind: ListKind, entries: readonly ReadEntry[], policy: ToolPolicy): ReadonlyMap<string, string> {
  const definitions = new Map<string, string>();
  for (const entry of entries) {
    const name = identityOf(kind, entry) ?? '';
    if (name === '' || definitions.has(name) || (kind === 'tools' && !policy(name))) continue;
    definitions.set(name, entryDefinition(entry.bytes, wholeOf(entry.bytes)));
  }
  return definitions;
}

function isTaskOnly(tool: unknown): boolean {
  const { execution } = tool as { readonly execution?: { readonly taskSupport?: unknown } | null };
  return execution?.taskSupport === 'required';
}

/**
 * Whether a repeated call has no further effect: by `readOnlyHint` or `idempotentHint` of the configuration, or of a trusted server
 * where the configuration does not set the same hint. Of a tool that its own name in the configuration, or else its server, calls
 * destructive, a glob says nothing, because the author of the glob may not have thought of the tool.
 */
function isRepeatable(name: string, tool: unknown, { shaping, isTrusted = false }: ToolRules): boolean {
  const { annotations } = tool as { readonly annotations?: Readonly<Record<string, unknown>> | null };
  const own = shaping?.ownHintsOf(name);
  const hints = shaping?.hintsOf(name);
  const isDestructive = (own?.destructiveHint ?? annotations?.destructiveHint) === true;
  return (['readOnlyHint', 'idempotentHint'] as const).some((hint) => {
    const isIgnored = isDestructive && hints?.[hint] === true && own?.[hint] === undefined;
    const said = isIgnored ? undefined : hints?.[hint];
    return (said ?? (isTrusted && annotations?.[hint])) === true;
  });
}

function findUiReferences(
  kind: ListKind,
  name: string,
  entry: Uint8Array | undefined,
  { key, sha256 }: ExposureRules,
): UiReference[] {
  const toReference = (uri: string, span: Span | undefined) => ({ uri, alias: uiAlias(key, uri, sha256), span });
  if (kind === 'tools' && entry !== undefined) {
    return uiPointers(entry, wholeOf(entry)).map(({ uri, span }) => toReference(uri, span));
  }
  if (kind !== 'resources' || !isUiUri(name)) return [];
  const spans = entry === undefined ? [undefined] : valuesAt(entry, wholeOf(entry), ['uri']);
  return spans.map((span) => toReference(name, span));
}

/** Returns a sound entry with its exposed name. Needs no scan if the name is the first member. */
function rename(bytes: Uint8Array, name: string, exposed: string, ordinaryText: string | undefined): Uint8Array {
  const old = `"${name}"`;
  const isFirst = ordinaryText?.startsWith(BEFORE_NAME + old) && !ordinaryText.includes('"name"', BEFORE_NAME.length);
  const edit = { span: { start: BEFORE_NAME.length, end: BEFORE_NAME.length + old.length }, text: quoted(exposed) };
  if (isFirst) return exposed === name ? bytes : splice({ bytes, span: wholeOf(bytes), edits: [edit] });
  const change = (member: string, value: Span) =>
    member === 'name' && stringAt(bytes, value) !== exposed ? quoted(exposed) : undefined;
  return rewriteObject(bytes, wholeOf(bytes), { change });
}

const BEFORE_NAME = '{"name":';

function quoted(text: string): Uint8Array {
  return toBytes(JSON.stringify(text));
}

/**
 * Edits one page of a list for a client that sees only this server. Removes denied tools, unapproved entries, and tools of a
 * modern remote server whose annotations for headers are not valid. Shapes the other tools, and gives them the form of older
 * revisions for a client with a handshake. Removes keys that differ from a known member in case only. All other bytes stay.
 */
export function editPage(
  kind: ListKind,
  { bytes, tokens }: ResponseEnvelope,
  { policy, approvals, shaping, isRemote }: ToolRules,
  known: { readonly renamed?: ExposedList['renamed'] },
  { isModern = false, hasHandshake = false } = {},
): readonly Edit[] {
  const isTools = kind === 'tools';
  const list = tokens[LISTS[kind].token];
  if (list === undefined || (!isTools && approvals === undefined)) return [];
  const entries = elementsOf(bytes, list).map(({ start, end }) => readEntry({ bytes: bytes.subarray(start, end) }));
  const verdicts = approvals?.judge(definitionsOf(kind, entries, policy), kind);
  let isSame = true;
  const parts = entries.flatMap((entry) => {
    const name = identityOf(kind, entry);
    const isApproved = verdicts === undefined || (name !== undefined && verdicts.get(name) === 'approved');
    const isRejected = isTools && isRemote === true && isModern && readMirroredParams(entry.bytes).fault !== undefined;
    const isShown = isApproved && !isRejected && (name === undefined || !isTools || policy(name));
    const own = withoutLookalikes(entry);
    const text = (name === undefined || !isTools ? undefined : shaping?.shapeWhole(name, own, known.renamed)) ?? own;
    const isOther = isTools && isModern && hasHandshake && hasOtherOutput(readEntry({ bytes: text }).value);
    const shown = isOther ? asLegacyTool(text, wholeOf(text)) : text;
    isSame &&= isShown && shown === entry.bytes;
    return isShown ? [shown] : [];
  });
  return isSame ? [] : [{ span: list, text: jsonArray(parts) }];
}

/** Returns the entry without keys that differ in case only from a member that the protocol defines. */
function withoutLookalikes({ bytes, value }: ReadEntry): Uint8Array {
  const lookalikes = isRecord(value) ? lookalikesIn(value) : [];
  if (lookalikes.length === 0) return bytes;
  return rewriteObject(bytes, wholeOf(bytes), { change: (name) => (lookalikes.includes(name) ? REMOVED : undefined) });
}

/** Reason for refusing a call. `unlisted`: the server does not list the tool. `unread`: the list of the present process was not read. */
export type Refused = Unapproved | 'unlisted' | 'unread';

/** Text for a refused call: the reason, to follow `Server "NAME"`, and what to do. */
export function describeRefusedCall(verdict: Refused, { advice }: ApprovalFacts, noun = 'tool'): string {
  return `${REFUSED_BECAUSE[verdict]} ${verdict === 'unread' ? UNREAD_ADVICE : advice}`.replaceAll('tool', noun);
}

/** Advice if the server's tools were not read. The usual advice, to approve the tool, is of no use before it is listed. */
const UNREAD_ADVICE = 'Trunkline asks the server for its tools again, because only listed tools can be approved.';

const REFUSED_BECAUSE: Readonly<Record<Refused, string>> = {
  changed: 'has changed this tool since it was approved.',
  new: 'added this tool after its tools were approved, so this tool is not approved.',
  unreadable: 'needs approved tools, but the approved tools cannot be read.',
  unlisted: 'does not list this tool, and only listed tools can be approved.',
  unread: 'runs, but does not list its tools, so Trunkline cannot compare this tool with the approved ones.',
};
