import type { ChildSpec, ChildTimeouts } from './child-spec.js';

/**
 * How the supervisor brings a child to life: spawns it, shakes hands, and says how that went.
 *
 * `launch` returns at once and never throws; a spawn that fails is reported through `events.failed`.
 */
export interface Launcher {
  launch(spec: ChildSpec, generation: number, events: LaunchEvents): Launched;
}

/** What becomes of one launch. Events may come in any order, twice or late: what no longer matters is ignored. */
export interface LaunchEvents {
  /** The start has begun in earnest: how long it takes counts from now. Before, the child may wait for somebody to serve. */
  began(): void;
  /** The child can be called. */
  ready(): void;
  failed(failure: LaunchFailure): void;
  /** The child that was ready has gone silent, and is being asked whether it still serves. */
  suspected(): void;
  /** It does. */
  cleared(): void;
  /** The child is of no use as it is, and has to be started anew. */
  unfit(reason: string): void;
  /** The group's leader ended; other members may live on. */
  exited(exit: ChildExit): void;
}

interface LaunchFailure {
  readonly reason: string;
  /** The host lacked something (descriptors, processes), so the child is not to blame. */
  readonly hostFault?: boolean;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A process group from its launch until it is gone. */
export interface Launched {
  /** The leader's pid, which is the group's id too; absent when nothing was spawned. */
  readonly pid: number | undefined;
  /**
   * Ends the whole group; resolves once no member is left, and never rejects. It may be called again, and a shorter
   * ladder then hastens the end.
   */
  end(ladder: StopLadder): Promise<void>;
}

/** The steps by which a group is ended, in milliseconds counted from the moment its stdin is closed. */
export interface StopLadder {
  readonly termAfterMs: number;
  readonly killAfterMs: number;
}

/** The ladder for ending one child while the gateway runs on. */
export function toStopLadder({ stopGraceMs, killAfterMs }: ChildTimeouts): StopLadder {
  return { termAfterMs: stopGraceMs, killAfterMs: stopGraceMs + killAfterMs };
}
