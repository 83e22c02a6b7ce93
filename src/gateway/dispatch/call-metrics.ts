export type CallCounters = ReturnType<typeof newCallCounters>;

/** Counters of the calls to one server. They only grow. */
export function newCallCounters() {
  return {
    calls: 0,
    /** Calls that the server answered with a JSON-RPC error or with a tool result that has `isError`. */
    errors: 0,
    /** Calls that the gateway answered with a failure, because the server did not answer. */
    failures: 0,
    cancelled: 0,
    /** Calls that were sent to a second process because the first one ended. */
    repeated: 0,
  };
}

const MAX_SAMPLES = 512;

/** Durations of the latest 512 calls to one server, in milliseconds. */
export class Latencies {
  readonly #samples: number[] = [];
  #next = 0;

  add(ms: number): void {
    this.#samples[this.#next] = ms;
    this.#next = (this.#next + 1) % MAX_SAMPLES;
  }

  /**
   * Returns the latency that the share `quantile` (0 to 1) of the calls did not exceed, or `undefined` without calls.
   */
  quantile(quantile: number): number | undefined {
    const sorted = this.#samples.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))];
  }
}
