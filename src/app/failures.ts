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
  if (!isFailing(snapshot)) return [];
  // Reading the lines can complete a secret: colors and escapes are gone.
  return causeLines(log.linesOf(snapshot.state === 'starting' ? 'previous' : 'latest'), max).map(redact);
}

/** The cause as a sentence, for the failure of a call. `undefined` if it is not known, or if the server runs. */
export function describeCause(failed: Failed): string | undefined {
  const output = causeOfFailure(failed, MAX_LINES_IN_A_SENTENCE).map(printable).join(' / ');
  if (output !== '') return `Its output says: "${shortened(output)}".`;
  const { snapshot, redact } = failed;
  const reason = isFailing(snapshot) ? snapshot.lastFailure?.reason : undefined;
  if (reason === undefined || !BAD_ANSWER.test(reason)) return undefined;
  return `Its last start failed: ${shortened(printable(redact(reason)))}.`;
}

/** What the dialect reports about an answer to `initialize` that it cannot use. */
const BAD_ANSWER = /^initialize: the /;

function shortened(text: string): string {
  return text.length > MAX_SENTENCE_CHARACTERS ? `${text.slice(0, MAX_SENTENCE_CHARACTERS)}…` : text;
}

function isFailing({ state, consecutiveFailures }: ChildSnapshot): boolean {
  return state === 'backoff' || state === 'parked' || (state === 'starting' && consecutiveFailures > 0);
}

/** Logs each change of the state of a server; in trouble with the reason and the cause. */
export class StateLog {
  readonly #logger: Pick<Logger, 'info' | 'warn'>;
  /** The last logged state of each instance. */
  readonly #logged = new Map<string, ServerState>();

  constructor(logger: Pick<Logger, 'info' | 'warn'>) {
    this.#logger = logger;
  }

  changed(id: string, failed: Failed): void {
    const { state, generation, pid, lastFailure, restarts, missing } = failed.snapshot;
    const hasFailed = state === 'backoff' || state === 'parked';
    // While there is a pid, the last output of a failed server may not be read yet.
    if (this.#logged.get(id) === state || (hasFailed && pid !== undefined)) return;
    this.#logged.set(id, state);
    const facts = { server: id, state, generation, pid, restarts, ...(missing && { package: missing }) };
    if (!hasFailed && state !== 'suspect') {
      this.#logger.info(facts, `server ${state}`);
      return;
    }
    const { reason, code, signal } = (hasFailed ? lastFailure : undefined) ?? {};
    this.#logger.warn({ ...facts, reason, code, signal, cause: causeOfFailure(failed) }, `server ${state}`);
  }

  forget(id: string): void {
    this.#logged.delete(id);
  }
}
