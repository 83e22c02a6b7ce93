import type { ChildSpec } from './child-spec.js';
import type { ChildPhase, ChildState, ExitRecord, FailureRecord } from './child-state.js';
import type { Launched } from './launcher.js';

/** What the rest of the gateway may know about a child. Times are milliseconds on the monotonic clock. */
export interface ChildSnapshot {
  readonly state: ChildPhase['kind'];
  readonly generation: number;
  /** The leader's pid, which is the group's id too, as long as the group may exist. */
  readonly pid: number | undefined;
  readonly restarts: number;
  readonly consecutiveFailures: number;
  readonly lastExit: ExitRecord | undefined;
  readonly lastFailure: FailureRecord | undefined;
  readonly readySince: number | undefined;
  /** When a failed child is launched again by itself. */
  readonly retryAt: number | undefined;
  /** The package that is not there yet, as people know it. */
  readonly missing: string | undefined;
  readonly installingSince: number | undefined;
}

interface SupervisedChild {
  readonly spec: ChildSpec;
  readonly state: ChildState;
  readonly launched: Pick<Launched, 'pid'> | undefined;
}

/** How the child is at this moment. */
export function toSnapshot({ spec, state, launched }: SupervisedChild): ChildSnapshot {
  const { phase } = state;
  return {
    state: phase.kind,
    generation: state.generation,
    pid: launched?.pid,
    restarts: state.restarts,
    consecutiveFailures: state.consecutiveFailures,
    lastExit: state.lastExit,
    lastFailure: state.lastFailure,
    readySince: phase.kind === 'ready' || phase.kind === 'suspect' ? phase.readySince : undefined,
    retryAt: phase.kind === 'backoff' || phase.kind === 'parked' ? phase.retryAt : undefined,
    missing: spec.missing?.shown,
    installingSince: phase.kind === 'installing' ? phase.since : undefined,
  };
}
