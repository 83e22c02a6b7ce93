import { spawn } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ControlGroups } from '../../src/process/control-groups.js';
import type { ResourceLimits } from '../../src/supervision/resource-limits.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';
import { CgroupTree } from './cgroup-tree.js';

function given(tree?: CgroupTree) {
  const guarded: (string | undefined)[] = [];
  const groups = new ControlGroups({
    clock: new FakeClock(),
    logger: { warn: () => {}, debug: () => {} },
    guard: {
      guardControlGroups: (folder) => void guarded.push(folder),
      releaseControlGroups: () => void guarded.push(undefined),
    },
    findOwn: () => tree?.folder,
    ...(tree && { write: tree.write }),
  });
  return { groups, guarded };
}

describe('without a control group of its own', () => {
  it('Trunkline makes no groups', async () => {
    const { groups, guarded } = given();
    await groups.prepare();
    expect(await groups.open('server', () => ({ processes: 1 }))).toBeUndefined();
    await groups.limitsChanged();
    await groups.sweep();
    await groups.close();
    expect(groups.of(process.pid)).toBeUndefined();
    expect(guarded).toEqual([undefined]);
  });
});

describe.runIf(process.platform === 'linux')('with a control group of its own', () => {
  it('the guardian knows the groups before the first of them holds a process, until all servers have ended', async () => {
    const tree = new CgroupTree();
    const { groups, guarded } = given(tree);
    await groups.prepare();
    expect([tree.groups, guarded]).toEqual([[], []]);
    await groups.open('server', () => ({}));
    expect(guarded).toEqual(tree.groups.slice(0, 1));
    await groups.close();
    expect([tree.groups, guarded[1]]).toEqual([[], undefined]);
  });

  it('a server is known by its first process while its group holds it', async () => {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const pid = child.pid ?? 0;
    const tree = new CgroupTree({ pids: [pid] });
    const { groups } = given(tree);
    const group = await groups.open('server', () => ({}));
    expect(groups.of(pid)).toBeUndefined();
    await group?.adopt(pid, () => false);
    expect(groups.of(pid)?.folder).toBe(group?.folder);
  });

  it('limits that change apply to the groups that are there', async () => {
    const tree = new CgroupTree({ pids: [process.pid], controllers: 'memory pids' });
    const { groups } = given(tree);
    let limits: ResourceLimits = { memoryBytes: 1024 ** 2 };
    const group = await groups.open('server', () => limits);
    await until('the limit is set', () => tree.read(group?.folder ?? '', 'memory.max') === String(1024 ** 2));
    limits = { memoryBytes: 2 * 1024 ** 2, processes: 4 };
    await groups.limitsChanged();
    expect(group?.enforced).toEqual(limits);
    expect(tree.read(group?.folder ?? '', 'memory.max')).toBe(String(2 * 1024 ** 2));
  });
});
