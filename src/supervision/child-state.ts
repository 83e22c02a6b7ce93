import type { ChildExit } from './launcher.js';

/**
 * All that supervision knows about one child: the facts that outlive its phases, and the phase it is in.
 *
 * Times (`…At`, `…Since`) are milliseconds on the monotonic clock.
 */
export interface ChildState {
  /** Number of the latest launch, never reused. Whatever carries an older one comes too late to matter. */
  readonly generation: number;
  /** Failures since the child was last stable, or since an operator started it. */
  readonly consecutiveFailures: number;
  /** Installations in a row that failed. They are no failures of the child. */
  readonly installFailures: number;
  /** Launches that took the place of an earlier one, after a failure or because an operator asked. */
  readonly restarts: number;
  readonly lastExit: ExitRecord | undefined;
  readonly lastFailure: FailureRecord | undefined;
  readonly phase: ChildPhase;
}

export interface ExitRecord extends ChildExit {
  readonly at: number;
}

/** `code` and `signal` are null unless the failure was an exit. */
export interface FailureRecord extends ExitRecord {
  readonly reason: string;
  /** The machine lacked something, so the child is not to blame. */
  readonly isHostFault?: boolean;
}

export type ChildPhase =
  /** Nothing runs, nothing is planned. */
  | { readonly kind: 'stopped' }
  /** What it needs is being installed; nothing of it runs. */
  | { readonly kind: 'installing'; readonly since: number }
  /** Nothing runs because nobody needs it: launched on demand. */
  | { readonly kind: 'idle' }
  /** Launched, or waiting for a start slot as long as `spawnedAt` is absent. */
  | { readonly kind: 'starting'; readonly spawnedAt: number | undefined }
  | { readonly kind: 'ready'; readonly readySince: number }
  /** Was ready and has gone silent; whether it still serves is being found out. */
  | { readonly kind: 'suspect'; readonly readySince: number }
  /** The group is being ended on request. */
  | { readonly kind: 'stopping'; readonly next: AfterStop }
  /** Failed, will soon be launched again. */
  | { readonly kind: 'backoff'; readonly retryAt: number; readonly awaiting: Awaiting }
  /** Failed too often, or could not be installed: retried seldom, on demand, or by an operator. */
  | { readonly kind: 'parked'; readonly parkedAt: number; readonly retryAt: number; readonly awaiting: Awaiting };

/** What becomes of a child when its group has ended. To `wake` it is no restart: it is launched because it is needed. */
export type AfterStop = 'stopped' | 'idle' | 'launch' | 'wake';

/** What a failed child waits for before it is launched again: its time, the end of its old group, or both. */
export type Awaiting = 'both' | 'retry-time' | 'group-gone';

/** Something that happened to a child, or that was asked of it. */
export type ChildEvent =
  | { readonly kind: 'startRequested' | 'restartRequested' | 'stopRequested' | 'restRequested' | 'demanded' }
  /** The spec lacks nothing any more. */
  | { readonly kind: 'installed' }
  | { readonly kind: 'installFailed'; readonly reason: string }
  | {
      readonly kind:
        | 'spawned'
        | 'startBegan'
        | 'becameReady'
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

/** What the supervisor has to do, in the order given. */
export type ChildEffect =
  /** Install what is missing, and report how that went. To be given up when the child leaves the phase. */
  | { readonly kind: 'install' }
  | { readonly kind: 'launch'; readonly generation: number }
  /** Somebody waits for the launch: it is not to wait for those of others. */
  | { readonly kind: 'hurry' }
  /** End the group and report `groupGone`. Asked again while the group still ends, it may hasten the end. */
  | { readonly kind: 'endGroup'; readonly generation: number }
  /** Deliver `event` later. A phase has one timer at most; entering a phase of another kind cancels it. */
  | { readonly kind: 'setTimer'; readonly delayMs: number; readonly event: ChildEvent };

/** A child that was never started; its generations will be those after `generation`. */
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
