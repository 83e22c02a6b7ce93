import type { Cancel, Clock } from '../../timing/clock.js';
import type { EndedBecause } from '../port.js';

export interface ClosedPipesOptions {
  readonly clock: Clock;
  /** The server has closed a pipe and runs on. Called once. */
  readonly onUseless: (because: EndedBecause) => void;
}

/**
 * The exit of a process is reported some milliseconds after its pipes are closed. This is half of the wait for it. In
 * two halves, because a timer that is late says nothing: the exit can be read between the two.
 */
const HALF_WAIT_MS = 100;

const USELESS = {
  stdin: 'it closed its stdin and ran on, so no request could reach it',
  stdout: 'it closed its stdout and ran on, so it could not answer',
} as const;

/**
 * Finds a server that closes its stdin or its stdout and goes on running: it can serve nothing anymore. A server that
 * exits closes its pipes, too, and then the exit says more.
 */
export class ClosedPipes {
  readonly #options: ClosedPipesOptions;
  #cancel: Cancel | undefined;
  #hasEnded = false;

  constructor(options: ClosedPipesOptions) {
    this.#options = options;
  }

  /** The server has closed this pipe. */
  closed(pipe: 'stdin' | 'stdout'): void {
    if (this.#hasEnded || this.#cancel !== undefined) return;
    const { clock, onUseless } = this.#options;
    const report = () => {
      this.end();
      onUseless(USELESS[pipe]);
    };
    this.#cancel = clock.schedule(HALF_WAIT_MS, () => {
      this.#cancel = clock.schedule(HALF_WAIT_MS, report);
    });
  }

  /** The process has exited, or is being ended. */
  end(): void {
    this.#hasEnded = true;
    this.#cancel?.();
  }
}
