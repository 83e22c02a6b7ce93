import type { Exchange } from '../../downstream/port.js';
import type { RequestTimeouts } from '../../upstream/upstream-connection.js';
import {
  isNumber,
  isString,
  readText,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
  visitElements,
} from '../../wire/json/json-text.js';
import { join, jsonArray, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import {
  type CachingHint,
  mergeCachingHints,
  type ResponseEnvelope,
  readCachingHint,
} from '../../wire/mcp/envelope.js';
import { LISTS, type ListFacts, type ListKind } from '../../wire/mcp/methods.js';
import type { Outcome, RequestFailure } from '../../wire/mcp/outcome.js';
import type { Hmac } from '../../wire/mcp/task-id.js';

export interface RawEntry {
  readonly bytes: Uint8Array;
  /** Whether the entry exceeds the size limit. Then the bytes hold only its name and URI. */
  readonly isTooLarge?: boolean;
}

export interface ReceivedList {
  readonly entries: readonly RawEntry[];
  /** Reason why the list was cut short; `undefined` if it is complete. */
  readonly truncated: string | undefined;
  /** Caching that the server allows; `undefined` without a caching hint. */
  readonly hint?: CachingHint | undefined;
  /** Whether the server speaks a revision without a handshake. */
  readonly isModern?: boolean;
}

export type ListOutcome =
  | (ReceivedList & { readonly kind: 'listed' })
  /** `isUnknown`: the server answered -32601. `isExcessive`: its answer took too much memory. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isUnknown?: boolean; readonly isExcessive?: boolean };

/** Limit of one entry in bytes, including its schemas, description and icons. A larger entry is withheld. */
export const MAX_ENTRY_BYTES = 1024 * 1024;

/** Limits of one list, over all pages. Entries that are too large do not count toward the bytes. */
const MAX_ENTRIES = 1000;
const MAX_PAGES = 100;
const MAX_BYTES = 4 * 1024 * 1024;

export interface PagedMethod {
  readonly method: string;
  readonly token: ListFacts['token'] | 'resultTasks' | 'resultSkills';
}

/** Failures in which the server's answer took too much memory. */
const EXCESSIVE_ANSWERS: ReadonlySet<RequestFailure> = new Set(['response_too_large', 'response_dropped']);

/**
 * Reads all pages of a server's list, in the server's order. See the page server/utilities/pagination of the MCP specification.
 *
 * A limit or a repeated cursor ends the list: the entries so far are used, and `truncated` says why the list is cut short. A page that
 * fails makes the whole list fail, because a partial list would look as if tools had been removed.
 */
export async function listAllPages(
  source: { request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome> },
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
      const isExcessive = EXCESSIVE_ANSWERS.has(outcome.reason);
      return { kind: 'failed', reason: `${method}: ${outcome.reason}`, isExcessive };
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
      // Copies each entry, because entries live long and would keep the whole response in memory.
      if (excess === undefined)
        entries.push(isTooLarge ? stubOf(bytes, { start, end }) : { bytes: bytes.slice(start, end) });
    });
    cursor = readCursor(response);
    // Cursors count toward the limit, because they stay in memory until the list ends.
    byteLength += list.end - list.start + (cursor?.length ?? 0);
    excess ??= excessOf(entries.length, byteLength);
    const listed = (truncated?: string): ListOutcome => {
      return { kind: 'listed', entries, truncated, hint: mergeCachingHints(hints) };
    };
    if (excess !== undefined) return listed(excess);
    const { nextCursor } = response.tokens;
    const isLast = nextCursor === undefined || NO_CURSOR.has(readText(bytes, nextCursor));
    if (cursor === undefined) return listed(isLast ? undefined : 'the cursor of the next page is no text');
    if (seenCursors.has(cursor)) return listed('the server sent the same cursor twice');
    if (page >= MAX_PAGES) return listed(`more than ${MAX_PAGES} pages`);
    seenCursors.add(cursor);
  }
}

/** Tokens that mean that there is no cursor. */
const NO_CURSOR: ReadonlySet<string> = new Set(['null', '""']);

/** Whether a request for a list begins at the first page. Some clients send a cursor that is `null` or empty then. */
export function asksFirstPage({ bytes, tokens: { cursor } }: Exchange['request']): boolean {
  return cursor === undefined || NO_CURSOR.has(readText(bytes, cursor));
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

/** Returns the limit that a list of this size exceeds, as a phrase, or `undefined`. */
function excessOf(entryCount: number, byteLength: number): string | undefined {
  if (entryCount > MAX_ENTRIES) return `more than ${MAX_ENTRIES} entries`;
  return byteLength > MAX_BYTES ? `larger than ${MAX_BYTES} bytes` : undefined;
}

function isList(response: ResponseEnvelope, span: Span): boolean {
  return response.bytes[span.start] === 0x5b;
}

/** Returns the next cursor. Some servers send a number, which counts as its text, or `null` or an empty text on the last page. */
function readCursor({ bytes, tokens: { nextCursor } }: ResponseEnvelope): string | undefined {
  if (nextCursor === undefined) return undefined;
  return isNumber(bytes, nextCursor) ? readText(bytes, nextCursor) : stringAt(bytes, nextCursor) || undefined;
}

function excerpt(response: ResponseEnvelope, span: Span): string {
  return readText(response.bytes, { start: span.start, end: Math.min(span.end, span.start + EXCERPT_BYTES) });
}

const EXCERPT_BYTES = 200;

/** The kinds of lists with pages. Skills are a list of an extension (SEP-2640). */
type PagedKind = ListKind | 'skills';

/** Limits of one page. A page holds at least one entry, whatever its size. */
export interface PageLimits {
  readonly maxEntries: number;
  /** Total size of the entries and the commas between them. */
  readonly maxBytes: number;
}

export interface Paging {
  readonly hmac: Hmac;
  readonly limits?: PageLimits;
}

const DEFAULT_LIMITS: PageLimits = { maxEntries: 1_000, maxBytes: 4 * 1024 * 1024 };

/**
 * The response pages of one merged list: a single page if possible, because many clients never request a second page.
 * The pages are built on first use, because joining a thousand entries takes long.
 *
 * A cursor is a keyed hash of the list, its state and the next entry, so the gateway stores no state per client.
 */
export class PagedList {
  readonly #kind: PagedKind;
  readonly #entries: readonly Uint8Array[];
  readonly #paging: Paging;
  /** Pages by the cursor that requests them. The first page has the key `undefined`. */
  #pages: ReadonlyMap<string | undefined, Uint8Array> | undefined;

  constructor(kind: PagedKind, entries: readonly Uint8Array[], paging: Paging) {
    this.#kind = kind;
    this.#entries = entries;
    this.#paging = paging;
  }

  /** Returns the result of a request with this cursor, or without one, as JSON; `undefined` if the cursor is invalid. */
  at(cursor: string | undefined): Uint8Array | undefined {
    this.#pages ??= this.#build();
    return this.#pages.get(cursor);
  }

  equals(other: PagedList): boolean {
    const ours = this.#entries;
    const theirs = other.#entries;
    return ours.length === theirs.length && ours.every((entry, index) => isSame(entry, theirs[index]));
  }

  #build(): ReadonlyMap<string | undefined, Uint8Array> {
    const { hmac, limits = DEFAULT_LIMITS } = this.#paging;
    const starts = startsOf(this.#entries, limits);
    // A hash of the entries identifies this state of the list.
    const texts =
      starts.length === 1 ? [] : this.#entries.map((entry) => readText(entry, { start: 0, end: entry.length }));
    const cursorsWith = (key: Hmac) => {
      const snapshot = key(`list\0${texts.join('\0')}`);
      const cursorAt = (start: number) => key(`cursor\0${this.#kind}.${snapshot}.${start}`).slice(0, CURSOR_LENGTH);
      return starts.map((start) => (start === 0 ? undefined : cursorAt(start)));
    };
    const cursors = cursorsWith(hmac);
    const member = this.#kind === 'skills' ? this.#kind : LISTS[this.#kind].member;
    const pages = starts.map((start, index) => {
      const next = cursors[index + 1];
      const entries = jsonArray(this.#entries.slice(start, starts[index + 1]));
      const end = toBytes(next === undefined ? '}' : `,"nextCursor":"${next}"}`);
      return join([toBytes(`{"${member}":`), entries, end]);
    });
    const found = new Map<string | undefined, Uint8Array>();
    for (const each of [cursors, ...(hmac.older ?? []).map(cursorsWith)]) {
      for (const [index, page] of pages.entries()) found.set(each[index], page);
    }
    return found;
  }
}

/** Answers with the requested page; an invalid cursor with -32602, as server/utilities/pagination says. */
export function answerList(exchange: Exchange, pages: PagedList): void {
  const { bytes, tokens } = exchange.request;
  const { cursor } = tokens;
  const text = asksFirstPage(exchange.request) ? undefined : (stringAt(bytes, cursor) ?? '');
  const page = pages.at(text);
  if (page === undefined) exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
  else exchange.succeed(page);
}

/** Limit on the length of a cursor, in characters. The seal of a gateway has fewer (`createSeal`). */
const CURSOR_LENGTH = 32;

const COMMA_BYTES = 1;

function startsOf(entries: readonly Uint8Array[], { maxEntries, maxBytes }: PageLimits): number[] {
  const starts = [0];
  let count = 0;
  let byteLength = 0;
  entries.forEach(({ length }, index) => {
    if (count > 0 && (count === maxEntries || byteLength + COMMA_BYTES + length > maxBytes)) {
      starts.push(index);
      count = 0;
      byteLength = 0;
    }
    byteLength += (count === 0 ? 0 : COMMA_BYTES) + length;
    count += 1;
  });
  return starts;
}

export function isSame(entry: Uint8Array, other: Uint8Array | undefined): boolean {
  if (entry === other) return true;
  return entry.length === other?.length && entry.every((byte, index) => byte === other[index]);
}
