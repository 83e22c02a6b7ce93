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
