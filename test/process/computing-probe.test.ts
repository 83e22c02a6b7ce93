import { describe, expect, it } from 'vitest';
import { createComputingProbe } from '../../src/process/computing-probe.js';
import { statFields } from '../../src/process/process-identity.js';
import { until } from '../support/processes.js';
import { observe, spawnFixture } from './spawned.js';

function nodeRunning(script: string) {
  return observe({ command: process.execPath, args: ['-e', script], cwd: process.cwd(), env: {} });
}

describe.runIf(process.platform === 'linux')('whether a process computes', () => {
  it('is so as long as it does', async () => {
    const { child, says } = nodeRunning('process.stdout.write("up"); setImmediate(() => { for (;;); });');
    await says('up');
    const isComputing = createComputingProbe(child.pid ?? 0);
    for (let times = 0; times < 3; times += 1) await until('it has computed', () => isComputing() === true);
  });

  it('F136: is so while only a thread of it does, and the main thread waits', async () => {
    const busy = 'new Worker("for (;;);", { eval: true }).once("online", () => process.stdout.write("up"))';
    const { child, says } = nodeRunning(`const { Worker } = require('node:worker_threads'); ${busy};`);
    await says('up');
    await until('the main thread waits', () => statFields(String(child.pid))[0] === 'S');
    const isComputing = createComputingProbe(child.pid ?? 0);
    isComputing();
    // Too soon for any processor time to be counted.
    expect(isComputing()).toBe(true);
  });

  it('is not so when it waits, after the time that it has used to start', async () => {
    // Longer than the kernel's ticks: a fast machine starts Node in less than two of them.
    const computes = 'while (process.cpuUsage().user < 200_000);';
    const { child, says } = nodeRunning(`${computes} process.stdout.write("up"); setInterval(() => {}, 1_000_000);`);
    await says('up');
    const isComputing = createComputingProbe(child.pid ?? 0);
    expect(isComputing()).toBe(true);
    await until('it waits', () => isComputing() === false);
  });

  it('is unknown when it has ended', async () => {
    const { child } = spawnFixture('exit-at-once.mjs', '0');
    await child.exit;
    expect(createComputingProbe(child.pid ?? 0)()).toBeUndefined();
  });
});
