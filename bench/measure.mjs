import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client } from './client.mjs';
import { quantile } from './statistics.mjs';

/** The first rounds find code that is not compiled yet; they are not counted. */
const WARM_UP_ROUNDS = 2;
export const IN_FLIGHT = 64;
/** Calls in flight together take a fraction of the time each, so there can be more of them. */
export const IN_FLIGHT_FACTOR = 4;

/** For each path and round: µs of a call alone, at p50 and p99, and calls a second with many in flight. */
export async function measureCalls(paths, { rounds, calls }) {
  const clients = paths.map(({ command }) => new Client(command));
  try {
    for (const [index, client] of clients.entries()) {
      await client.initialize();
      await client.open(paths[index].tool);
    }
    return await inRounds(paths, rounds, WARM_UP_ROUNDS, async ({ tool }, index) => {
      const { durations } = await clients[index].call(tool, { count: calls, inFlight: 1 });
      const many = calls * IN_FLIGHT_FACTOR;
      const { elapsed } = await clients[index].call(tool, { count: many, inFlight: IN_FLIGHT });
      return {
        p50: quantile(durations, 0.5) * 1000,
        p99: quantile(durations, 0.99) * 1000,
        callsPerSecond: (many / elapsed) * 1000,
      };
    });
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** For each path and round: milliseconds from the spawn to the answer to `initialize`; last, Node alone to its exit. */
export async function measureStarts(paths, rounds) {
  return await inRounds([...paths, NODE_ALONE], rounds, 1, async ({ command }) => {
    const startedAt = performance.now();
    if (command === undefined) {
      await once(spawn(process.execPath, ['-e', '0']), 'exit');
      return performance.now() - startedAt;
    }
    const client = new Client(command);
    try {
      await client.initialize();
      return performance.now() - startedAt;
    } finally {
      await client.close();
    }
  });
}

const NODE_ALONE = { name: '`node -e 0`, to its exit' };

/**
 * Measures all paths in turn, round after round, so that whatever else the machine does hits them alike; each round
 * begins with another one. Results are by path's name, in the order of the rounds.
 */
export async function inRounds(paths, rounds, warmUpRounds, measure) {
  const results = new Map(paths.map(({ name }) => [name, []]));
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    for (let turn = 0; turn < paths.length; turn += 1) {
      const index = (round + warmUpRounds + turn) % paths.length;
      const result = await measure(paths[index], index);
      if (round >= 0) results.get(paths[index].name).push(result);
    }
  }
  return results;
}
