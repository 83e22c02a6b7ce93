import type { Exchange } from '../../downstream/port.js';
import { isString, readString, readText, toBytes } from '../../json/json-text.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { Hmac } from '../../mcp/exposed-name.js';
import { LISTS, type ListKind } from '../../mcp/lists.js';

/** How much of a list goes out at once. A page holds one entry at least, however large that is. */
export interface PageLimits {
  readonly maxEntries: number;
  /** Of the entries and the commas between them. */
  readonly maxBytes: number;
}

/** What cutting lists into pages takes. */
export interface Paging {
  readonly hmac: Hmac;
  readonly limits?: PageLimits;
}

const DEFAULT_LIMITS: PageLimits = { maxEntries: 1_000, maxBytes: 4 * 1024 * 1024 };

/**
 * The entries of one merged list as clients get them: all on one page, since many clients never ask for a second, and
 * on several only where one would be too large.
 *
 * Nothing is kept for a client. A cursor says of which list in which state it is and where it goes on, under a seal;
 * one that is not exactly what this list gives out leads nowhere. A page is made when it is first asked for, and kept:
 * putting a thousand entries together takes longer than everything else that happens to a page.
 */
export class PagedList {
  readonly #kind: ListKind;
  readonly #entries: readonly Uint8Array[];
  readonly #hmac: Hmac;
  /** Where each page begins. */
  readonly #starts: readonly number[];
  /** Those that were asked for. */
  readonly #pages: (Uint8Array | undefined)[] = [];
  #cursors: readonly string[] | undefined;

  constructor(kind: ListKind, entries: readonly Uint8Array[], { hmac, limits = DEFAULT_LIMITS }: Paging) {
    this.#kind = kind;
    this.#entries = entries;
    this.#hmac = hmac;
    this.#starts = startsOf(entries, limits);
  }

  /** The result for whoever asks without a cursor, as JSON. */
  get first(): Uint8Array {
    return this.#page(0);
  }

  /** The result for this cursor, as JSON; `undefined` if it is none of this list's. */
  after(cursor: string): Uint8Array | undefined {
    const index = this.#cursorsGivenOut().indexOf(cursor);
    return index < 0 ? undefined : this.#page(index + 1);
  }

  /** Whether a client would see no difference. */
  isLike(other: PagedList): boolean {
    const ours = this.#entries;
    const theirs = other.#entries;
    return ours.length === theirs.length && ours.every((entry, index) => isSame(entry, theirs[index]));
  }

  #page(index: number): Uint8Array {
    this.#pages[index] ??= this.#makePage(index);
    return this.#pages[index];
  }

  #makePage(index: number): Uint8Array {
    const parts: Uint8Array[] = [toBytes(`{"${LISTS[this.#kind].member}":[`)];
    for (const entry of this.#entries.slice(this.#starts[index], this.#starts[index + 1])) {
      if (parts.length > 1) parts.push(COMMA);
      parts.push(entry);
    }
    const cursor = this.#cursorsGivenOut()[index];
    parts.push(toBytes(cursor === undefined ? ']}' : `],"nextCursor":"${cursor}"}`));
    return join(parts);
  }

  /** The cursor at the end of each page but the last. */
  #cursorsGivenOut(): readonly string[] {
    if (this.#cursors !== undefined) return this.#cursors;
    const [, ...later] = this.#starts;
    const snapshot = later.length === 0 ? '' : this.#snapshot();
    this.#cursors = later.map((start) => {
      const place = `${this.#kind}.${snapshot}.${start}`;
      return toBase64Url(`${place}.${this.#hmac(`cursor\0${place}`).slice(0, SEAL_LENGTH)}`);
    });
    return this.#cursors;
  }

  /** What tells this state of the list from others; the same for the same entries. */
  #snapshot(): string {
    const texts = this.#entries.map((entry) => readText(entry, { start: 0, end: entry.length }));
    return this.#hmac(`list\0${texts.join('\0')}`).slice(0, SEAL_LENGTH);
  }
}

/** Answers a request for a list with the page that it asks for. */
export function answerList(exchange: Exchange, pages: PagedList): void {
  const { bytes, tokens } = exchange.request;
  const { cursor } = tokens;
  if (cursor === undefined) {
    exchange.succeed(pages.first);
    return;
  }
  // Presence decides: an empty cursor is one, though none of ours, and so is one that is no string.
  const page = isString(bytes, cursor) ? pages.after(readString(bytes, cursor)) : undefined;
  if (page === undefined) exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
  else exchange.succeed(page);
}

/** 128 bits, in hexadecimal. */
const SEAL_LENGTH = 32;

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

/** Of a text in ASCII. */
function toBase64Url(text: string): string {
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
