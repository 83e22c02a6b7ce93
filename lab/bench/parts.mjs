import { callTables, measureCalls } from './calls.mjs';
import { manyToolsTables, measureManyTools } from './many-tools.mjs';
import { measureMemory, memoryTables } from './memory.mjs';
import { measureNeighbours, neighbourTables } from './neighbours.mjs';
import { measurePayloads, payloadTables } from './payloads.mjs';

/**
 * The parts of a run in their order: how each is measured and shown, and how long in a full and in a short run. What
 * ends in no ratio is left out of the latter.
 */
export const PARTS = {
  calls: {
    measure: measureCalls,
    tables: callTables,
    full: { rounds: 30, calls: 2000 },
    short: { rounds: 5, calls: 1000 },
  },
  payloads: {
    measure: measurePayloads,
    tables: payloadTables,
    full: { rounds: 10 },
    short: { rounds: 3 },
  },
  neighbours: {
    measure: measureNeighbours,
    tables: neighbourTables,
    full: { rounds: 10, calls: 2000 },
    short: { rounds: 3, calls: 500 },
  },
  memory: {
    measure: measureMemory,
    tables: memoryTables,
    full: { seconds: 10, settleSeconds: 30 },
  },
  manyTools: {
    measure: measureManyTools,
    tables: manyToolsTables,
    full: { rounds: 50 },
  },
};
