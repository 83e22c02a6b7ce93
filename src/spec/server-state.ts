import type { ChildExit, LaunchFault } from './launch.js';

/**
 * State of one child in supervision: its current phase, and the facts that outlive a phase.
 *
 * Times (`…At`, `…Since`) are milliseconds on the monotonic clock.
 */
export interface ChildState extends ChildRecord {
  /** Installations that failed in a row. They do not count as failures of the child. */
  readonly installFailures: number;
  /** Consecutive attempts that met a remote server in trouble, and sessions that it forgot. They are no failures of the child. */
  readonly setbacks: number;
  /** False if the latest launch failed before the child was ready, through no fault of the child, such as a fault of the network. */
  readonly countsAsRestart: boolean;
  readonly phase: ChildPhase;
}

interface ChildRecord {
  /** The number of the latest launch, never reused. An event with an older number is ignored. */
  readonly generation: number;
  /** Failures since the child was last stable, or since an operator started it. */
  readonly consecutiveFailures: number;
  /** Launches that replaced an earlier process or connection, after a failure or at an operator's request. */
  readonly restarts: number;
  readonly lastExit: ExitRecord | undefined;
  /** The latest failure. Cleared when the child is stable. */
  readonly lastFailure: FailureRecord | undefined;
}

export interface ExitRecord extends ChildExit {
  readonly at: number;
}

/** `code` and `signal` are null unless the failure was an exit. */
export interface FailureRecord extends ExitRecord, ChildFailure {}

export interface ChildFailure {
  readonly reason: string;
  /** Absent if the child is at fault. */
  readonly fault?: Exclude<LaunchFault, 'server'>;
  /** Whether the child ran and was ended as unfit for use. Then `reason` is a phrase with *it* as the subject. */
  readonly isUnfit?: boolean;
}

export type ChildPhase =
  /** No process, and no plan to launch one. */
  | { readonly kind: 'stopped' }
  /** Its package is being installed. No process. */
  | { readonly kind: 'installing'; readonly since: number }
  /** No process until a demand launches the child. */
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
  /** The network does not reach the child, or the child is in trouble. Retried without limit. */
  | { readonly kind: 'offline'; readonly retryAt: number; readonly awaiting: Awaiting }
  /** The child does not accept the credentials. Retried when they change, on demand once a minute at most, or by an operator. */
  | { readonly kind: 'blocked'; readonly enteredAt: number; readonly awaiting: Awaiting }
  /** Failed too often, or could not be installed. Retried after a long delay, on demand, or by an operator. */
  | { readonly kind: 'parked'; readonly enteredAt: number; readonly retryAt: number; readonly awaiting: Awaiting };

/** Next step when the group has ended. `wake` launches the child at once and does not count as a restart. */
export type AfterStop = 'stopped' | 'idle' | 'launch' | 'wake';

/** Condition for the next launch of a failed child: its delay, the end of its old group, or both. */
export type Awaiting = 'both' | 'retry-time' | 'group-gone';

export type ServerState = ChildPhase['kind'];

/** The public facts about a child. Times are milliseconds on the monotonic clock. */
export interface ChildSnapshot extends ChildRecord {
  readonly state: ServerState;
  /** The pid of the group's leader, which is also the group's id. Present as long as the group may exist. */
  readonly pid: number | undefined;
  readonly readySince: number | undefined;
  /** Time of the next launch of a failed child, without a demand. */
  readonly retryAt: number | undefined;
  /** The package that is not installed yet, as the configuration writes it. */
  readonly missing: string | undefined;
  readonly installingSince: number | undefined;
}
