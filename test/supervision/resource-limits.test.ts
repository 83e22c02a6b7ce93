import { describe, expect, it } from 'vitest';
import { exceeded, membersOf, type ProcessRow } from '../../src/supervision/resource-limits.js';

function row(pid: number, ppid: number, pgid: number): ProcessRow {
  return { pid, ppid, pgid, cpuMs: 0 };
}

function pidsOf(pgids: number[], rows: ProcessRow[]) {
  return [...membersOf(new Set(pgids), rows)].map(([pgid, members]) => [pgid, members.map(({ pid }) => pid)]);
}

describe('the processes of a group', () => {
  it('are its members, also those whose parent has ended', () => {
    expect(pidsOf([10], [row(1, 0, 1), row(10, 1, 10), row(11, 10, 10), row(12, 1, 10)])).toEqual([[10, [10, 11, 12]]]);
  });

  it('are descendants that have left the group, too', () => {
    const rows = [row(10, 1, 10), row(11, 10, 11), row(12, 11, 12), row(20, 1, 20)];
    expect(pidsOf([10], rows)).toEqual([[10, [10, 11, 12]]]);
  });

  it('count for the innermost group', () => {
    expect(pidsOf([10, 11], [row(10, 1, 10), row(11, 10, 11), row(12, 11, 11)])).toEqual([
      [10, [10]],
      [11, [11, 12]],
    ]);
  });

  it('are none if it has ended', () => {
    expect(pidsOf([10], [row(20, 1, 20)])).toEqual([[10, []]]);
  });

  it('are found although reused pids make a circle', () => {
    expect(pidsOf([10], [row(20, 21, 20), row(21, 20, 21)])).toEqual([[10, []]]);
  });
});

describe('a limit', () => {
  const usage = { memoryBytes: 100, processes: 3, cpuMs: 0 };

  it.each([
    [{}, []],
    [{ memoryBytes: 100, processes: 3 }, []],
    [{ memoryBytes: 99 }, ['memoryBytes']],
    [{ processes: 2 }, ['processes']],
    [{ memoryBytes: 1, processes: 1 }, ['memoryBytes', 'processes']],
  ])('of %j is exceeded in %j', (limits, over) => {
    expect(exceeded(usage, limits)).toEqual(over);
  });
});
