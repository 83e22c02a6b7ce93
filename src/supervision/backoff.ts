export interface BackoffOptions {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/** The share of a delay that is random, so that servers that failed together do not restart together. */
const JITTER = 0.2;

/**
 * The delay before the next attempt, in milliseconds. It doubles with each attempt up to `maxDelayMs`, and varies by
 * ±20 %.
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
