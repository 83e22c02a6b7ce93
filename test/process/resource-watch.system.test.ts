import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { memoryOf, parsePs, readProcessTable } from '../../src/servers/process/resource-watch.js';

describe('the output of ps', () => {
  it('agrees with /proc about this process', async () => {
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
