import type { Cancel, Clock } from '../../wire/timing/clock.js';

export interface HttpDrainOptions {
  readonly clock: Clock;
  /** Longest duration of the drain, in milliseconds. */
  readonly ms: number;
  /** Whether a call is in flight. */
  readonly isBusy: () => boolean;
  readonly connections: () => number;
  /** Closes the listening sockets, and ends the streams that stay open. Called once. */
  readonly stopAccepting: () => Promise<void>;
}

/** Longest time for which a draining gateway accepts connections, in milliseconds. Within it, proxies see that the gateway is not ready. */
const ACCEPT_MS = 10_000;

/** Time without a request after which a proxy has chosen another gateway, in milliseconds. */
const QUIET_MS = 2_000;

const LOOK_EVERY_MS = 100;

/**
 * Ends the service without losing calls. A draining gateway first goes on to accept connections, because a proxy that sends a
 * request to a closed port may not send it elsewhere. Then it accepts none, and finishes the calls in flight.
 *
 * The drain ends when no call is in flight and either no request has come for 2 s or no connection is open. It ends after `ms`
 * at the latest.
 */
export class Drain {
  readonly over: Promise<void>;
  readonly #options: HttpDrainOptions;
  readonly #acceptsUntil: number;
  readonly #endsAt: number;
  #lastRequestAt: number;
  #stopped: Promise<void> | undefined;
  #cancelLook: Cancel = () => {};
  #onOver: () => void = () => {};

  constructor(options: HttpDrainOptions) {
    const { clock, ms } = options;
    this.#options = options;
    this.#lastRequestAt = clock.now();
    this.#acceptsUntil = clock.now() + Math.min(ACCEPT_MS, ms / 2);
    this.#endsAt = clock.now() + ms;
    this.over = new Promise((resolve) => {
      this.#onOver = resolve;
    });
    this.#look();
  }

  requested(): void {
    this.#lastRequestAt = this.#options.clock.now();
  }

  /** Ends the drain early. `over` does not resolve. */
  cancel(): void {
    this.#cancelLook();
  }

  #look(): void {
    const { clock, isBusy, connections, stopAccepting } = this.#options;
    const now = clock.now();
    const isQuiet = connections() === 0 || now >= this.#lastRequestAt + QUIET_MS;
    const isOver = (isQuiet && !isBusy()) || now >= this.#endsAt;
    if (isOver || now >= this.#acceptsUntil) this.#stopped ??= stopAccepting();
    if (isOver) void this.#stopped?.then(this.#onOver);
    else this.#cancelLook = clock.schedule(LOOK_EVERY_MS, () => this.#look());
  }
}
