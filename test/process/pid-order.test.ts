import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { countTasks, isInPidOrderSince, tasksCounted } from '../../src/process/pid-order.js';

const HIGHEST = process.platform === 'linux' ? Number(readFileSync('/proc/sys/kernel/pid_max', 'latin1')) : 0;

describe.runIf(process.platform === 'linux')('the order of pids', () => {
  it('is that of the starts while fewer tasks have started than there are higher pids', () => {
    const tasksBefore = countTasks() ?? 0;
    expect(isInPidOrderSince({ pid: 300, tasksBefore })).toBe(true);
  });

  it.each([
    ['so many tasks have started that pids have started over', { pid: 300, before: HIGHEST }],
    ['the pid is so high that the next ones may have started over', { pid: HIGHEST - 1, before: 0 }],
    // A count of another boot, or of a system that starts to hide it.
    ['the count went back', { pid: 300, before: -1_000_000 }],
  ])('is unknown when %s', (_, { pid, before }) => {
    expect(isInPidOrderSince({ pid, tasksBefore: (countTasks() ?? 0) - before })).toBe(false);
  });

  it('is unknown when nobody has counted', () => {
    expect(isInPidOrderSince({ pid: 300, tasksBefore: undefined })).toBe(false);
  });

  it('is known from a count that every start raises, and that is remembered', () => {
    const before = countTasks() ?? 0;
    expect(tasksCounted()).toBe(before);
    spawnSync('true');
    expect(countTasks()).toBeGreaterThan(before);
    expect(tasksCounted()).toBeGreaterThan(before);
  });
});
