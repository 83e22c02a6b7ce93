import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ControlGroup } from '../../src/process/control-group.js';
import { identify } from '../../src/process/process-identity.js';
import { FakeClock } from '../support/fake-clock.js';
import { CgroupTree } from './cgroup-tree.js';

const MIB = 1024 ** 2;
const ALL = new Set(['memory', 'pids'] as const);

function make(tree: CgroupTree): ControlGroup {
  const folder = join(tree.folder, '1-server');
  tree.put(folder, []);
  return new ControlGroup({
    ...{ folder, clock: new FakeClock(), write: tree.write },
    home: () => tree.folder,
    inTurn: (move) => move(),
    onRemoved: () => {},
  });
}

/** A shell with a child, as a server that starts others at once. */
async function startFamily(): Promise<[number, number]> {
  const shell = spawn('/bin/sh', ['-c', 'sleep 1000 & echo $!; wait'], { detached: true });
  onTestFinished(() => void process.kill(-(shell.pid ?? 0), 'SIGKILL'));
  const [text] = await once(shell.stdout, 'data');
  return [shell.pid ?? 0, Number(text)];
}

describe.runIf(process.platform === 'linux')('a control group', () => {
  it('takes in a process and what it has started so far', async () => {
    const [server, child] = await startFamily();
    const tree = new CgroupTree({ pids: [process.pid, server, child] });
    const group = make(tree);
    await group.adopt(server, () => false);
    expect([tree.pids(tree.folder), tree.pids(group.folder)]).toEqual([[process.pid], [server, child]]);
    expect(group.leader).toBe(server);
  });

  it('takes in nothing when the exit of the process is known, since its pid may belong to another', async () => {
    const [server, child] = await startFamily();
    const tree = new CgroupTree({ pids: [server, child] });
    const group = make(tree);
    await group.adopt(server, () => true);
    expect([tree.pids(group.folder), group.leader]).toEqual([[], undefined]);
  });

  it('knows the processes in it and below it, each with its start time', async () => {
    const [server, child] = await startFamily();
    const tree = new CgroupTree();
    const group = make(tree);
    tree.put(group.folder, [server]);
    tree.put(join(group.folder, 'of-the-server'), [child]);
    const members = await group.members();
    expect(members.map(({ pid }) => pid)).toEqual([server, child]);
    expect(members[1]?.startTime).toBe((await identify(child))?.startTime);
    expect(await group.isEmpty()).toBe(false);
  });

  it('is not empty while something runs in it that was born while its members were listed', async () => {
    const tree = new CgroupTree();
    const group = make(tree);
    writeFileSync(join(group.folder, 'cgroup.events'), 'populated 1\nfrozen 0\n');
    expect([await group.members(), await group.isEmpty()]).toEqual([[], false]);
    writeFileSync(join(group.folder, 'cgroup.events'), 'populated 0\nfrozen 0\n');
    expect(await group.isEmpty()).toBe(true);
  });

  it('is removed with the groups below it', async () => {
    const tree = new CgroupTree();
    const folder = join(tree.folder, '1-server');
    mkdirSync(join(folder, 'a', 'b'), { recursive: true });
    let removed = 0;
    const group = new ControlGroup({
      ...{ folder, clock: new FakeClock(), write: tree.write, home: () => tree.folder, inTurn: (move) => move() },
      onRemoved: () => {
        removed += 1;
      },
    });
    await group.remove();
    expect([existsSync(folder), removed]).toEqual([false, 1]);
  });
});

describe('limits that the kernel enforces', () => {
  it('are the memory, and threads for the processes', async () => {
    const tree = new CgroupTree();
    const group = make(tree);
    await group.enforce({ memoryBytes: 512 * MIB, processes: 64 }, ALL);
    expect(group.enforced).toEqual({ memoryBytes: 512 * MIB, processes: 64 });
    const written = ['memory.max', 'memory.oom.group', 'pids.max'].map((file) => tree.read(group.folder, file));
    expect(written).toEqual([String(512 * MIB), '1', '2024']);
  });

  it('end with the setting', async () => {
    const tree = new CgroupTree();
    const group = make(tree);
    await group.enforce({ memoryBytes: MIB, processes: 1 }, ALL);
    await group.enforce({}, ALL);
    expect([tree.read(group.folder, 'memory.max'), tree.read(group.folder, 'pids.max')]).toEqual(['max', 'max']);
    expect(group.enforced).toEqual({});
  });

  it('are those that have a controller', async () => {
    const tree = new CgroupTree();
    const group = make(tree);
    await group.enforce({ memoryBytes: MIB, processes: 1 }, new Set(['pids'] as const));
    expect(group.enforced).toEqual({ processes: 1 });
    expect(tree.read(group.folder, 'memory.max')).toBeUndefined();
  });

  it('are the reason of an end if the kernel killed the server for its memory', async () => {
    const tree = new CgroupTree();
    const group = make(tree);
    const happened = (kills: number) =>
      writeFileSync(
        join(group.folder, 'memory.events'),
        `low 0\nhigh 0\nmax 9\noom 1\noom_kill ${kills}\noom_group_kill 1\n`,
      );
    happened(1);
    expect(group.outOfMemory()).toBeUndefined();
    await group.enforce({ memoryBytes: 1.5 * 1024 * MIB }, ALL);
    expect(group.outOfMemory()).toBe('it needed more memory than its limit of 1.5 GiB, and the system killed it');
    happened(0);
    expect(group.outOfMemory()).toBeUndefined();
  });
});
