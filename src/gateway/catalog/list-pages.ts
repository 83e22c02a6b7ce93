import { isString, readText, type Span, toBytes, valuesAt, visitElements } from '../../json/json-text.js';
import { RPC_CODES } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import type { ListFacts } from '../../mcp/lists.js';
import { type CachingHint, mergeCachingHints, readCachingHint } from '../../mcp/modern-members.js';
import type { RequestFailure, RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';

/** One entry of a list, as bytes of the server. */
export interface RawEntry {
  readonly bytes: Uint8Array;
  /** Whether the entry exceeds the size limit. Then the bytes hold only its name and URI. */
  readonly isTooLarge?: boolean;
}

/** A list as a server sent it. */
export interface ReceivedList {
  readonly entries: readonly RawEntry[];
  /** Reason why the list was cut short; `undefined` if it is complete. */
  readonly truncated: string | undefined;
  /** Caching that the server allows; `undefined` if it does not say. */
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

/** Limit of one entry, including its schemas, description, and icons. A larger entry is withheld. */
export const MAX_ENTRY_BYTES = 1024 * 1024;

/** Limits of one list, over all pages. Entries that are too large do not count toward the bytes. */
const MAX_ENTRIES = 1000;
const MAX_PAGES = 100;
const MAX_BYTES = 4 * 1024 * 1024;

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
): Promise<ListOutcome> {
  const entries: RawEntry[] = [];
  const hints: (CachingHint | undefined)[] = [];
  const seenCursors = new Set<string>();
  let cursor: string | undefined;
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
    const { bytes } = response;
    let excess: string | undefined;
    visitElements(bytes, list.start, Number.POSITIVE_INFINITY, ({ start, end }) => {
      const isTooLarge = end - start > MAX_ENTRY_BYTES;
      if (isTooLarge) byteLength -= end - start;
      excess ??= excessOf(entries.length + 1, byteLength + end - list.start);
      // Entries live long. Each has memory of its own, so that the rest of the response can be freed.
      if (excess === undefined)
        entries.push(isTooLarge ? stubOf(bytes, { start, end }) : { bytes: bytes.slice(start, end) });
    });
    cursor = readCursor(response);
    // All cursors are kept until the list ends.
    byteLength += list.end - list.start + (cursor?.length ?? 0);
    excess ??= excessOf(entries.length, byteLength);
    const listed = (truncated?: string): ListOutcome => {
      return { kind: 'listed', entries, truncated, hint: mergeCachingHints(hints) };
    };
    if (excess !== undefined) return listed(excess);
    if (cursor === undefined) return listed();
    if (seenCursors.has(cursor)) return listed('the server sent the same cursor twice');
    if (page >= MAX_PAGES) return listed(`more than ${MAX_PAGES} pages`);
    seenCursors.add(cursor);
  }
}

/** Reduces an entry that is too large to its name and URI, which saves memory. */
function stubOf(bytes: Uint8Array, span: Span): RawEntry {
  const members = IDENTITIES.flatMap((member) => {
    const [value] = valuesAt(bytes, span, [member]);
    const isShort = value !== undefined && isString(bytes, value) && value.end - value.start <= MAX_IDENTITY_BYTES;
    return isShort ? [`"${member}":${readText(bytes, value)}`] : [];
  });
  return { bytes: toBytes(`{${members.join(',')}}`), isTooLarge: true };
}

const IDENTITIES = ['name', 'uri', 'uriTemplate'];
const MAX_IDENTITY_BYTES = 4 * 1024;

/** Returns which limit a list of this size exceeds, or `undefined`. */
function excessOf(entryCount: number, byteLength: number): string | undefined {
  if (entryCount > MAX_ENTRIES) return `more than ${MAX_ENTRIES} entries`;
  return byteLength > MAX_BYTES ? `larger than ${MAX_BYTES} bytes` : undefined;
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
