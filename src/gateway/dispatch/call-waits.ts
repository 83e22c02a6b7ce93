import type { FailureReason } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { Clock } from '../../timing/clock.js';
import { Deadlines, type Due } from '../../timing/deadlines.js';

export interface WaitOptions {
  readonly exchange: Exchange;
  /** Longest wait, in milliseconds. */
  readonly forMs: number;
  /** A process is there. */
  readonly proceed: () => void;
  /** Answers the call: with why no process is to be expected, or because it has waited too long. */
  readonly fail: (absence?: FailureReason) => void;
  /** Whether an earlier process may have seen the call, which is no business of another server's then. */
  readonly wasSent?: boolean;
  /** Gives back what the call holds while it waits. */
  readonly release: () => void;
}

/** A call that waits for its turn, or for a process. */
interface Wait extends Due, WaitOptions {}

export interface CallWaitsOptions {
  readonly clock: Clock;
  readonly onCancelled: () => void;
}

/** Calls that wait for their turn or, having it, for a process; in order of arrival. Each wait has an end. */
export class CallWaits {
  readonly #options: CallWaitsOptions;
  readonly #waiting = new Set<Wait>();
  readonly #deadlines: Deadlines<Wait>;

  constructor(options: CallWaitsOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.clock, (wait) => this.#giveUp(wait));
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Waits until the function that is returned is called, the wait is too long, there is nothing to wait for, or the
   * client gives up.
   */
  begin(options: WaitOptions): () => void {
    const wait: Wait = { ...options, dueAt: this.#options.clock.now() + options.forMs };
    this.#waiting.add(wait);
    this.#deadlines.watch(wait);
    wait.exchange.onCancel(() => {
      this.#end(wait);
      this.#options.onCancelled();
      wait.release();
    });
    return () => this.#end(wait);
  }

  /** A process is there. */
  proceed(): void {
    for (const wait of [...this.#waiting]) wait.proceed();
  }

  /** No process is to be expected. */
  giveUp(absence: FailureReason): void {
    for (const wait of [...this.#waiting]) this.#giveUp(wait, absence);
  }

  /** What was never sent is waited for elsewhere; the rest is given up. */
  handOver(): Exchange[] {
    const handed: Exchange[] = [];
    for (const wait of [...this.#waiting]) {
      if (wait.wasSent === true) {
        this.#giveUp(wait);
        continue;
      }
      this.#end(wait);
      wait.release();
      handed.push(wait.exchange);
    }
    return handed;
  }

  close(): void {
    this.#deadlines.close();
  }

  #giveUp(wait: Wait, absence?: FailureReason): void {
    this.#end(wait);
    wait.fail(absence);
    wait.release();
  }

  #end(wait: Wait): void {
    this.#waiting.delete(wait);
    this.#deadlines.unwatch(wait);
  }
}
