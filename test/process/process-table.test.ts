import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { readUsage } from '../../src/process/group-usage.js';
import { statFields } from '../../src/process/process-identity.js';
import { memoryOf, parsePs, readProcessTable, toRow } from '../../src/process/process-table.js';
import { until } from '../support/processes.js';
import { observe } from './spawned.js';

const MIB = 1024 ** 2;

describe('a line of /proc/PID/stat', () => {
  const fields = 'S 1 7 7 0 -1 4194560 2545 0 0 0 150 50 7 3 20 0 11 0 84 1 2'.split(' ');

  it('says the parent, the group and the processor time, with that of children that have ended', () => {
    expect(toRow('42', fields)).toEqual({ pid: 42, ppid: 1, pgid: 7, cpuMs: 2_100 });
  });

  it.each([[[]], [['Z', ...fields.slice(1)]], [['X', ...fields.slice(1)]]])('is no process: %j', (given) => {
    expect(toRow('42', given)).toBeUndefined();
  });
});

describe('the output of ps', () => {
  it('has memory in KiB, and times as macOS and Linux write them', () => {
    const text = [
      '    1     0     1   9000 Ss     0:01.50',
      '  507     1   507  12345 S+   123:00.07',
      '  508   507   507      0 Z      0:00.00',
      '  509   507   507    100 S    01:02:03',
      '  510   507   507    100 S    2-00:00:01',
      '',
    ].join('\n');
    expect(parsePs(text)).toEqual([
      { pid: 1, ppid: 0, pgid: 1, residentBytes: 9000 * 1024, cpuMs: 1_500 },
      { pid: 507, ppid: 1, pgid: 507, residentBytes: 12345 * 1024, cpuMs: 7_380_070 },
      { pid: 509, ppid: 507, pgid: 507, residentBytes: 100 * 1024, cpuMs: 3_723_000 },
      { pid: 510, ppid: 507, pgid: 507, residentBytes: 100 * 1024, cpuMs: 172_801_000 },
    ]);
  });

  it.runIf(process.platform === 'linux')('agrees with /proc about this process', async () => {
    const ps = parsePs(execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,rss=,stat=,time='], { encoding: 'utf8' }));
    const isThis = ({ pid }: { pid: number }) => pid === process.pid;
    const [listed, own] = [ps.find(isThis), (await readProcessTable())?.find(isThis)];
    expect(listed).toMatchObject({ pid: process.pid, ppid: own?.ppid, pgid: own?.pgid });
    expect(own?.ppid).toBe(process.ppid);
    // The memory of this process changes between the two readings.
    const ratio = (listed?.residentBytes ?? 0) / ((await memoryOf(process.pid, 'resident')) ?? 1);
    expect(Math.abs(Math.log2(ratio))).toBeLessThan(1);
  });
});

function isGone(pid: number): boolean {
  return toRow(String(pid), statFields(String(pid))) === undefined;
}

describe.runIf(process.platform === 'linux')('what a process group uses', () => {
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
    const members = (await readProcessTable())?.filter(({ ppid }) => ppid === pid) ?? [];
    expect(resident).toMatchObject({ processes: 3 });
    expect(resident?.memoryBytes).toBeGreaterThan(100 * MIB);
    expect(resident?.cpuMs).toBeGreaterThanOrEqual(50);
    // Looked at closely, the pages of the program that other processes use as well do not count in full.
    const close = await read(0);
    expect(close?.memoryBytes).toBeGreaterThan(100 * MIB);
    expect(close?.memoryBytes).toBeLessThan(resident?.memoryBytes ?? 0);
    for (const member of members) process.kill(member.pid, 'SIGKILL');
    await until('only the program runs', () => members.every(({ pid: member }) => isGone(member)));
    expect(await read(0)).toMatchObject({ processes: 1 });
    child.stdin.destroy();
    process.kill(-pid, 'SIGKILL');
    await child.exit;
    expect(await read(0)).toBeUndefined();
  });
});
