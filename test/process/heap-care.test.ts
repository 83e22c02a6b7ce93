import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { builtModule } from '../support/built-module.js';

const MIB = 1024 * 1024;
/** Keeps some thousand of the last objects that it makes, so that the space for young ones is always too small. */
const LOAD = `
  const kept = new Array(60_000);
  const load = (rounds) => { for (let i = 0; i < rounds; i += 1) kept[i % kept.length] = { text: [i, i, i, i, i, i, i, i] }; };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const youngBytes = () => v8.getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size;
`;

describe('care for the heap', () => {
  it('uses flags that this engine knows, and keeps no process alive', async () => {
    expect(await run('careForHeap();')).toEqual({ status: 0, stderr: '', said: Number.NaN });
  });

  it('bounds the space for young objects, which grows beyond it otherwise', async () => {
    const loaded = `
      ${LOAD}
      for (const until = performance.now() + 50; performance.now() < until; ) await turn();
      let largest = 0;
      for (let round = 0; round < 600; round += 1) { load(5_000); await turn(); largest = Math.max(largest, youngBytes()); }
      console.log(largest);
    `;
    const { said: bounded } = await run(`careForHeap({ startMs: 10, checkMs: 60_000 }); ${loaded}`);
    const { said: free } = await run(loaded);
    expect({ bounded: bounded / MIB, isMoreOtherwise: free > bounded }).toEqual({ bounded: 8, isMoreOtherwise: true });
  });

  it('holds that space at the start', async () => {
    const loaded = `${LOAD} for (let round = 0; round < 200; round += 1) { load(5_000); await turn(); } console.log(youngBytes());`;
    const { said } = await run(`careForHeap(); ${loaded}`);
    expect(said / MIB).toBeLessThanOrEqual(2);
  });

  it('collects garbage when there was nothing to do', async () => {
    const { said } = await run(`
      careForHeap({ startMs: 10, checkMs: 100 });
      const stays = setTimeout(() => {}, 10_000);
      globalThis.registry = new FinalizationRegistry(() => { clearTimeout(stays); console.log(1); });
      registry.register({ garbage: true });
    `);
    expect(said).toBe(1);
  });

  it('collects none while there is something to do', async () => {
    const { said } = await run(`
      careForHeap({ startMs: 10, checkMs: 100 });
      let collections = 0;
      new PerformanceObserver((list) => {
        collections += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length;
      }).observe({ type: 'gc' });
      const isBusy = setInterval(() => { for (const until = performance.now() + 10; performance.now() < until; ); }, 20);
      setTimeout(() => { clearInterval(isBusy); console.log(collections); process.exit(); }, 1_000);
    `);
    expect(said).toBe(0);
  });
});

/** Runs a script in a process of its own; it may say one number. */
async function run(script: string): Promise<{ status: number | null; stderr: string; said: number }> {
  const modules = `
    import v8 from 'node:v8';
    import { PerformanceObserver, constants } from 'node:perf_hooks';
    import { careForHeap } from '${await builtModule('app/heap-care.ts')}';
  `;
  const { status, stderr, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', modules + script], {
    encoding: 'utf8',
  });
  return { status, stderr, said: stdout === '' ? Number.NaN : Number(stdout) };
}
