import type { ServerState } from '../gateway/dispatch/availability.js';
import { printable } from '../json/printable.js';
import { causeLines } from '../observe/cause-lines.js';
import type { ChildLog } from '../observe/child-log.js';
import type { Logger } from '../observe/logger.js';
import type { Redact } from '../observe/redact.js';
import type { ChildSnapshot } from '../supervision/child-state.js';

const MAX_LINES = 5;
const MAX_LINES_IN_A_SENTENCE = 2;
const MAX_SENTENCE_CHARACTERS = 400;

/** The failure of a server: its state, its output, and what removes secrets from it. */
export interface Failed {
  readonly snapshot: ChildSnapshot;
  readonly log: Pick<ChildLog, 'linesOf'>;
  readonly redact: Redact;
}

/** The lines that name the cause of the latest failure. Empty while the server runs, or if nothing failed. */
export function causeOfFailure({ snapshot, log, redact }: Failed, max = MAX_LINES): readonly string[] {
  const { state, consecutiveFailures } = snapshot;
  const isRetried = state === 'starting' && consecutiveFailures > 0;
  if (!hasFailed(state) && !isRetried) return [];
  // Reading the lines can complete a secret: colors and escapes are gone.
  return causeLines(log.linesOf(hasFailed(state) ? 'latest' : 'previous'), max).map(redact);
}

/** The cause as one line, for the failure of a call. */
export function causeInOneLine(failed: Failed): string | undefined {
  const text = causeOfFailure(failed, MAX_LINES_IN_A_SENTENCE).map(printable).join(' / ');
  if (text === '') return undefined;
  return text.length > MAX_SENTENCE_CHARACTERS ? `${text.slice(0, MAX_SENTENCE_CHARACTERS)}…` : text;
}

/** Logs each change of the state of a server; in trouble with the reason and the cause. */
export class StateLog {
  readonly #logger: Pick<Logger, 'info' | 'warn'>;
  /** The last logged state of each instance. */
  readonly #logged = new Map<string, ServerState>();
  /** Failures whose last output was not read yet when they were reported. */
  readonly #unread = new Map<string, ChildSnapshot>();

  constructor(logger: Pick<Logger, 'info' | 'warn'>) {
    this.#logger = logger;
  }

  changed(id: string, failed: Failed): void {
    const { state, pid } = failed.snapshot;
    const unread = this.#unread.get(id);
    if (this.#logged.get(id) === state && unread === undefined) return;
    // While there is a pid, the last output of a failed server may not be read yet.
    if (hasFailed(state) && pid !== undefined) {
      this.#unread.set(id, failed.snapshot);
      return;
    }
    // The end of its processes can take longer than the delay of the restart.
    this.#unread.delete(id);
    if (unread !== undefined && !hasFailed(state)) {
      // The next attempt to run may or may not have begun its own output.
      const latest = causeOfFailure({ ...failed, snapshot: unread });
      this.#log(id, { ...unread, pid: undefined }, latest.length > 0 ? latest : causeOfFailure(failed));
    }
    this.#logged.set(id, state);
    this.#log(id, failed.snapshot, hasFailed(state) || state === 'suspect' ? causeOfFailure(failed) : []);
  }

  #log(id: string, snapshot: ChildSnapshot, cause: readonly string[]): void {
    const { state, generation, pid, lastFailure, restarts, missing } = snapshot;
    const facts = { server: id, state, generation, pid, restarts, ...(missing && { package: missing }) };
    if (!hasFailed(state) && state !== 'suspect') {
      this.#logger.info(facts, `server ${state}`);
      return;
    }
    const { reason, code, signal } = (hasFailed(state) ? lastFailure : undefined) ?? {};
    this.#logger.warn({ ...facts, reason, code, signal, cause }, `server ${state}`);
  }

  forget(id: string): void {
    this.#logged.delete(id);
    this.#unread.delete(id);
  }
}

function hasFailed(state: ServerState): boolean {
  return state === 'backoff' || state === 'parked';
}
