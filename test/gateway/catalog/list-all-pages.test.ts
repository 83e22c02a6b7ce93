import { describe, expect, it } from 'vitest';
import { listAllPages } from '../../../src/gateway/catalog/pagination.js';
import type { UpstreamConnection } from '../../../src/upstream/upstream-connection.js';
import { LISTS } from '../../../src/wire/mcp/methods.js';
import { type Message, responseOf } from '../../support/wire.js';

const TIMEOUTS = { idleMs: 1_000, maxMs: 1_000 };

/** A server whose pages are raw results, in order. After the last page, its answers fail. */
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
  return { asked, list: () => listAllPages({ request }, LISTS.tools, TIMEOUTS) };
}

async function texts(listing: ReturnType<typeof listAllPages>): Promise<unknown> {
  const outcome = await listing;
  if (outcome.kind === 'failed') return outcome.reason;
  const entries = outcome.entries.map(({ bytes }) => Buffer.from(bytes).toString());
  return outcome.truncated === undefined ? entries : [...entries, outcome.truncated];
}

const MIB = 1024 * 1024;

describe('listing all pages', () => {
  it('takes one page without a cursor, each entry as it was written', async () => {
    const { asked, list } = child('{"tools": [ {"n":1.0} , 7,"\\u00e9" ] }');
    expect(await texts(list())).toEqual(['{"n":1.0}', '7', '"\\u00e9"']);
    expect(asked).toEqual([undefined]);
  });

  it('follows cursors, numbers too, and gives them back as they were meant', async () => {
    const { asked, list } = child(
      { tools: [1], nextCursor: 'a\n"é' },
      { tools: [], nextCursor: 0 },
      { tools: [2, 3], nextCursor: '\\u0061' },
      { tools: [4] },
    );
    expect(await texts(list())).toEqual(['1', '2', '3', '4']);
    expect(asked).toEqual([undefined, { cursor: 'a\n"é' }, { cursor: '0' }, { cursor: '\\u0061' }]);
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
    ['as a number', [7, 7]],
  ])('ends when a cursor comes again: %s', async (_, cursors) => {
    const { asked, list } = child(...cursors.map((nextCursor: unknown, page) => ({ tools: [page], nextCursor })));
    expect(await texts(list())).toEqual([
      ...cursors.map((_, page) => String(page)),
      'the server sent the same cursor twice',
    ]);
    expect(asked).toHaveLength(cursors.length);
  });

  it.each([
    ['more than 1000 entries', [Array.from({ length: 600 }, () => 'x'), Array.from({ length: 401 }, () => 'x')], 1_000],
    ['larger than 4194304 bytes', [Array.from({ length: 5 }, () => 'x'.repeat(MIB - 2))], 3],
    ['more than 100 pages', Array.from({ length: 101 }, () => ['x']), 100],
  ])('F41: uses what fits if there is too much, and says so: %s', async (truncated, pages, count) => {
    const { asked, list } = child(...pages.map((tools, page) => ({ tools, nextCursor: `${page}` })));
    const outcome = await list();
    expect(outcome).toMatchObject({ kind: 'listed', truncated });
    expect(outcome.kind === 'listed' && outcome.entries).toHaveLength(count);
    expect(asked.length).toBeLessThanOrEqual(100);
  });

  it('may have as many as the limits allow', async () => {
    const { list } = child({ tools: Array.from({ length: 999 }, () => 1), nextCursor: 'a' }, { tools: [3] });
    const outcome = await list();
    expect(outcome).toMatchObject({ kind: 'listed', truncated: undefined });
    expect(outcome.kind === 'listed' && outcome.entries).toHaveLength(1_000);
  });

  it('F220: counts the cursors, which a child can make as long as it likes', async () => {
    const { asked, list } = child(...['a', 'b', 'c'].map((text) => ({ tools: [1], nextCursor: text.repeat(2 * MIB) })));
    expect(await texts(list())).toEqual(['1', '1', 'larger than 4194304 bytes']);
    expect(asked).toHaveLength(2);
  });

  it('has of an entry that is too large what tells which one it is, and all others', async () => {
    const large = { name: 'large', uri: 'x://y', description: 'x'.repeat(5 * 1024 * 1024) };
    const { list } = child({ tools: [{ name: 'first' }, large, { name: 'last' }] });
    expect(await texts(list())).toEqual(['{"name":"first"}', '{"name":"large","uri":"x://y"}', '{"name":"last"}']);
    const outcome = await child({ tools: [{ name: 'x'.repeat(2 * 1024 * 1024) }, 'y'.repeat(2 * 1024 * 1024)] }).list();
    expect(outcome.kind === 'listed' && outcome.entries.map(({ isTooLarge }) => isTooLarge)).toEqual([true, true]);
    expect(await texts(Promise.resolve(outcome))).toEqual(['{}', '{}']);
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
