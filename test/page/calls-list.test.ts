import { describe, expect, it } from 'vitest';
import { appendCalls, filterCalls, groupCalls, MAX_CALLS, slowestFirst } from '../../src/page/calls-list.js';
import type { CallRow } from '../../src/web/contract.js';

const EVERYTHING = { words: '', server: '', client: '', outcome: '', after: 0 };

function call(id: number, more: Partial<CallRow> = {}): CallRow {
  const about = { session: 1, client: 'editor 1.0', server: 'files', method: 'tools/call', name: 'files__read' };
  const sizes = { ms: 5, queueMs: 1, serverMs: 4, bytesIn: 100, bytesOut: 200 };
  return { id, at: id * 1_000, ...about, outcome: 'ok', reason: null, ...sizes, ...more };
}

function shape(calls: readonly CallRow[]): number[][] {
  return groupCalls(calls).map((group) => group.calls.map(({ id }) => id));
}

describe('the list of calls', () => {
  it('groups repeats, newest first', () => {
    expect(shape([call(1), call(2, { ms: 90 }), call(3, { name: 'files__list' }), call(4)])).toEqual([
      [4],
      [3],
      [2, 1],
    ]);
  });

  it('never puts a failure and a success in one group, nor two different failures', () => {
    const failed = { outcome: 'failed', reason: 'server ended' } as const;
    const calls = [
      call(1),
      call(2, failed),
      call(3, { ...failed, reason: 'timeout' }),
      call(4, { outcome: 'tool_error' }),
      call(5),
    ];
    expect(shape(calls)).toEqual([[5], [4], [3], [2], [1]]);
  });

  it('keeps the number of a group while the group grows', () => {
    expect(groupCalls([call(1), call(2)])[0]?.id).toBe(1);
    expect(groupCalls([call(1), call(2), call(3)])[0]?.id).toBe(1);
  });

  it('keeps the latest calls only', () => {
    const kept = appendCalls(
      Array.from({ length: MAX_CALLS }, (_, at) => call(at + 1)),
      [call(MAX_CALLS + 1)],
    );
    expect([kept.length, kept[0]?.id, kept.at(-1)?.id]).toEqual([MAX_CALLS, 2, MAX_CALLS + 1]);
  });

  it.each([
    ['words of tool, client and reason', { words: 'read EDITOR lost' }, [2]],
    ['the server', { server: 'web' }, [3]],
    ['the client', { client: 'agent 2' }, [4]],
    ['every outcome but ok', { outcome: 'bad' }, [2]],
    ['one outcome', { outcome: 'ok' }, [1, 3, 4]],
    ['the time', { after: 3_000 }, [3, 4]],
  ])('filters by %s', (_, filter, ids) => {
    const calls = [
      call(1),
      call(2, { outcome: 'failed', reason: 'lost' }),
      call(3, { server: 'web' }),
      call(4, { client: 'agent 2' }),
    ];
    expect(filterCalls(calls, { ...EVERYTHING, ...filter }).map(({ id }) => id)).toEqual(ids);
  });

  it('sorts single calls by their time', () => {
    const slowest = slowestFirst([call(1, { ms: 5 }), call(2, { ms: 90 }), call(3, { ms: 5 })]);
    expect(slowest.map(({ id }) => id)).toEqual([2, 1, 3]);
  });
});
