export interface BackoffOptions {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/** Share of a delay by which it may be shorter or longer, so that children that died together do not return together. */
const JITTER = 0.2;

/**
 * How long to wait before the next try, in milliseconds: doubling with each attempt up to `maxDelayMs`, then spread
 * by ±20 %.
 *
 * @param attempt counts from 0
 * @param random yields numbers in [0, 1)
 */
export function backoffDelayMs(
  attempt: number,
  { firstDelayMs, maxDelayMs }: BackoffOptions,
  random: () => number,
): number {
  const delayMs = Math.min(firstDelayMs * 2 ** attempt, maxDelayMs);
  return delayMs * (1 + JITTER * (2 * random() - 1));
}
