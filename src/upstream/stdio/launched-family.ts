import type { EventSink } from '../../observe/events/events.js';
import type { Logger } from '../../observe/logger.js';
import { endGroup } from '../../process/end-group.js';
import { familyVariable } from '../../process/environment.js';
import { endFamily, type FamilyEnd } from '../../process/family.js';
import type { GroupGuard } from '../../process/orphan-guard.js';
import type { SpawnedChild } from '../../process/spawn-child.js';
import type { StopLadder } from '../../supervision/launcher.js';
import type { Clock } from '../../timing/clock.js';
import type { DialTarget } from '../port.js';

export interface LaunchedFamilyOptions {
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'info' | 'error'>;
  readonly orphanGuard: GroupGuard;
  readonly events: Pick<EventSink, 'emit'>;
}

/** Limit of the processes outside of a server's group that the log names. */
const SHOWN_PIDS = 10;

/** All processes of one launch of a server, and their end: the process group, and those that bear the mark of the launch. */
export class LaunchedFamily {
  /** Variable for the environment of the first process. */
  readonly variable: Readonly<Record<string, string>>;
  readonly #options: LaunchedFamilyOptions;
  readonly #target: DialTarget;
  readonly #mark: string;
  #endsFamily = false;
  #isReported = false;

  /** Make this right before the launch. */
  constructor(options: LaunchedFamilyOptions, target: DialTarget) {
    this.#options = options;
    this.#target = target;
    this.#mark = options.orphanGuard.announce();
    this.variable = familyVariable(this.#mark);
  }

  /** Call this in the tick in which the first process was started, or in which that has failed. */
  started({ pid }: Pick<SpawnedChild, 'pid'>): void {
    const { orphanGuard } = this.#options;
    this.#endsFamily = pid !== undefined && !this.#target.spec.leaveRunning;
    if (pid !== undefined) orphanGuard.add(pid, this.#endsFamily ? this.#mark : undefined);
    if (!this.#endsFamily) orphanGuard.release(this.#mark);
  }

  /** Ends all processes. Resolves when none is left, or none that can be ended. Never rejects. */
  async end(child: SpawnedChild, ladder: StopLadder): Promise<void> {
    const { clock, logger, orphanGuard } = this.#options;
    const { spec } = this.#target;
    const startedAt = clock.now();
    // The next generation must not start while a process of this one may still run.
    while (!(await endGroup(child, ladder, clock)).gone) {
      logger.error({ server: spec.key, pid: child.pid }, 'a process of this server survives SIGKILL');
    }
    if (child.pid !== undefined) orphanGuard.remove(child.pid);
    if (this.#endsFamily) {
      const killAfterMs = familyKillDelay(ladder, clock.now() - startedAt);
      const familyEnd = await endFamily(this.#mark, killAfterMs, clock);
      orphanGuard.release(this.#mark);
      if (!this.#isReported) this.#report(familyEnd);
      this.#isReported = true;
    }
  }

  #report({ signaled, gone }: FamilyEnd): void {
    const { logger, events } = this.#options;
    const { spec, generation } = this.#target;
    if (signaled.length > 0) events.emit({ kind: 'server.left-processes', server: spec.key, count: signaled.length });
    const facts = { server: spec.key, generation, count: signaled.length, pids: signaled.slice(0, SHOWN_PIDS) };
    if (!gone) {
      const causes = 'they survive SIGKILL, start others faster than Trunkline finds them, or cannot be searched for';
      logger.error(facts, `processes outside of the server's group may still run: ${causes}`);
    } else if (signaled.length > 0) {
      logger.info(facts, "ended processes outside of the server's group; `leaveRunning: true` would keep them");
    }
  }
}

/** At least this long after SIGTERM comes SIGKILL, even when the group has taken all the time of the ladder. */
const MIN_KILL_DELAY_MS = 250;

/** Time from SIGTERM to SIGKILL for the family of a server whose group has ended: as in the ladder, or what is left of it. */
function familyKillDelay({ termAfterMs, killAfterMs }: StopLadder, elapsedMs: number): number {
  return Math.min(killAfterMs - termAfterMs, Math.max(killAfterMs - elapsedMs, MIN_KILL_DELAY_MS));
}
