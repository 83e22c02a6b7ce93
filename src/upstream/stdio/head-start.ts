import { holdUnread } from '../../io/streams/read-into.js';
import { endGroup } from '../../process/end-group.js';
import { environmentOf, familyVariable } from '../../process/environment.js';
import { endFamily } from '../../process/family.js';
import type { GroupGuard } from '../../process/orphan-guard.js';
import { type SpawnError, type SpawnedChild, type SpawnListeners, spawnChild } from '../../process/spawn-child.js';
import type { ChildExit, ChildSpec, StopLadder } from '../../supervision/launcher.js';
import type { Clock } from '../../timing/clock.js';

export interface HeadStartOptions {
  readonly guard: GroupGuard;
  readonly clock: Clock;
  /** The gateway's own environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A process that runs already, and that the guard knows. */
export interface StartedChild {
  readonly mark: string;
  readonly isGuarded: true;
  /** Like `spawnChild`: the listeners are called later, also for what has happened before. Call it once. */
  connect(listeners: SpawnListeners): SpawnedChild;
}

/**
 * The processes of the first servers, spawned while the gateway is still loaded, so that they boot meanwhile. The dialer
 * takes each of them in place of a process of its own. Until then, nothing is read from them and nothing written.
 */
export class HeadStart {
  readonly #options: HeadStartOptions;
  readonly #waiting = new Map<string, WaitingChild>();

  constructor(options: HeadStartOptions) {
    this.#options = options;
  }

  /** Spawns the process of a server. Never throws. */
  spawn(spec: ChildSpec): void {
    const { guard, environment } = this.#options;
    const mark = guard.announce();
    const env = { ...environmentOf(spec, environment), ...familyVariable(mark) };
    const child = new WaitingChild(spec, mark, env);
    if (child.pid !== undefined) guard.add(child.pid, spec.leaveRunning ? undefined : mark);
    if (child.pid === undefined || spec.leaveRunning) guard.release(mark);
    this.#waiting.set(spec.key, child);
  }

  /** The process of this server, if there is one that was started just like this. */
  take(spec: ChildSpec): StartedChild | undefined {
    const child = this.#waiting.get(spec.key);
    if (child === undefined || !child.isOf(spec)) return undefined;
    this.#waiting.delete(spec.key);
    return child;
  }

  /** Ends the processes that no server has taken. Never rejects. */
  async close(ladder: StopLadder): Promise<void> {
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    await Promise.all(left.map((child) => child.end(ladder, this.#options)));
  }
}

class WaitingChild implements StartedChild {
  readonly mark: string;
  readonly isGuarded = true;
  readonly #spec: ChildSpec;
  readonly #child: SpawnedChild;
  #listeners: SpawnListeners | undefined;
  /** Events from before the listener was there. */
  #outcome: ((listeners: SpawnListeners) => void) | undefined;

  constructor(spec: ChildSpec, mark: string, env: Record<string, string>) {
    this.mark = mark;
    this.#spec = spec;
    const child = spawnChild(
      { ...spec, env },
      {
        onSpawnError: (error: SpawnError) => this.#report((listeners) => listeners.onSpawnError(error)),
        onExit: (exit: ChildExit) => this.#report((listeners) => listeners.onExit(exit)),
      },
    );
    // Node throws away the unread output of an ended process.
    this.#child = { ...child, stdout: holdUnread(child.stdout), stderr: holdUnread(child.stderr) };
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The arguments and variables of an unchanged entry are the same objects. */
  isOf({ command, args, cwd, env }: ChildSpec): boolean {
    const spec = this.#spec;
    return command === spec.command && args === spec.args && cwd === spec.cwd && env === spec.env;
  }

  connect(listeners: SpawnListeners): SpawnedChild {
    this.#listeners = listeners;
    const outcome = this.#outcome;
    if (outcome !== undefined) queueMicrotask(() => outcome(listeners));
    return this.#child;
  }

  async end(ladder: StopLadder, { guard, clock }: HeadStartOptions): Promise<void> {
    await endGroup(this.#child, ladder, clock);
    if (this.pid !== undefined) guard.remove(this.pid);
    if (!this.#spec.leaveRunning) await endFamily(this.mark, ladder.killAfterMs - ladder.termAfterMs, clock);
    guard.release(this.mark);
  }

  #report(outcome: (listeners: SpawnListeners) => void): void {
    if (this.#listeners === undefined) this.#outcome = outcome;
    else outcome(this.#listeners);
  }
}
