import type { ChildExit, ChildSpec, Launched } from './launcher.js';

/**
 * Everything that supervision knows about one child: its current phase, and the facts that outlive a phase.
 *
 * Times (`…At`, `…Since`) are milliseconds on the monotonic clock.
 */
export interface ChildState {
  /** The number of the latest launch, never reused. An event with an older number is ignored. */
  readonly generation: number;
  /** Failures since the child was last stable, or since an operator started it. */
  readonly consecutiveFailures: number;
  /** Installations that failed in a row. They do not count as failures of the child. */
  readonly installFailures: number;
  /** Launches that replaced an earlier one, after a failure or at an operator's request. */
  readonly restarts: number;
  readonly lastExit: ExitRecord | undefined;
  /** The latest failure, until the child was stable. */
  readonly lastFailure: FailureRecord | undefined;
  readonly phase: ChildPhase;
}

interface ExitRecord extends ChildExit {
  readonly at: number;
}

/** `code` and `signal` are null unless the failure was an exit. */
interface FailureRecord extends ExitRecord {
  readonly reason: string;
  /** The host lacked a resource, so the child is not at fault. */
  readonly isHostFault?: boolean;
  /** The child ran and was unfit for use, so it was ended. The reason is a phrase with *it* as the subject. */
  readonly isUnfit?: boolean;
}

export type ChildPhase =
  /** Nothing runs, nothing is planned. */
  | { readonly kind: 'stopped' }
  /** Its package is being installed. Nothing runs. */
  | { readonly kind: 'installing'; readonly since: number }
  /** Nothing runs until a demand launches the child. */
  | { readonly kind: 'idle' }
  /** Launched, or waiting for a start slot while `spawnedAt` is absent. */
  | { readonly kind: 'starting'; readonly spawnedAt: number | undefined }
  | { readonly kind: 'ready'; readonly readySince: number }
  /** Was ready and is silent; a liveness probe runs. */
  | { readonly kind: 'suspect'; readonly readySince: number }
  /** The group is being ended on request. */
  | { readonly kind: 'stopping'; readonly next: AfterStop }
  /** Failed, and will soon be launched again. */
  | { readonly kind: 'backoff'; readonly retryAt: number; readonly awaiting: Awaiting }
  /** Failed too often, or could not be installed. Retried seldom, on demand, or by an operator. */
  | { readonly kind: 'parked'; readonly parkedAt: number; readonly retryAt: number; readonly awaiting: Awaiting };

/** Next step when the group has ended. `wake` launches the child at once and does not count as a restart. */
export type AfterStop = 'stopped' | 'idle' | 'launch' | 'wake';

/** Condition for the next launch of a failed child: its delay, the end of its old group, or both. */
export type Awaiting = 'both' | 'retry-time' | 'group-gone';

/** Something that happened to a child, or a request about it. */
export type ChildEvent =
  | { readonly kind: 'startRequested' | 'restartRequested' | 'stopRequested' | 'restRequested' | 'demanded' }
  /** The package is installed; the spec is complete. */
  | { readonly kind: 'installed' }
  | { readonly kind: 'installFailed'; readonly reason: string }
  | {
      readonly kind:
        | 'spawned'
        | 'startBegan'
        | 'startAnswered'
        | 'becameReady'
        | 'startRefused'
        | 'suspected'
        | 'cleared'
        | 'startTimedOut'
        | 'stableReached'
        | 'groupGone'
        | 'retryDue';
      readonly generation: number;
    }
  | {
      readonly kind: 'startFailed';
      readonly generation: number;
      readonly reason: string;
      readonly hostFault: boolean;
    }
  | { readonly kind: 'recycleRequested'; readonly generation: number; readonly reason: string }
  | { readonly kind: 'exited'; readonly generation: number; readonly exit: ChildExit };

/** Work for the supervisor, in the order given. */
export type ChildEffect =
  /** Install the missing package and report the outcome. Cancelled when the child leaves the phase. */
  | { readonly kind: 'install' }
  | { readonly kind: 'launch'; readonly generation: number }
  /** A caller waits for the launch, so it does not wait for a start slot. */
  | { readonly kind: 'hurry' }
  /** End the group and report `groupGone`. A second request may shorten the time that the end takes. */
  | { readonly kind: 'endGroup'; readonly generation: number }
  /** Deliver `event` later. A phase has at most one timer, and a phase of another kind cancels it. */
  | { readonly kind: 'setTimer'; readonly delayMs: number; readonly event: ChildEvent }
  /** Cancel the timer of the phase. */
  | { readonly kind: 'clearTimer' };

/** A child that was never started. Its first generation is the one after `generation`. */
export function initialState(generation = 0): ChildState {
  return {
    generation,
    consecutiveFailures: 0,
    installFailures: 0,
    restarts: 0,
    lastExit: undefined,
    lastFailure: undefined,
    phase: { kind: 'stopped' },
  };
}

/** The public facts about a child. Times are milliseconds on the monotonic clock. */
export interface ChildSnapshot
  extends Pick<ChildState, 'generation' | 'restarts' | 'consecutiveFailures' | 'lastExit' | 'lastFailure'> {
  readonly state: ChildPhase['kind'];
  /** The pid of the group's leader, which is also the group's id. Present as long as the group may exist. */
  readonly pid: number | undefined;
  readonly readySince: number | undefined;
  /** Time of the next launch of a failed child, without a demand. */
  readonly retryAt: number | undefined;
  /** The package that is not installed yet, as the configuration writes it. */
  readonly missing: string | undefined;
  readonly installingSince: number | undefined;
}

interface SupervisedChild {
  readonly spec: ChildSpec;
  readonly state: ChildState;
  readonly launched: Pick<Launched, 'pid'> | undefined;
}

/** The facts about a child at this moment. */
export function toSnapshot({ spec, state, launched }: SupervisedChild): ChildSnapshot {
  const { phase, installFailures: _, ...facts } = state;
  return {
    ...facts,
    state: phase.kind,
    pid: launched?.pid,
    readySince: phase.kind === 'ready' || phase.kind === 'suspect' ? phase.readySince : undefined,
    retryAt: phase.kind === 'backoff' || phase.kind === 'parked' ? phase.retryAt : undefined,
    missing: spec.missing?.shown,
    installingSince: phase.kind === 'installing' ? phase.since : undefined,
  };
}
