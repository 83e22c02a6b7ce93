import type { ChildSpec } from './child-spec.js';
import type { ChildPhase, ChildState, ExitRecord, FailureRecord } from './child-state.js';
import type { Launched } from './launcher.js';

/** The public facts about a child. Times are milliseconds on the monotonic clock. */
export interface ChildSnapshot {
  readonly state: ChildPhase['kind'];
  readonly generation: number;
  /** The pid of the group's leader, which is also the group's id. Present as long as the group may exist. */
  readonly pid: number | undefined;
  readonly restarts: number;
  readonly consecutiveFailures: number;
  readonly lastExit: ExitRecord | undefined;
  readonly lastFailure: FailureRecord | undefined;
  readonly readySince: number | undefined;
  /** When a failed child is launched again without a demand. */
  readonly retryAt: number | undefined;
  /** The package that is not installed yet, as the configuration spells it. */
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
