import { GCProfiler, getHeapStatistics } from 'node:v8';
import { openAlone, openInside } from './inside-gateway.mjs';
import { inRounds } from './measure.mjs';

/** Until the code is compiled, with what it has seen by then. */
const WARM_UP_ROUNDS = 10;
/** What is allocated hardly differs between rounds. */
const ALLOCATION_ROUNDS = 5;

/** Small calls with so many in flight: the time of each, and what is allocated for it. */
export async function measureInsideCalls({ rounds, calls, inFlight }) {
  const ways = [
    { name: 'inside the gateway', client: await openInside(inFlight) },
    { name: 'client and server alone', client: openAlone() },
  ];
  const times = await inRounds(ways, rounds, WARM_UP_ROUNDS, async ({ client }) => {
    const startedAt = performance.now();
    await client.call(calls, inFlight);
    return ((performance.now() - startedAt) * 1e6) / calls;
  });
  const bytes = await inRounds(ways, Math.min(rounds, ALLOCATION_ROUNDS), 1, async ({ client }) => {
    return (await allocatedBytes(() => client.call(calls, inFlight))) / calls;
  });
  return [
    ...[...times].map(([name, values]) => ({ name: `a call, ${name}`, unit: 'ns', rounds: values })),
    ...[...bytes].map(([name, values]) => ({ name: `allocated for it, ${name}`, unit: 'bytes', rounds: values })),
  ];
}

/** What is allocated on the heap meanwhile, garbage included: its growth between each two collections, added up. */
async function allocatedBytes(run) {
  globalThis.gc();
  const profiler = new GCProfiler();
  let used = getHeapStatistics().used_heap_size;
  profiler.start();
  await run();
  const { statistics } = profiler.stop();
  const usedAtEnd = getHeapStatistics().used_heap_size;
  let allocated = 0;
  for (const { beforeGC, afterGC } of statistics) {
    allocated += beforeGC.heapStatistics.usedHeapSize - used;
    used = afterGC.heapStatistics.usedHeapSize;
  }
  return allocated + usedAtEnd - used;
}
