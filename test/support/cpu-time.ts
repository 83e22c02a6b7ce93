// Processor time of a piece of work. It does not depend on what else the machine does, unlike the time on the wall.

/** Milliseconds of processor time that `work` takes. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * How the cost of `work` grows when its input becomes 16 times as large: about 1 when the cost is proportional to the
 * size of the input, about 16 when it is proportional to the square. Each size is measured five times, and the smallest
 * cost counts, since garbage collection and compilation only add to it.
 */
export function growthOf(work: (size: number) => void, size: number): number {
  const costOf = (units: number) => Math.min(...Array.from({ length: 5 }, () => cpuMsOf(() => work(units))));
  // The first calls are slower: the engine has not compiled the code yet.
  costOf(size);
  return costOf(16 * size) / costOf(size) / 16;
}

/** Below this, `growthOf` tells that a cost is proportional to the size and not to its square. */
export const LINEAR = 4;
