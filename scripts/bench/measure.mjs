import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client } from './client.mjs';

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
      const result = await measure(paths[index], index, round < 0);
      if (round >= 0) results.get(paths[index].name).push(result);
    }
  }
  return results;
}
