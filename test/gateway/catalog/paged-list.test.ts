import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerList, PagedList, type PageLimits } from '../../../src/gateway/catalog/pagination.js';
import { LIST_KINDS, LISTS } from '../../../src/wire/mcp/methods.js';
import { hmac } from '../../support/hmac.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { bytesOf, type Message } from '../../support/wire.js';

const MIB = 1024 * 1024;

/** A list of tools, by their JSON. */
function listOf(entries: readonly string[], limits?: PageLimits): PagedList {
  return new PagedList('tools', entries.map(bytesOf), limits === undefined ? { hmac } : { hmac, limits });
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `{"name":"t${index}"}`);
}

/** Texts of the pages that a client gets when it follows cursors to the end. */
function pagesOf(list: PagedList): string[] {
  const pages = [Buffer.from(list.at(undefined) ?? []).toString()];
  for (let cursor = cursorOf(pages[0]); cursor !== undefined; cursor = cursorOf(pages.at(-1))) {
    const page = list.at(cursor);
    if (page === undefined) throw new Error(`Cursor ${cursor} leads nowhere`);
    pages.push(Buffer.from(page).toString());
  }
  return pages;
}

function cursorOf(page = ''): string | undefined {
  return JSON.parse(page).nextCursor;
}

function entriesOf(page: string): string {
  return page.replace(/^\{"tools":\[/, '').replace(/\](?:,"nextCursor":"[^"]*")?\}$/, '');
}

/** The answer to a request with these params. */
function answerTo(list: PagedList, params?: Message): Message {
  const exchange = new InMemoryExchange('tools/list', params ?? {});
  answerList(exchange, list);
  return JSON.parse(exchange.answers[0] ?? 'null');
}

const INVALID = { code: -32602, message: 'Invalid cursor' };

describe('a list of common size', () => {
  it('is one page, with nothing but its entries', () => {
    expect(pagesOf(listOf([]))).toEqual(['{"tools":[]}']);
    expect(pagesOf(listOf(['{ "name":"a" }', '{"name":"b"}']))).toEqual(['{"tools":[{ "name":"a" },{"name":"b"}]}']);
    expect(pagesOf(listOf(numbered(1_000)))).toHaveLength(1);
  });

  it('is one page up to 4 MiB', () => {
    const half = (length: number) => `"${'x'.repeat(length - 2)}"`;
    expect(pagesOf(listOf([half(2 * MIB), half(2 * MIB - 1)]))).toHaveLength(1);
    expect(pagesOf(listOf([half(2 * MIB), half(2 * MIB)]))).toHaveLength(2);
  });
});

describe('a large list', () => {
  it('has an entry on a page of its own that is larger than a page', () => {
    const huge = `"${'x'.repeat(5 * MIB)}"`;
    expect(pagesOf(listOf(['1', huge, '2'])).map(entriesOf)).toEqual(['1', huge, '2']);
  });

  it('has cursors that are one word in a URL, and the same as long as its entries are', () => {
    const [page = ''] = pagesOf(listOf(numbered(1_001)));
    expect(cursorOf(page)).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(cursorOf(page)).toBe(cursorOf(pagesOf(listOf(numbered(1_001)))[0]));
  });

  it('invariant 13: yields every entry once and in order to a client that follows its cursors, and no page beyond its limits', () => {
    const entry = fc.oneof(fc.json(), fc.constantFrom('1', '{ }', '"é"', `"${'x'.repeat(30)}"`));
    const limits = fc.record({ maxEntries: fc.integer({ min: 1, max: 6 }), maxBytes: fc.integer({ min: 1, max: 60 }) });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 40 }), limits, (entries, { maxEntries, maxBytes }) => {
        const list = listOf(entries, { maxEntries, maxBytes });
        const pages = pagesOf(list);
        expect(pages.map(entriesOf).join(',')).toBe(entries.join(','));
        for (const page of pages) {
          const { length } = JSON.parse(page).tools;
          expect(length).toBeLessThanOrEqual(maxEntries);
          if (length > 1) expect(bytesOf(entriesOf(page)).length).toBeLessThanOrEqual(maxBytes);
          if (entries.length > 0) expect(length).toBeGreaterThan(0);
        }
        expect(new Set(pages.map(cursorOf)).size).toBe(pages.length);
        expect(pagesOf(list)).toEqual(pages);
      }),
    );
  });

  it('invariant 13: has no page for a cursor of which any character is another, is missing or is one too many', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= "\\\n\0é';
    const list = listOf(numbered(5), { maxEntries: 2, maxBytes: 1_000 });
    const cursors = pagesOf(list).flatMap((page) => cursorOf(page) ?? []);
    expect(cursors).toHaveLength(2);
    for (const cursor of cursors) {
      for (let at = 0; at < cursor.length; at += 1) {
        const [before, behind] = [cursor.slice(0, at), cursor.slice(at + 1)];
        for (const character of alphabet) {
          if (character !== cursor[at]) expect(list.at(before + character + behind)).toBeUndefined();
        }
        expect(list.at(before + behind)).toBeUndefined();
        expect(list.at(before)).toBeUndefined();
      }
      for (const more of ['=', 'A', ' ']) expect(list.at(cursor + more)).toBeUndefined();
    }
  });
});

describe('a cursor', () => {
  const LIMITS = { maxEntries: 1, maxBytes: 100 };
  const list = listOf(['1', '2'], LIMITS);
  const cursor = cursorOf(Buffer.from(list.at(undefined) ?? []).toString());

  it('is answered with the page that it stands for', () => {
    expect(answerTo(list)).toEqual({ tools: [1], nextCursor: cursor });
    expect(answerTo(list, {})).toEqual({ tools: [1], nextCursor: cursor });
    expect(answerTo(list, { cursor, x: 1 })).toEqual({ tools: [2] });
  });

  it('may be written with escapes', () => {
    const code = (cursor ?? '').charCodeAt(0).toString(16);
    const params = `{"cursor":"\\u00${code}${cursor?.slice(1)}"}`;
    const exchange = new InMemoryExchange('tools/list', params);
    answerList(exchange, list);
    expect(exchange.answers).toEqual(['{"tools":[2]}']);
  });

  it.each(['MQ', '1', 0, 1, true, {}, []])('that is %j is invalid', (wrong) => {
    for (const each of [list, listOf(['1'])]) expect(answerTo(each, { cursor: wrong })).toEqual(INVALID);
  });

  it('of another list is invalid', () => {
    for (const kind of LIST_KINDS) {
      const other = new PagedList(kind, [bytesOf('1'), bytesOf('2')], { hmac, limits: LIMITS });
      expect(other.at(cursor ?? '') !== undefined).toBe(LISTS[kind].member === 'tools');
    }
  });

  it.each([
    ['another entry', ['1', '3']],
    ['another order', ['2', '1']],
    ['an entry more', ['1', '2', '3']],
    ['an entry less', ['1']],
    ['an entry written in another way', ['1', '2 ']],
  ])('of the same list in another state is invalid: %s', (_, entries) => {
    expect(answerTo(listOf(entries, LIMITS), { cursor })).toEqual(INVALID);
  });

  it('made from another one is invalid', () => {
    const long = listOf(['1', '2', '3'], LIMITS);
    const [first = '', second = ''] = pagesOf(long).map((page) => cursorOf(page));
    for (const each of [first, second]) {
      for (const at of each.split('').keys()) {
        const forged = `${each.slice(0, at)}${each[at] === '0' ? '1' : '0'}${each.slice(at + 1)}`;
        expect(long.at(forged)).toBeUndefined();
      }
    }
    const half = first.length / 2;
    expect(long.at(first.slice(0, half) + second.slice(half))).toBeUndefined();
  });

  it('under another seal is invalid', () => {
    const limits = LIMITS;
    const other = new PagedList('tools', [bytesOf('1'), bytesOf('2')], { hmac: (text) => hmac(`${text}!`), limits });
    expect(answerTo(other, { cursor })).toEqual(INVALID);
  });
});
