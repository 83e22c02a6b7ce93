import { describe, expect, it } from 'vitest';
import { listProcesses, parsePs, toRow } from '../../src/host/process/processes.js';
import {
  type GroupUsage,
  membersOfGroups,
  ResourceWatch,
  readUsage,
  type UsageRequest,
} from '../../src/servers/process/resource-watch.js';
import type { ResourceLimits } from '../../src/spec/server-rules.js';
import { FakeClock } from '../support/fake-clock.js';
import { IS_MAC, IS_WINDOWS } from '../support/platform.js';
import { processesWith, until } from '../support/processes.js';
import { flush } from '../support/wire.js';
import { observe } from './spawned.js';

const GIB = 1024 ** 3;
const USAGE: GroupUsage = { memoryBytes: GIB / 2, processes: 3, cpuMs: 0 };

function watching() {
  const clock = new FakeClock();
  const usages = new Map<number, GroupUsage>();
  const requested: (readonly UsageRequest[])[] = [];
  const unreadable: unknown[] = [];
  const told: [pid: number, reason: string][] = [];
  const system: { read: () => Promise<ReadonlyMap<number, GroupUsage> | undefined> } = { read: async () => usages };
  const watch = new ResourceWatch({
    clock,
    readUsage: (requests) => {
      requested.push(requests);
      return system.read();
    },
    onUnreadable: (error) => unreadable.push(error),
  });
  const add = (pid: number, limits: () => ResourceLimits) => {
    usages.set(pid, USAGE);
    return watch.add({ pid, limits, onExceeded: (reason) => told.push([pid, reason]) });
  };
  const pass = async (ms: number) => {
    clock.advance(ms);
    await flush();
  };
  return { clock, usages, requested, unreadable, told, system, watch, add, pass };
}

describe('a group without limits', () => {
  it('is not read while nobody asks', async () => {
    const { clock, requested, add, pass } = watching();
    add(1, () => ({}));
    await pass(60_000);
    expect(requested).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('is read twice when somebody asks, which shows what the processor does now', async () => {
    const { clock, usages, requested, watch, add, pass } = watching();
    add(1, () => ({}));
    expect(watch.readingOf(1)).toBeUndefined();
    const refreshed = watch.refresh(1);
    await flush();
    expect(watch.readingOf(1)).toEqual(USAGE);
    usages.set(1, { ...USAGE, cpuMs: 50 });
    await pass(100);
    await refreshed;
    expect(watch.readingOf(1)).toEqual({ ...USAGE, cpuMs: 50, cpuShare: 0.5 });
    expect(requested).toEqual([[{ pid: 1, lookCloselyAboveBytes: 0 }], [{ pid: 1, lookCloselyAboveBytes: 0 }]]);
    expect(clock.pending).toBe(0);
  });

  it('is read once for several who ask, not again within a second, and once later', async () => {
    const { usages, requested, watch, add, pass } = watching();
    add(1, () => ({}));
    const both = Promise.all([watch.refresh(1), watch.refresh(1)]);
    await flush();
    await pass(100);
    await both;
    await watch.refresh(1);
    expect(requested).toHaveLength(2);
    await pass(1_000);
    // Fewer than before: a process has ended, and its time with it.
    usages.set(1, { ...USAGE, cpuMs: -10 });
    await watch.refresh(1);
    expect(requested).toHaveLength(3);
    expect(watch.readingOf(1)?.cpuShare).toBe(0);
  });

  it('is read together with others that are asked for, unless its reading is fresh', async () => {
    const { requested, watch, add, pass } = watching();
    for (const pid of [1, 2, 3]) add(pid, () => ({}));
    const refreshed = Promise.all([watch.refresh(1), watch.refresh(1, 2, 3, 4)]);
    await flush();
    await pass(100);
    await refreshed;
    await watch.refresh(3, 1);
    expect(requested.map((each) => each.map(({ pid }) => pid))).toEqual([[1], [2, 3], [1], [2, 3]]);
  });

  it('is forgotten when it is not watched any more', async () => {
    const { requested, watch, add, pass } = watching();
    const remove = add(1, () => ({}));
    const refreshed = watch.refresh(1);
    await flush();
    await pass(100);
    await refreshed;
    remove();
    expect(watch.readingOf(1)).toBeUndefined();
    await watch.refresh(1);
    expect(requested).toHaveLength(2);
  });
});

describe('a group with limits', () => {
  it('is read every 5 s, closely only above its limit, and together with others that have limits', async () => {
    const { requested, add, pass } = watching();
    add(1, () => ({ memoryBytes: GIB }));
    add(2, () => ({ processes: 4 }));
    add(3, () => ({}));
    await pass(4_999);
    expect(requested).toEqual([]);
    await pass(1);
    await pass(5_000);
    const requests = [
      { pid: 1, lookCloselyAboveBytes: GIB },
      { pid: 2, lookCloselyAboveBytes: Number.POSITIVE_INFINITY },
    ];
    expect(requested).toEqual([requests, requests]);
  });

  it('F69: is reported after two readings in a row above it, with what it used', async () => {
    const { usages, told, add, pass } = watching();
    add(1, () => ({ memoryBytes: GIB, processes: 64 }));
    usages.set(1, { ...USAGE, memoryBytes: 1.2 * GIB });
    await pass(5_000);
    usages.set(1, USAGE);
    await pass(5_000);
    usages.set(1, { ...USAGE, memoryBytes: 1.2 * GIB });
    await pass(5_000);
    expect(told).toEqual([]);
    usages.set(1, { ...USAGE, memoryBytes: 1.2 * GIB, processes: 65 });
    await pass(5_000);
    expect(told).toEqual([[1, 'it used 1.2 GiB of memory, limit 1 GiB; it ran 65 processes, limit 64']]);
  });

  it('may get other limits at any time', async () => {
    const { clock, told, watch, add, pass } = watching();
    let limits: ResourceLimits = {};
    add(1, () => limits);
    expect(clock.pending).toBe(0);
    limits = { processes: 2 };
    watch.limitsChanged();
    await pass(10_000);
    await pass(5_000);
    expect(told).toEqual([[1, 'it ran 3 processes, limit 2']]);
    limits = {};
    watch.limitsChanged();
    expect(clock.pending).toBe(0);
  });

  it('is not reported when it is not watched any more, and nothing is left', async () => {
    const { clock, usages, told, add, pass } = watching();
    const remove = add(1, () => ({ memoryBytes: 1 }));
    await pass(5_000);
    clock.advance(5_000);
    // The reading is under way.
    remove();
    await flush();
    expect(told).toEqual([]);
    expect(clock.pending).toBe(0);
    add(1, () => ({ memoryBytes: 1 }));
    expect(clock.pending).toBe(1);
    usages.clear();
    await pass(5_000);
    expect(told).toEqual([]);
  });

  it('that comes while others are read has one timer with them', async () => {
    const { clock, add, pass } = watching();
    const remove = add(1, () => ({ memoryBytes: 1 }));
    clock.advance(5_000);
    remove();
    add(2, () => ({ memoryBytes: 1 }));
    await flush();
    expect(clock.pending).toBe(1);
    await pass(5_000);
    expect(clock.pending).toBe(1);
  });

  it('has no effect where the system does not tell, which is said once', async () => {
    const { told, unreadable, system, add, pass } = watching();
    const refused = new Error('EACCES');
    system.read = () => Promise.reject(refused);
    add(1, () => ({ memoryBytes: 1 }));
    for (let times = 0; times < 3; times += 1) await pass(5_000);
    system.read = async () => undefined;
    await pass(5_000);
    expect(unreadable).toEqual([refused]);
    expect(told).toEqual([]);
  });
});

function row(pid: number, ppid: number, pgid: number) {
  return { pid, ppid, pgid, startTime: '', startedAtMs: 0, cpuMs: 0 };
}

function pidsOf(pgids: number[], rows: ReturnType<typeof row>[]) {
  return [...membersOfGroups(new Set(pgids), rows)].map(([pgid, members]) => [pgid, members.map(({ pid }) => pid)]);
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

const MIB = 1024 ** 2;

describe('a line of /proc/PID/stat', () => {
  const fields = 'S 1 7 7 0 -1 4194560 2545 0 0 0 150 50 7 3 20 0 11 0 84 1 2'.split(' ');

  it('says the parent, the group, the start and the processor time, with that of children that have ended', () => {
    const start = { startTime: '84', startedAtMs: 0 };
    expect(toRow('42', fields)).toEqual({ pid: 42, ppid: 1, pgid: 7, ...start, cpuMs: 2_100 });
  });

  it.each([[[]], [['Z', ...fields.slice(1)]], [['X', ...fields.slice(1)]]])('is no process: %j', (given) => {
    expect(toRow('42', given)).toBeUndefined();
  });
});

describe('the output of ps', () => {
  it('has memory in KiB, times as macOS and Linux write them, and the start as five words', () => {
    const text = [
      '    1     0     1 Ss   Mon Nov  9 08:01:02 2026        9000   0:01.50',
      '  507     1   507 S+   Mon Nov 29 08:01:02 2026       12345 123:00.07',
      '  508   507   507 Z    Mon Nov 29 08:01:02 2026           0   0:00.00',
      '  509   507   507 S    Mon Nov 29 08:01:02 2026         100  01:02:03',
      '  510   507   507 S    Mon Nov 29 08:01:02 2026         100 2-00:00:01',
      '',
    ].join('\n');
    const start = { startTime: 'Mon-Nov-29-08:01:02-2026', startedAtMs: 0 };
    expect(parsePs(text)).toEqual([
      {
        pid: 1,
        ppid: 0,
        pgid: 1,
        ...start,
        startTime: 'Mon-Nov-9-08:01:02-2026',
        residentBytes: 9000 * 1024,
        cpuMs: 1_500,
      },
      { pid: 507, ppid: 1, pgid: 507, ...start, residentBytes: 12345 * 1024, cpuMs: 7_380_070 },
      { pid: 509, ppid: 507, pgid: 507, ...start, residentBytes: 100 * 1024, cpuMs: 3_723_000 },
      { pid: 510, ppid: 507, pgid: 507, ...start, residentBytes: 100 * 1024, cpuMs: 172_801_000 },
    ]);
  });
});

describe.skipIf(IS_WINDOWS)('what a process group uses', () => {
  /** A program that forks `sleep`, takes some memory and some processor time, and says that it has. */
  const SCRIPT = `
    const { spawn } = require('node:child_process');
    globalThis.kept = Buffer.alloc(100 * 1024 * 1024, 1);
    spawn('sleep', ['60']);
    spawn('sleep', ['60'], { detached: true });
    setInterval(() => {}, 1_000);
    const start = process.cpuUsage();
    for (let used = 0; used < 50_000; used = process.cpuUsage(start).user);
    process.stdout.write('up');`;

  it('is the memory, the time and the number of its processes, also of a descendant that has left the group', async () => {
    const { child, says } = observe({ command: process.execPath, args: ['-e', SCRIPT], cwd: process.cwd(), env: {} });
    await says('up');
    const pid = child.pid ?? 0;
    const read = async (lookCloselyAboveBytes: number) => (await readUsage([{ pid, lookCloselyAboveBytes }]))?.get(pid);
    const resident = await read(Number.POSITIVE_INFINITY);
    const members = (await listProcesses()).filter(({ ppid }) => ppid === pid);
    expect(resident).toMatchObject({ processes: 3 });
    expect(resident?.memoryBytes).toBeGreaterThan(100 * MIB);
    expect(resident?.cpuMs).toBeGreaterThanOrEqual(50);
    // Looked at closely, as no other system than Linux lets us, the pages of the program that other processes use as well do not count in full.
    const close = await read(0);
    expect(close?.memoryBytes).toBeGreaterThan(100 * MIB);
    if (!IS_MAC) expect(close?.memoryBytes).toBeLessThan(resident?.memoryBytes ?? 0);
    for (const member of members) process.kill(member.pid, 'SIGKILL');
    const isGone = ({ pid: member }: { pid: number }) => processesWith('sleep 60').every((each) => each.pid !== member);
    await until('only the program runs', () => members.every(isGone));
    expect(await read(0)).toMatchObject({ processes: 1 });
    child.stdin.destroy();
    process.kill(-pid, 'SIGKILL');
    await child.exit;
    expect(await read(0)).toBeUndefined();
  });
});
