import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Time between two measurements, in milliseconds: ten a second take 0.07 % of a processor. A shorter delay may be missed. */
const RESOLUTION_MS = 100;

/** Delays of the event loop. One long piece of work delays everything else. */
export interface EventLoopDelay {
  /** 99 % of the measured delays were no longer. */
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Measures the delays of the event loop until `close` is called. */
export function watchEventLoop(): EventLoopDelay & { close(): void } {
  const intervals = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  intervals.enable();
  // Node records the time between two ticks of a timer, in nanoseconds.
  const delayMs = (nanoseconds: number) => Math.max(0, Math.round(nanoseconds / 1e6) - RESOLUTION_MS);
  return {
    get p99Ms() {
      return delayMs(intervals.percentile(99));
    },
    get maxMs() {
      return delayMs(intervals.max);
    },
    close: () => void intervals.disable(),
  };
}
