import { claimSuccessor, isHubFailing } from '../claim.js';
import { latestHub } from '../hub-folder.js';
import type { Hello, Refusal } from '../wire.js';
import { type Attempt, attachTo, type HubConnection } from './hub-connection.js';

export interface FindHubOptions {
  /** The folder of the hub. */
  readonly folder: string;
  readonly hello: Omit<Hello, 'wire' | 'token'>;
  /**
   * Starts the process of a hub with the claimed number on this listener. Must not return to the event loop before the
   * process has the listener, since this process would accept the connections.
   */
  readonly start: (claim: NonNullable<Awaited<ReturnType<typeof claimSuccessor>>>) => void;
}

export type FoundHub =
  | { readonly kind: 'attached'; readonly connection: HubConnection }
  /** No hub can be had. `because` is a sentence without a period. */
  | { readonly kind: 'none'; readonly because: string };

/** Each attempt ends with a hub that serves, or with one that others start or that is known to be dead. */
const MAX_ATTEMPTS = 50;
/** A hub that has closed a connection is about to close its socket, too. */
const RETRY_MS = 10;

/** Attaches to the hub of this folder, and starts one if none runs. Never rejects. */
export async function findHub({ folder, hello, start }: FindHubOptions): Promise<FoundHub> {
  try {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const latest = latestHub(folder);
      const attempt: Attempt = latest === 0 ? { kind: 'dead' } : await attachTo(folder, latest, hello);
      if (attempt.kind === 'attached') return attempt;
      const isEnding = attempt.kind === 'refused' && attempt.because === 'ending';
      if (attempt.kind === 'refused' && attempt.because !== 'ending')
        return none(`the shared process did not take the client: ${whyRefused(attempt.because)}`);
      if (attempt.kind === 'silent') return none(silence(attempt.afterMs));
      if (isHubFailing(folder, Date.now())) return none(FAILING);
      if (attempt.kind !== 'dead' && !isEnding) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        continue;
      }
      const claim = await claimSuccessor(folder, latest);
      if (claim !== undefined) start(claim);
    }
    return none('the shared process ended each time before it served this client');
  } catch (error) {
    return none(`the shared process cannot be started (${error instanceof Error ? error.message : String(error)})`);
  }
}

function none(because: string): FoundHub {
  return { kind: 'none', because };
}

const WHY_REFUSED: Readonly<Record<Refusal, string>> = {
  off: 'the configuration does not say `hub: auto`',
  full: 'it has as many clients as it may have',
  ending: 'it is ending',
  token: 'it does not accept the token of its own file',
  malformed: 'it does not understand this version',
};

/** Why a hub refuses a client; *it* is the hub. A hub of a later version may have further reasons. */
export function whyRefused(because: string): string {
  const reasons: Readonly<Record<string, string | undefined>> = WHY_REFUSED;
  return reasons[because] ?? 'its version has a reason that this version does not know';
}

const FAILING =
  'the shared process has failed three times within a minute before it served anybody; its log says why: `trunkline logs`';

function silence(afterMs: number): string {
  return `the shared process runs but did not answer within ${afterMs / 1_000} s; if it was suspended, resume it, or end it with \`trunkline hub stop\``;
}
