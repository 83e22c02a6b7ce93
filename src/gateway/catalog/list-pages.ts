import { isString, readText, type Span, toBytes, valuesAt, visitElements } from '../../json/json-text.js';
import { RPC_CODES } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import type { ListFacts } from '../../mcp/lists.js';
import { type CachingHint, mergeCachingHints, readCachingHint } from '../../mcp/modern-members.js';
import type { RequestFailure, RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';

/** One entry of a list, as bytes of the server. */
export interface RawEntry {
  readonly bytes: Uint8Array;
  readonly span: Span;
  /** Whether the entry exceeds the size limit. Then the bytes hold only its name and URI. */
  readonly isTooLarge?: boolean;
}

/** A list as a server sent it. */
export interface ReceivedList {
  readonly entries: readonly RawEntry[];
  /** Why the list was cut short; `undefined` if it is complete. */
  readonly truncated: string | undefined;
  /** How the list may be cached; `undefined` if the server does not say. */
  readonly hint?: CachingHint | undefined;
  /** Whether the server speaks a revision without a handshake. */
  readonly isModern?: boolean;
}

export type ListOutcome =
  | (ReceivedList & { readonly kind: 'listed' })
  /**
   * `isUnknown`: the server answered with "Method not found" (-32601). `isBroken`: the answer was a broken or oversized
   * message, which counts as a violation of the protocol.
   */
  | { readonly kind: 'failed'; readonly reason: string; readonly isUnknown?: boolean; readonly isBroken?: boolean };

/** Limits of one list, over all pages. */
export interface ListLimits {
  readonly maxEntries: number;
  readonly maxPages: number;
  readonly maxBytes: number;
  /** Limit of one entry. A larger entry is withheld and does not count toward `maxBytes`. */
  readonly maxEntryBytes?: number;
}

/** Limit of one entry, including its schemas, description, and icons. */
export const MAX_ENTRY_BYTES = 1024 * 1024;

const DEFAULT_LIST_LIMITS: ListLimits = {
  maxEntries: 1000,
  maxPages: 100,
  maxBytes: 4 * 1024 * 1024,
};

/** A list method, and the token of the array in its result. */
export interface PagedMethod {
  readonly method: string;
  readonly token: ListFacts['token'] | 'resultTasks' | 'resultSkills';
}

/** Failures in which the server's answer was unusable. */
const BROKEN_ANSWERS: ReadonlySet<RequestFailure> = new Set([
  'response_malformed',
  'result_malformed',
  'response_too_large',
  'response_dropped',
]);

/**
 * Reads all pages of a server's list, in the server's order. See the page server/utilities/pagination of the MCP
 * specification.
 *
 * A limit or a repeated cursor ends the list: the entries so far are used, and `truncated` says why the list is cut
 * short. A page that fails makes the whole list fail, because a partial list would look as if tools had been removed.
 */
export async function listAllPages(
  source: Pick<UpstreamConnection, 'request'>,
  { method, token }: PagedMethod,
  timeouts: RequestTimeouts,
  limits: ListLimits = DEFAULT_LIST_LIMITS,
): Promise<ListOutcome> {
  const entries: RawEntry[] = [];
  const hints: (CachingHint | undefined)[] = [];
  const seenCursors = new Set<string>();
  let cursor: string | undefined;
  const { maxEntryBytes = MAX_ENTRY_BYTES } = limits;
  let byteLength = 0;
  for (let page = 1; ; page += 1) {
    const outcome = await source.request(method, cursor === undefined ? undefined : { cursor }, timeouts);
    if (outcome.kind === 'failed') {
      const isBroken = BROKEN_ANSWERS.has(outcome.reason);
      return { kind: 'failed', reason: `${method}: ${outcome.reason}`, isBroken };
    }
    const { response } = outcome;
    const list = response.tokens[token];
    if (response.error !== undefined) {
      const { code } = JSON.parse(readText(response.bytes, response.error)) as { readonly code?: unknown };
      const reason = `${method}: answered ${excerpt(response, response.error)}`;
      return { kind: 'failed', reason, isUnknown: code === RPC_CODES.methodNotFound };
    }
    if (list === undefined || !isList(response, list)) {
      return { kind: 'failed', reason: `${method}: the result contains no list` };
    }
    hints.push(readCachingHint(response, outcome.at));
    // Entries live long. The copy lets the rest of the response be freed.
    const bytes = response.bytes.slice(list.start, list.end);
    const before = entries.length;
    let hasTooLarge = false;
    let excess: string | undefined;
    visitElements(bytes, 0, Number.POSITIVE_INFINITY, (span) => {
      const isTooLarge = span.end - span.start > maxEntryBytes;
      if (isTooLarge) byteLength -= span.end - span.start;
      hasTooLarge ||= isTooLarge;
      excess ??= excessOf(limits, entries.length + 1, byteLength + span.end);
      if (excess === undefined) entries.push(isTooLarge ? stubOf(bytes, span) : { bytes, span });
    });
    cursor = readCursor(response);
    // All cursors are kept until the list ends.
    byteLength += bytes.length + (cursor?.length ?? 0);
    excess ??= excessOf(limits, entries.length, byteLength);
    // Copies the entries, because withheld or cut-off ones would stay in memory with their neighbors.
    if (hasTooLarge || excess !== undefined) entries.push(...entries.splice(before).map(alone));
    const listed = (truncated?: string): ListOutcome => {
      return { kind: 'listed', entries, truncated, hint: mergeCachingHints(hints) };
    };
    if (excess !== undefined) return listed(excess);
    if (cursor === undefined) return listed();
    if (seenCursors.has(cursor)) return listed('the server sent the same cursor twice');
    if (page >= limits.maxPages) return listed(`more than ${limits.maxPages} pages`);
    seenCursors.add(cursor);
  }
}

/** The entry in memory of its own. */
function alone({ bytes, span, ...rest }: RawEntry): RawEntry {
  return { bytes: bytes.slice(span.start, span.end), span: { start: 0, end: span.end - span.start }, ...rest };
}

/** Reduces an entry that is too large to its name and URI, which saves memory. */
function stubOf(bytes: Uint8Array, span: Span): RawEntry {
  const members = IDENTITIES.flatMap((member) => {
    const [value] = valuesAt(bytes, span, [member]);
    const isShort = value !== undefined && isString(bytes, value) && value.end - value.start <= MAX_IDENTITY_BYTES;
    return isShort ? [`"${member}":${readText(bytes, value)}`] : [];
  });
  const stub = toBytes(`{${members.join(',')}}`);
  return { bytes: stub, span: { start: 0, end: stub.length }, isTooLarge: true };
}

const IDENTITIES = ['name', 'uri', 'uriTemplate'];
const MAX_IDENTITY_BYTES = 4 * 1024;

/** Returns which limit a list of this size exceeds, or `undefined`. */
function excessOf({ maxEntries, maxBytes }: ListLimits, entryCount: number, byteLength: number): string | undefined {
  if (entryCount > maxEntries) return `more than ${maxEntries} entries`;
  return byteLength > maxBytes ? `larger than ${maxBytes} bytes` : undefined;
}

function isList(response: ResponseEnvelope, span: Span): boolean {
  return response.bytes[span.start] === 0x5b;
}

/**
 * Returns the next cursor. An empty string is a valid cursor; `null`, which some servers send on the last page, is not.
 */
function readCursor({ bytes, tokens }: ResponseEnvelope): string | undefined {
  if (tokens.nextCursor === undefined) return undefined;
  const cursor: unknown = JSON.parse(readText(bytes, tokens.nextCursor));
  return typeof cursor === 'string' ? cursor : undefined;
}

function excerpt(response: ResponseEnvelope, span: Span): string {
  return readText(response.bytes, { start: span.start, end: Math.min(span.end, span.start + EXCERPT_BYTES) });
}

const EXCERPT_BYTES = 200;
