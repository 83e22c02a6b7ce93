import { describe, expect, it } from 'vitest';
import { identify, listProcesses, systemWithPs } from '../../src/host/process/processes.js';
import { memoryOfProcess } from '../../src/servers/process/resource-watch.js';

describe('the output of ps', () => {
  it('agrees with /proc about this process', async () => {
    const isThis = ({ pid }: { pid: number }) => pid === process.pid;
    const [listed, own] = [(await systemWithPs().list()).find(isThis), (await listProcesses()).find(isThis)];
    expect(listed).toMatchObject({ pid: process.pid, ppid: own?.ppid, pgid: own?.pgid });
    expect(own?.ppid).toBe(process.ppid);
    expect(own?.startTime).toBe((await identify(process.pid))?.startTime);
    expect(listed?.startTime).toBe((await systemWithPs().identify(process.pid))?.startTime);
    // The memory of this process changes between the two readings.
    const ratio = (listed?.residentBytes ?? 0) / ((await memoryOfProcess(process.pid, 'resident')) ?? 1);
    expect(Math.abs(Math.log2(ratio))).toBeLessThan(1);
  });
});
