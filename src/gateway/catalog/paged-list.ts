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
 * other cursor is invalid. The pages are built on first use, because joining a thousand entries is the most expensive step
 * of answering a list request.
 */
export class PagedList {
  readonly #kind: PagedKind;
  readonly #entries: readonly Uint8Array[];
  readonly #paging: Paging;
  /** By the cursor that leads there: `undefined` leads to the first one. */
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

  /** Whether both lists have the same entries, byte for byte. */
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
    const snapshot = hmac(`list\0${texts.join('\0')}`).slice(0, SIGNATURE_LENGTH);
    const cursors = starts.map((start) => {
      if (start === 0) return undefined;
      const place = `${this.#kind}.${snapshot}.${start}`;
      return toBase64Url(`${place}.${hmac(`cursor\0${place}`).slice(0, SIGNATURE_LENGTH)}`);
    });
    const member = this.#kind === 'skills' ? this.#kind : LISTS[this.#kind].member;
    return new Map(
      cursors.map((cursor, index) => {
        const next = cursors[index + 1];
        const entries = this.#entries.slice(starts[index], starts[index + 1]).flatMap((entry) => [COMMA, entry]);
        const end = toBytes(next === undefined ? ']}' : `],"nextCursor":"${next}"}`);
        return [cursor, join([toBytes(`{"${member}":[`), ...entries.slice(1), end])];
      }),
    );
  }
}

/**
 * Answers a list request with the requested page. An invalid cursor is answered with -32602 (invalid params), as the
 * page server/utilities/pagination of the MCP specification says.
 */
export function answerList(exchange: Exchange, pages: PagedList): void {
  const { bytes, tokens } = exchange.request;
  const { cursor } = tokens;
  // A cursor that is present but empty or not a string is an invalid cursor, not a missing one.
  const isValid = cursor === undefined || isString(bytes, cursor);
  const page = isValid ? pages.at(cursor && readString(bytes, cursor)) : undefined;
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
