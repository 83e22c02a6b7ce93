const KEPT = 512;

/** How long the last calls of a server took. Milliseconds. */
export class Latencies {
  readonly #samples: number[] = [];
  #next = 0;

  add(ms: number): void {
    this.#samples[this.#next] = ms;
    this.#next = (this.#next + 1) % KEPT;
  }

  /** The latency that the share `quantile` (0 to 1) of the calls did not exceed; `undefined` before the first call. */
  quantile(quantile: number): number | undefined {
    const sorted = this.#samples.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))];
  }
}
