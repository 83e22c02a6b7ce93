import type { Exchange } from '../../downstream/port.js';
import { isString, readString, readText, toBytes } from '../../json/json-text.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { LISTS, type ListKind } from '../../mcp/lists.js';
import type { Hmac } from '../../mcp/task-id.js';

/** Skills are a list of an extension. */
type PagedKind = ListKind | 'skills';

/** Limits of one page. A page holds at least one entry, whatever its size. */
export interface PageLimits {
  readonly maxEntries: number;
  /** Total size of the entries and the commas between them. */
  readonly maxBytes: number;
}

/** Settings of pagination. */
export interface Paging {
  /** Signs cursors. */
  readonly hmac: Hmac;
  readonly limits?: PageLimits;
}

const DEFAULT_LIMITS: PageLimits = { maxEntries: 1_000, maxBytes: 4 * 1024 * 1024 };

/**
 * The response pages of one merged list. All entries are on one page unless that page would be too large, because many
 * clients never request a second page.
 *
 * The gateway stores no state per client. A cursor names the list, its state and the next entry, and is signed; any
 * other cursor is invalid. A page is built on first use and then cached, because joining a thousand entries is the most
 * expensive step of answering a list request.
 */
export class PagedList {
  readonly #kind: PagedKind;
  readonly #entries: readonly Uint8Array[];
  readonly #hmac: Hmac;
  /** Index of the first entry of each page. */
  readonly #starts: readonly number[];
  /** Pages that were built already. */
  readonly #pages: (Uint8Array | undefined)[] = [];
  #cursors: readonly string[] | undefined;

  constructor(kind: PagedKind, entries: readonly Uint8Array[], { hmac, limits = DEFAULT_LIMITS }: Paging) {
    this.#kind = kind;
    this.#entries = entries;
    this.#hmac = hmac;
    this.#starts = startsOf(entries, limits);
  }

  /** The result of a request without a cursor, as JSON. */
  get first(): Uint8Array {
    return this.#page(0);
  }

  /** Returns the result of a request with this cursor, as JSON, or `undefined` if the cursor is invalid. */
  after(cursor: string): Uint8Array | undefined {
    const index = this.#pageCursors().indexOf(cursor);
    return index < 0 ? undefined : this.#page(index + 1);
  }

  /** Whether both lists have the same entries, byte for byte. */
  equals(other: PagedList): boolean {
    const ours = this.#entries;
    const theirs = other.#entries;
    return ours.length === theirs.length && ours.every((entry, index) => isSame(entry, theirs[index]));
  }

  #page(index: number): Uint8Array {
    this.#pages[index] ??= this.#makePage(index);
    return this.#pages[index];
  }

  #makePage(index: number): Uint8Array {
    const parts: Uint8Array[] = [toBytes(`{"${this.#member}":[`)];
    for (const entry of this.#entries.slice(this.#starts[index], this.#starts[index + 1])) {
      if (parts.length > 1) parts.push(COMMA);
      parts.push(entry);
    }
    const cursor = this.#pageCursors()[index];
    parts.push(toBytes(cursor === undefined ? ']}' : `],"nextCursor":"${cursor}"}`));
    return join(parts);
  }

  get #member(): string {
    return this.#kind === 'skills' ? this.#kind : LISTS[this.#kind].member;
  }

  /** Returns the `nextCursor` of each page except the last. */
  #pageCursors(): readonly string[] {
    if (this.#cursors !== undefined) return this.#cursors;
    const [, ...later] = this.#starts;
    const snapshot = later.length === 0 ? '' : this.#snapshot();
    this.#cursors = later.map((start) => {
      const place = `${this.#kind}.${snapshot}.${start}`;
      return toBase64Url(`${place}.${this.#hmac(`cursor\0${place}`).slice(0, SIGNATURE_LENGTH)}`);
    });
    return this.#cursors;
  }

  /** Returns a hash of the entries, which identifies this state of the list. */
  #snapshot(): string {
    const texts = this.#entries.map((entry) => readText(entry, { start: 0, end: entry.length }));
    return this.#hmac(`list\0${texts.join('\0')}`).slice(0, SIGNATURE_LENGTH);
  }
}

/**
 * Answers a list request with the requested page. An invalid cursor is answered with -32602 (invalid params), as the
 * page server/utilities/pagination of the MCP specification says.
 */
export function answerList(exchange: Exchange, pages: PagedList): void {
  const { bytes, tokens } = exchange.request;
  const { cursor } = tokens;
  if (cursor === undefined) {
    exchange.succeed(pages.first);
    return;
  }
  // A cursor that is present but empty or not a string is an invalid cursor, not a missing one.
  const page = isString(bytes, cursor) ? pages.after(readString(bytes, cursor)) : undefined;
  if (page === undefined) exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
  else exchange.succeed(page);
}

/** Length in hexadecimal digits: 128 bits. */
const SIGNATURE_LENGTH = 32;

const COMMA = toBytes(',');

function startsOf(entries: readonly Uint8Array[], { maxEntries, maxBytes }: PageLimits): number[] {
  const starts = [0];
  let count = 0;
  let byteLength = 0;
  entries.forEach(({ length }, index) => {
    if (count > 0 && (count === maxEntries || byteLength + COMMA.length + length > maxBytes)) {
      starts.push(index);
      count = 0;
      byteLength = 0;
    }
    byteLength += (count === 0 ? 0 : COMMA.length) + length;
    count += 1;
  });
  return starts;
}

function isSame(entry: Uint8Array, other: Uint8Array | undefined): boolean {
  if (entry === other) return true;
  return entry.length === other?.length && entry.every((byte, index) => byte === other[index]);
}

/** Encodes ASCII text as base64url without padding. */
function toBase64Url(text: string): string {
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
