import { describe, expect, it } from 'vitest';
import {
  addCalls,
  filterCalls,
  groupCalls,
  MAX_CALLS,
  type ShownCalls,
  withPast,
} from '../../../src/web/page/calls-list.js';
import type { CallRow } from '../../../src/web/server/contract.js';

const EVERYTHING = { words: '', server: '', client: '', outcome: '' };

function call(id: number, more: Partial<CallRow> = {}): CallRow {
  const about = { session: 1, client: 'editor 1.0', server: 'files', method: 'tools/call', name: 'files__read' };
  const sizes = { ms: 5, queueMs: 1, serverMs: 4, bytesIn: 100, bytesOut: 200 };
  return { id, at: id * 1_000, ...about, outcome: 'ok', reason: null, ...sizes, ...more };
}

/** Numbers of the calls of each group, and the times of each gap. */
function shape(calls: readonly CallRow[], gaps?: ShownCalls['gaps']) {
  return groupCalls(calls, gaps).map((entry) =>
    'calls' in entry ? entry.calls.map(({ id }) => id) : `${entry.from} – ${entry.to}`,
  );
}

function range(from: number, to: number): CallRow[] {
  return Array.from({ length: to - from + 1 }, (_, at) => call(from + at));
}

const EMPTY: ShownCalls = { calls: [], failed: [], left: 0, since: 0, gaps: [] };
/** A log with the calls 1 to 3, which ended after 1 to 3 s. */
const THREE = addCalls(EMPTY, { calls: range(1, 3), left: {}, since: 500 });

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
    expect(groupCalls(range(1, 2))).toMatchObject([{ id: 1 }]);
    expect(groupCalls(range(1, 3))).toMatchObject([{ id: 1 }]);
  });

  it('keeps the latest calls only, and counts the others', () => {
    const gaps = [{ after: 1, from: 1_000, to: 1_500 }];
    const log = { ...addCalls(EMPTY, { calls: range(1, MAX_CALLS), left: { ok: 2 }, since: 900 }), gaps };
    const { calls, ...about } = addCalls(log, { calls: [call(MAX_CALLS + 1)], left: { failed: 3 } });
    expect([calls.length, calls[0]?.id, calls.at(-1)?.id]).toEqual([MAX_CALLS, 2, MAX_CALLS + 1]);
    expect(about).toEqual({ failed: [], left: 6, since: 900, gaps: [] });
  });

  it('keeps failed calls longer than others', () => {
    const failed = addCalls(EMPTY, { calls: [call(1, { outcome: 'failed' })], left: {} });
    const { calls, failed: kept } = addCalls(failed, { calls: range(2, MAX_CALLS + 1), left: {} });
    expect([calls[0]?.id, kept.map(({ id }) => id)]).toEqual([2, [1]]);
  });

  it('begins with the following, also if that is interrupted before the first call', () => {
    expect(THREE.since).toBe(500);
    const none = addCalls(EMPTY, { calls: [], left: {}, since: 500 });
    expect(none.since).toBe(500);
    expect(addCalls(none, { calls: [], left: {}, since: 8_000 }, 900)).toMatchObject({ since: 8_000, gaps: [] });
  });

  it('marks the time in which calls were not followed, and has no group across it', () => {
    const { calls, gaps, since } = addCalls(THREE, { calls: range(9, 10), left: {}, since: 8_000 }, 3_500);
    expect(shape(calls, gaps)).toEqual([[10, 9], '3500 – 8000', [3, 2, 1]]);
    expect(shape(calls.slice(0, 3), gaps)).toEqual(['3500 – 8000', [3, 2, 1]]);
    expect(since).toBe(500);
  });

  it('has no gap and no call twice if another page followed calls in a pause', () => {
    const log = addCalls(THREE, { calls: range(2, 5), left: {}, since: 2_000 }, 3_500);
    expect(shape(log.calls, log.gaps)).toEqual([[5, 4, 3, 2, 1]]);
  });

  it('has the calls of the call log before its own, none twice, and the failed ones among the failed', () => {
    const past = [call(-3, { at: 200, outcome: 'failed' }), call(-2, { at: 400 }), call(-1, { at: 700 })];
    const log = withPast(THREE, past);
    expect(log).toMatchObject({ since: 200, failed: [{ id: -3 }], left: 0 });
    expect(log.calls.map(({ id }) => id)).toEqual([-3, -2, 1, 2, 3]);
    expect(withPast(THREE, [])).toBe(THREE);
    // Without a hub, nothing is followed.
    expect(withPast(EMPTY, past).calls).toEqual(past);
  });

  it.each([
    ['words of tool, client and reason', { words: 'read EDITOR lost' }, [2]],
    ['the server', { server: 'web' }, [3]],
    ['the client', { client: 'agent 2' }, [4]],
    ['every outcome but ok', { outcome: 'bad' }, [2]],
    ['one outcome', { outcome: 'ok' }, [1, 3, 4]],
  ])('filters by %s', (_, filter, ids) => {
    const calls = [
      call(1),
      call(2, { outcome: 'failed', reason: 'lost' }),
      call(3, { server: 'web' }),
      call(4, { client: 'agent 2' }),
    ];
    expect(filterCalls(calls, { ...EVERYTHING, ...filter }).map(({ id }) => id)).toEqual(ids);
  });
});
