import type { RunProcess } from '../state/run-file.js';
import type { Clock } from '../timing/clock.js';
import { findFamily } from './find-family.js';
import { identify } from './process-identity.js';

export interface FamilyEnd {
  /** The processes that were told to end. */
  readonly signaled: readonly number[];
  /** False when processes survived SIGKILL, start others faster than they are found, or could not be searched for. */
  readonly gone: boolean;
}

/** How long processes are searched for after the first SIGKILL. */
const CONFIRM_MS = 2_000;
/** Failed searches in a row after which the processes are given up. */
const MAX_FAILURES = 4;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

const endings = new Map<string, FamilyEnding>();

/**
 * Ends the processes that bear a mark: those that a server has started, also in groups and sessions of their own. Call this when the group of the server has ended, so that a server can end its processes itself.
 * Sends SIGTERM at once and SIGKILL after `killAfterMs`; searches again until no process is found.
 *
 * A second call for the same mark joins the first one, and can bring SIGKILL forward. Never rejects.
 */
export function endFamily(mark: string, killAfterMs: number, clock: Clock): Promise<FamilyEnd> {
  let ending = endings.get(mark);
  if (ending === undefined) {
    ending = new FamilyEnding(mark, killAfterMs, clock);
    endings.set(mark, ending);
    void ending.result.then(() => endings.delete(mark));
  } else {
    ending.hasten(killAfterMs);
  }
  return ending.result;
}

class FamilyEnding {
  readonly result: Promise<FamilyEnd>;
  readonly #mark: string;
  readonly #clock: Clock;
  #killAt: number;
  #firstKillAt: number | undefined;
  readonly #signaled = new Map<number, RunProcess>();
  #wake: () => void = () => {};

  constructor(mark: string, killAfterMs: number, clock: Clock) {
    this.#mark = mark;
    this.#clock = clock;
    this.#killAt = clock.now() + killAfterMs;
    this.result = this.#run();
  }

  hasten(killAfterMs: number): void {
    this.#killAt = Math.min(this.#killAt, this.#clock.now() + killAfterMs);
    this.#wake();
  }

  async #run(): Promise<FamilyEnd> {
    let pauseMs = FIRST_PAUSE_MS;
    for (;;) {
      const members = await this.#find();
      const signaled = () => [...this.#signaled.keys()];
      if (members === undefined) return { signaled: signaled(), gone: false };
      if (members.length === 0) return { signaled: signaled(), gone: true };
      const now = this.#clock.now();
      const isKilling = now >= this.#killAt;
      if (isKilling) this.#firstKillAt ??= now;
      if (now >= (this.#firstKillAt ?? now) + CONFIRM_MS) return { signaled: signaled(), gone: false };
      for (const member of members) await this.#signal(member, isKilling ? 'SIGKILL' : 'SIGTERM');
      await this.#pause(isKilling ? FIRST_PAUSE_MS : Math.min(pauseMs, this.#killAt - now));
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Undefined when the search fails again and again: without file descriptors, for example, nothing can be read. */
  async #find(): Promise<readonly RunProcess[] | undefined> {
    for (let failures = 0; failures < MAX_FAILURES; failures += 1) {
      const found = await findFamily(this.#mark).catch(() => undefined);
      if (found !== undefined) return found;
      await this.#pause(FIRST_PAUSE_MS * 2 ** failures);
    }
    return undefined;
  }

  async #signal(member: RunProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { pid, startTime } = member;
    if (signal === 'SIGTERM' && this.#signaled.get(pid)?.startTime === startTime) return;
    if ((await identify(pid).catch(() => undefined))?.startTime !== startTime) return;
    this.#signaled.set(pid, member);
    try {
      process.kill(pid, signal);
    } catch {
      // ESRCH: it has ended. EPERM: it belongs to another user now. The next search tells.
    }
  }

  /** Waits; ends early when the ladder gets shorter. */
  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(delayMs, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
