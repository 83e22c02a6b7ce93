// Processor time of a piece of work. It does not depend on what else the machine does, unlike the time on the wall.

/** Milliseconds of processor time that `work` takes. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * How the cost of `work` grows when its input becomes 16 times as large: about 1 when the cost is proportional to the size of the input,
 * about 16 when it is proportional to the square. The smallest cost of the small size counts, and the large one is measured again, up to
 * five times, while it looks like more than linear: garbage collection and compilation only add to a cost.
 */
export function growthOf(work: (size: number) => void, size: number): number {
  const small = Math.min(...Array.from({ length: SMALL_COSTS }, () => costOf(() => work(size))));
  let growth = Number.POSITIVE_INFINITY;
  for (let times = 0; times < 5 && growth >= LINEAR; times += 1)
    growth = Math.min(growth, costOf(() => work(16 * size)) / small / 16);
  return growth;
}

/** Windows counts processor time in ticks of 16 ms, so a cost is the mean of many repetitions there, and is measured less often. */
const [SHORTEST_MS, SMALL_COSTS] = process.platform === 'win32' ? [64, 3] : [0, 10];

function costOf(work: () => void): number {
  for (let times = 1; ; times *= 4) {
    const ms = cpuMsOf(() => {
      for (let done = 0; done < times; done += 1) work();
    });
    if (ms >= SHORTEST_MS) return ms / times;
  }
}

/** Below this, `growthOf` tells that a cost is proportional to the size and not to its square. */
export const LINEAR = 4;
