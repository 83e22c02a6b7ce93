import { describe, expect, it } from 'vitest';
import { type ListLimits, listAllPages } from '../../../src/gateway/catalog/list-pages.js';
import { LISTS } from '../../../src/mcp/lists.js';
import type { UpstreamConnection } from '../../../src/upstream/port.js';
import { type Message, responseOf } from '../../support/wire.js';

const TIMEOUTS = { idleMs: 1_000, maxMs: 1_000 };

/** A child whose pages are raw results, in order; after the last one it fails. */
function child(...pages: (string | Message)[]) {
  const asked: unknown[] = [];
  const request: UpstreamConnection['request'] = async (method, params) => {
    asked.push(params);
    expect(method).toBe('tools/list');
    const page = pages[asked.length - 1];
    if (page === undefined) return { kind: 'failed', reason: 'exited', sent: true };
    const text = typeof page === 'string' ? page : JSON.stringify(page);
    const member = text.startsWith('{"code"') ? 'error' : 'result';
    return { kind: 'answered', response: responseOf(`{"jsonrpc":"2.0","id":1,"${member}":${text}}`), at: 100 };
  };
  return { asked, list: (limits?: ListLimits) => listAllPages({ request }, LISTS.tools, TIMEOUTS, limits) };
}

async function texts(listing: ReturnType<typeof listAllPages>): Promise<unknown> {
  const outcome = await listing;
  if (outcome.kind === 'failed') return outcome.reason;
  const entries = outcome.entries.map(({ bytes, span }) =>
    Buffer.from(bytes.subarray(span.start, span.end)).toString(),
  );
  return outcome.truncated === undefined ? entries : [...entries, outcome.truncated];
}

const TOO_LARGE = 'larger than 10 bytes';

describe('listing all pages', () => {
  it('takes one page without a cursor, each entry as it was written', async () => {
    const { asked, list } = child('{"tools": [ {"n":1.0} , 7,"\\u00e9" ] }');
    expect(await texts(list())).toEqual(['{"n":1.0}', '7', '"\\u00e9"']);
    expect(asked).toEqual([undefined]);
  });

  it('follows cursors, an empty one too, and gives them back as they were meant', async () => {
    const { asked, list } = child(
      { tools: [1], nextCursor: 'a\n"é' },
      { tools: [], nextCursor: '' },
      { tools: [2, 3], nextCursor: '\\u0061' },
      { tools: [4] },
    );
    expect(await texts(list())).toEqual(['1', '2', '3', '4']);
    expect(asked).toEqual([undefined, { cursor: 'a\n"é' }, { cursor: '' }, { cursor: '\\u0061' }]);
  });

  it.each<[string, Message[], unknown]>([
    ['no hint if no page has one', [{}, {}], undefined],
    [
      'the shortest time of the pages',
      [
        { ttlMs: 9, cacheScope: 'public' },
        { ttlMs: 7, cacheScope: 'public' },
      ],
      { freshUntil: 107, isPublic: true },
    ],
    [
      'the scope of the most private page',
      [
        { ttlMs: 9, cacheScope: 'public' },
        { ttlMs: 9, cacheScope: 'private' },
      ],
      { freshUntil: 109, isPublic: false },
    ],
    [
      'a private scope if a page has no hint',
      [{ ttlMs: 9, cacheScope: 'public' }, {}],
      { freshUntil: 109, isPublic: false },
    ],
    ['no time if it is none', [{ ttlMs: -1, cacheScope: 5 }, { ttlMs: '9' }], { freshUntil: 100, isPublic: false }],
  ])('has %s', async (_, hints, expected) => {
    const pages = hints.map((hint, at) => ({ tools: [], ...hint, ...(at === 0 && { nextCursor: 'a' }) }));
    const outcome = await child(...pages).list();
    expect(outcome.kind === 'listed' && outcome.hint).toEqual(expected);
  });

  it('takes a null cursor for none', async () => {
    const { asked, list } = child({ tools: [1], nextCursor: null });
    expect(await texts(list())).toEqual(['1']);
    expect(asked).toHaveLength(1);
  });

  it.each([
    ['at once', ['a', 'a']],
    ['later', ['a', 'b', 'c', 'a']],
    ['empty', ['', '']],
  ])('ends when a cursor comes again: %s', async (_, cursors) => {
    const { asked, list } = child(...cursors.map((nextCursor, page) => ({ tools: [page], nextCursor })));
    expect(await texts(list())).toEqual([
      ...cursors.map((_, page) => String(page)),
      'the server sent the same cursor twice',
    ]);
    expect(asked).toHaveLength(cursors.length);
  });

  it('F41: uses what it has when there are too many pages, entries or bytes, and says so', async () => {
    const pages = () =>
      child(...Array.from({ length: 9 }, (_, page) => ({ tools: ['xx', 'yy'], nextCursor: `${page}` })));
    const limits = { maxEntries: 100, maxPages: 100, maxBytes: 1_000 };
    expect(await texts(pages().list({ ...limits, maxPages: 2 }))).toEqual([
      ...['"xx"', '"yy"', '"xx"', '"yy"'],
      'more than 2 pages',
    ]);
    expect(await texts(pages().list({ ...limits, maxEntries: 3 }))).toEqual([
      ...['"xx"', '"yy"', '"xx"'],
      'more than 3 entries',
    ]);
    expect(await texts(pages().list({ ...limits, maxBytes: 20 }))).toEqual([
      ...['"xx"', '"yy"', '"xx"'],
      'larger than 20 bytes',
    ]);
  });

  it('F220: counts the cursors, which a child can make as long as it likes', async () => {
    const { asked, list } = child(...['a', 'b', 'c'].map((text) => ({ tools: [1], nextCursor: text.repeat(6) })));
    expect(await texts(list({ maxEntries: 100, maxPages: 100, maxBytes: 15 }))).toEqual([
      ...['1', '1'],
      'larger than 15 bytes',
    ]);
    expect(asked).toHaveLength(2);
  });

  it('takes what fits of a single page that is too large', async () => {
    const limits = { maxEntries: 100, maxPages: 1, maxBytes: 10 };
    expect(await texts(child('{"tools":["xx","yy","zz"]}').list(limits))).toEqual(['"xx"', '"yy"', TOO_LARGE]);
    expect(await texts(child(`{"tools":["xx" ${' '.repeat(10)}]}`).list(limits))).toEqual(['"xx"', TOO_LARGE]);
    expect(await texts(child('{"tools":["x234567890"]}').list(limits))).toEqual([TOO_LARGE]);
  });

  it('may have as many as the limits allow', async () => {
    const { list } = child({ tools: [1, 2], nextCursor: 'a' }, { tools: [3] });
    expect(await texts(list({ maxEntries: 3, maxPages: 2, maxBytes: 9 }))).toEqual(['1', '2', '3']);
  });

  it('has limits when none are given', async () => {
    const { list } = child({ tools: Array.from({ length: 1_001 }, (_, index) => index) });
    const outcome = await list();
    expect(outcome).toMatchObject({ kind: 'listed', truncated: 'more than 1000 entries' });
    expect(outcome.kind === 'listed' && outcome.entries).toHaveLength(1_000);
    const large = await child({ tools: Array.from({ length: 5 }, () => 'x'.repeat(1024 * 1024 - 2)) }).list();
    expect(large).toMatchObject({ kind: 'listed', truncated: 'larger than 4194304 bytes' });
    expect(large.kind === 'listed' && large.entries).toHaveLength(3);
    const long = child(...Array.from({ length: 101 }, (_, page) => ({ tools: [page], nextCursor: `${page}` })));
    expect(await long.list()).toMatchObject({ kind: 'listed', truncated: 'more than 100 pages' });
    expect(long.asked).toHaveLength(100);
  });

  it('has of an entry that is too large what tells which one it is, and all others', async () => {
    const large = { name: 'large', uri: 'x://y', description: 'x'.repeat(5 * 1024 * 1024) };
    const { list } = child({ tools: [{ name: 'first' }, large, { name: 'last' }] });
    expect(await texts(list())).toEqual(['{"name":"first"}', '{"name":"large","uri":"x://y"}', '{"name":"last"}']);
    const outcome = await child({ tools: [{ name: 'x'.repeat(2 * 1024 * 1024) }, 'y'.repeat(2 * 1024 * 1024)] }).list();
    expect(outcome.kind === 'listed' && outcome.entries.map(({ isTooLarge }) => isTooLarge)).toEqual([true, true]);
    expect(await texts(Promise.resolve(outcome))).toEqual(['{}', '{}']);
  });

  it('keeps nothing in memory of what exceeds a limit', async () => {
    const large = 'x'.repeat(100);
    const limits = { maxEntries: 4, maxPages: 3, maxBytes: 100, maxEntryBytes: 50 };
    const { list } = child(
      { tools: ['1', large, '2'], nextCursor: 'a' },
      { tools: ['3', '4', ...Array(99).fill('5')] },
    );
    const outcome = await list(limits);
    const entries = outcome.kind === 'listed' ? outcome.entries : [];
    expect(entries).toHaveLength(4);
    const memory = [...new Set(entries.map(({ bytes }) => bytes))];
    expect(memory.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(limits.maxBytes);
  });

  it.each([
    ['is no list', { tools: {} }],
    ['is null', { tools: null }],
    ['is missing', {}],
  ])('fails when the list %s', async (_, page) => {
    expect(await texts(child(page).list())).toBe('tools/list: the result contains no list');
  });

  it.each(['[]', 'null', '"tools"', '7'])('fails when the result is %s', async (result) => {
    expect(await texts(child(result).list())).toBe('tools/list: the result contains no list');
  });

  it('fails as a whole when a later page does, since half a list looks like tools that went away', async () => {
    expect(await texts(child({ tools: [1], nextCursor: 'a' }).list())).toBe('tools/list: exited');
  });

  it('fails with the beginning of the error that a child answers', async () => {
    const reason = await texts(child({ code: -32601, message: `no ${'x'.repeat(500)}` }).list());
    expect(reason).toMatch(/^tools\/list: answered \{"code":-32601,"message":"no x+$/);
    expect(String(reason).length).toBeLessThan(250);
  });
});
