/** Counters of the calls to one server. They only grow. */
export interface CallCounters {
  calls: number;
  /** Calls that the server answered with a JSON-RPC error or with a tool result that has `isError`. */
  errors: number;
  /** Calls that the gateway answered because the server could not. */
  failures: number;
  cancelled: number;
  /** Calls that were sent to a second process because the first one ended. */
  repeated: number;
}

export function newCallCounters(): CallCounters {
  return { calls: 0, errors: 0, failures: 0, cancelled: 0, repeated: 0 };
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
