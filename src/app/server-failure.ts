import type { WhyDown } from '../downstream/failure.js';
import { causeLines } from '../host/observe/cause-lines.js';
import type { Logger } from '../host/observe/logger.js';
import type { Redact } from '../host/observe/redact.js';
import type { ChildSnapshot, ServerState } from '../spec/server-state.js';
import { printable } from '../wire/json/printable.js';

const MAX_LINES = 5;
const MAX_LINES_IN_A_SENTENCE = 2;
const MAX_SENTENCE_CHARACTERS = 400;

/** The failure of a server: its state, its output, and the function that removes secrets from texts. */
export interface Failed {
  readonly snapshot: ChildSnapshot;
  readonly log: { linesOf(attempt: 'latest' | 'previous'): readonly string[] };
  readonly redact: Redact;
}

/** The lines that name the cause of the latest failure. Empty while the server runs, or if nothing failed. */
export function causeOfFailure({ snapshot, log, redact }: Failed, max = MAX_LINES): readonly string[] {
  if (!isFailing(snapshot)) return [];
  const { state, lastFailure } = snapshot;
  const lines = log.linesOf(state === 'starting' ? 'previous' : 'latest');
  // Trunkline adds a line with the reason to the output, which would repeat the reason.
  const reason = lastFailure?.isUnfit === true ? lastFailure.reason : undefined;
  const output = reason === undefined ? lines : lines.filter((line) => !line.endsWith(reason));
  // Secrets are removed again, because a secret can become visible when `causeLines` removes colors and escapes.
  return causeLines(output, max).map(redact);
}

/** The cause of a server's failure, for the failure of a call. */
export function whyDown(failed: Failed, isRemote = false): WhyDown {
  const { lastFailure, state } = failed.snapshot;
  // A server with a program that is not reachable runs at another gateway.
  if (!isRemote && state !== 'offline') {
    const because = lastFailure?.isUnfit === true ? lastFailure.reason : undefined;
    return { cause: describeCause(failed), because: because && printable(failed.redact(because)) };
  }
  const because = lastFailure && shortened(printable(failed.redact(clauseOf(lastFailure.reason))));
  return { because, ...(state === 'offline' && lastFailure?.fault === 'trouble' && { reason: 'unavailable' }) };
}

/** The reason of a failed connection as a clause with *it* as the subject. */
function clauseOf(reason: string): string {
  if (reason === 'start-timeout' || reason.endsWith(': timeout')) return 'it did not answer the handshake in time';
  if (reason === 'exited' || reason.endsWith(': exited')) return 'its connection ended';
  return reason.replace(/^(?:initialize|server\/discover): /, '');
}

/** The cause as a sentence. `undefined` if the cause is not known, or if the server runs. */
function describeCause(failed: Failed): string | undefined {
  const output = causeOfFailure(failed, MAX_LINES_IN_A_SENTENCE).map(printable).join(' / ');
  if (output !== '') return `Its output says: "${shortened(output)}".`;
  const { snapshot, redact } = failed;
  const reason = isFailing(snapshot) ? snapshot.lastFailure?.reason : undefined;
  if (reason === undefined || !TOLD.test(reason)) return undefined;
  return `Its last start failed: ${shortened(printable(redact(reason)))}.`;
}

/** Reasons that say more than the state: an unusable answer to `initialize` or `server/discover`, and the lack of a sandbox. */
const TOLD = /^(?:initialize|server\/discover): the |\(TL-SANDBOX-[A-Z]+\)$/;

function shortened(text: string): string {
  return text.length > MAX_SENTENCE_CHARACTERS ? `${text.slice(0, MAX_SENTENCE_CHARACTERS)}…` : text;
}

function isFailing({ state, consecutiveFailures }: ChildSnapshot): boolean {
  return state === 'backoff' || state === 'parked' || (state === 'starting' && consecutiveFailures > 0);
}

/** Logs each change of the state of a server; a failure with its reason and cause. */
export class StateLog {
  readonly #logger: Logger;
  /** The last logged state of each instance. */
  readonly #logged = new Map<string, ServerState>();
  /** Failures that are not logged yet, because the last output may not be read. */
  readonly #unlogged = new Map<string, ChildSnapshot>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  changed(id: string, failed: Failed): void {
    const { snapshot } = failed;
    const hasFailed = snapshot.state === 'backoff' || snapshot.state === 'parked';
    // A failed server that still has a pid may have unread output.
    if (hasFailed && snapshot.pid !== undefined) {
      this.#unlogged.set(id, snapshot);
      return;
    }
    // If the end of the process took longer than the delay, the next start follows at once, so the failure is logged now.
    const earlier = this.#unlogged.get(id);
    this.#unlogged.delete(id);
    if (earlier !== undefined && !hasFailed) this.#log(id, { ...failed, snapshot: { ...earlier, pid: undefined } });
    this.#log(id, failed);
  }

  #log(id: string, failed: Failed): void {
    const { state, generation, pid, lastFailure, restarts, missing } = failed.snapshot;
    const logged = this.#logged.get(id);
    // Trunkline tries to reach a server again and again, 1.5 s to 30 s apart, so one line is for all attempts.
    if (logged === state || (logged === 'offline' && state === 'starting')) return;
    const hasFailed = state === 'backoff' || state === 'parked' || state === 'offline' || state === 'blocked';
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
    this.#unlogged.delete(id);
  }
}
