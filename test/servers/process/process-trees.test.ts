import { describe, expect, it } from 'vitest';
import { parsePs } from '../../../src/host/process/processes.js';
import { parseListing } from '../../../src/host/process/windows.js';
import { growTree, ProcessTrees, type TreeMember } from '../../../src/servers/process/process-trees.js';

/** Rows of `pid ppid start`. */
const listed = (...rows: string[]) => parseListing(rows.join('\n'));

describe('a tree of processes on Windows', () => {
  it.each([
    ['has the leader and those below it', ['10 1 500', '11 10 600', '12 11 700'], [10, 11, 12]],
    ['has those whose parent has ended', ['11 10 600', '12 11 700'], [11, 12]],
    [
      'leaves out those that an earlier process with the pid of the leader has started',
      ['10 1 990', '11 10 600'],
      [10],
    ],
    [
      'leaves out a later process with the pid of the leader, and what that has started',
      ['10 1 5000', '11 10 6000'],
      [],
    ],
    ['leaves out all others', ['10 1 990', '20 1 991', '21 20 992'], [10]],
  ])('%s', (_, rows, pids) => {
    const seenAtMs = rows.some((row) => row.endsWith('990')) ? 1_000 : 510;
    const tree: TreeMember[] = [{ pid: 10, seenAtMs }];
    expect(growTree(tree, listed(...rows), 9_000).map(({ pid }) => pid)).toEqual(pids);
  });

  it('keeps what a process in its middle has started when that process has ended, and nothing that ended', () => {
    const tree: TreeMember[] = [{ pid: 10, seenAtMs: 500 }];
    growTree(tree, listed('10 1 500', '11 10 600'), 1_000);
    expect(growTree(tree, listed('10 1 500', '12 11 700'), 2_000).map(({ pid }) => pid)).toEqual([10, 12]);
    expect(growTree(tree, listed('12 11 700', '13 11 3000'), 4_000).map(({ pid }) => pid)).toEqual([12]);
    expect(tree).toEqual([{ pid: 12, seenAtMs: 700, startTime: '700', startedAtMs: 700 }]);
  });
});

/** Rows of `pid ppid pgid`, with a digit that tells a process from a later one with its pid. */
const onPosix = (...rows: string[]) => {
  const lines = rows.map((row) => {
    const [ids, start = '0'] = row.split(' @');
    return `${ids} S Mon Jan 1 10:00:0${start} 2001 100 0:00.01`;
  });
  return parsePs(lines.join('\n'));
};

describe('a tree of processes on systems with groups', () => {
  function follow(...lists: string[][]) {
    let at = -1;
    const trees = new ProcessTrees(() => 0);
    trees.follow('m', 10);
    return () => {
      at += 1;
      return trees.family('m', onPosix(...(lists[at] ?? []))).map(({ pid }) => pid);
    };
  }

  it.each([
    ['has those below the leader, in any group', ['10 1 10', '11 10 10', '12 11 12', '20 1 20'], [10, 11, 12]],
    ['has the groups of those below the leader', ['10 1 10', '12 10 12', '13 1 12', '14 1 10'], [10, 12, 13, 14]],
    ['is empty without its leader', ['11 1 10', '20 1 20'], []],
  ])('%s', (_, rows, pids) => {
    expect(follow(rows)()).toEqual(pids);
  });

  it('keeps those that were seen in it when their parents have ended, and what they start then', () => {
    const family = follow(['10 1 10', '11 10 11', '12 11 12'], ['12 1 12', '13 12 13', '14 1 12', '15 1 11']);
    family();
    expect(family()).toEqual([12, 13, 14]);
  });

  it('leaves out later processes with the pids of its processes, and what these start', () => {
    const family = follow(['10 1 10', '11 10 11'], ['11 1 11 @5', '12 11 11', '10 1 10 @5', '13 10 10']);
    family();
    expect(family()).toEqual([]);
  });
});
