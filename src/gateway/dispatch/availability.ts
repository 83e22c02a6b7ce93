import type { FailureReason } from '../../downstream/failure.js';
import type { ServerState } from '../../spec/server-state.js';
import type { UpstreamConnection } from '../../upstream/upstream-connection.js';

/**
 * All facts that the gateway derives from the state of one server, as one immutable snapshot. Each event makes the next
 * snapshot. No other object stores a part of a snapshot.
 *
 * With a `waitReason`, a call waits. Otherwise it is sent over the `connection`, or fails at once with the `failReason`.
 */
export interface Availability {
  readonly state: ServerState;
  /** The open connection. Calls wait all the same while the liveness probe runs; those in flight continue. */
  readonly connection: UpstreamConnection | undefined;
  /** Failure of a call that waits too long. `undefined` if calls do not wait. */
  readonly waitReason: FailureReason | undefined;
  /** Reason for which no connection will come. `undefined` if a connection is open or expected. */
  readonly failReason: FailureReason | undefined;
  /** Whether the first start has succeeded or failed. Lists that are merged earlier may lack this server's entries. */
  readonly isStartSettled: boolean;
  /** Whether a demand may start the server, or hurries its start. */
  readonly startsOnDemand: boolean;
  /** Generation of the latest connection, or `undefined` before the first one. */
  readonly generation: number | undefined;
  /** False while the server's package is being installed, and after its installation has failed. */
  readonly isInstalled: boolean;
  /** Failure reason of calls during the next start. `restarting` if a process was ready or has failed before. */
  readonly nextStart: 'starting' | 'restarting';
}

/** Availability before the first start. A server with a wrong configuration never starts. */
export function initialAvailability(isMisconfigured: boolean): Availability {
  return {
    state: 'stopped',
    connection: undefined,
    waitReason: isMisconfigured ? undefined : 'starting',
    failReason: isMisconfigured ? 'misconfigured' : undefined,
    isStartSettled: isMisconfigured,
    startsOnDemand: false,
    generation: undefined,
    isInstalled: true,
    nextStart: 'starting',
  };
}

export function afterState(before: Availability, state: ServerState): Availability {
  const isInstalled = state !== 'installing' && (before.isInstalled || state === 'starting');
  // A server that was idle starts on demand, which is not a restart.
  const thisStart = state === 'idle' ? 'starting' : before.nextStart;
  const connection = state === 'ready' || state === 'suspect' ? before.connection : undefined;
  const failReason = failReasonIn(state, isInstalled);
  const isSuspended = connection !== undefined && state === 'suspect';
  const isExpected = connection === undefined && failReason === undefined;
  const startReason = state === 'installing' ? 'installing' : thisStart;
  return {
    state,
    connection,
    waitReason: isSuspended ? 'unresponsive' : isExpected ? startReason : undefined,
    failReason,
    isStartSettled: before.isStartSettled || !UNSETTLED.has(state),
    startsOnDemand: STARTED_ON_DEMAND.has(state),
    generation: before.generation,
    isInstalled,
    nextStart: state === 'ready' || state === 'backoff' ? 'restarting' : thisStart,
  };
}

/** States within a first start. `stopping` is one, because a start may be ended to begin again in another era. */
const UNSETTLED: ReadonlySet<ServerState> = new Set(['starting', 'installing', 'stopping']);

const STARTED_ON_DEMAND: ReadonlySet<ServerState> = new Set(['idle', 'starting', 'stopping', 'parked', 'blocked']);

/** Availability after a connection opened. The supervisor reports the new state later. */
export function afterConnect(before: Availability, connection: UpstreamConnection): Availability {
  const { generation } = connection;
  return { ...before, connection, generation, waitReason: undefined, failReason: undefined };
}

/** Availability after this connection ended, before the supervisor reports the end. */
export function afterConnectionEnd(before: Availability, connection: UpstreamConnection): Availability {
  if (before.connection !== connection) return before;
  return { ...before, connection: undefined, waitReason: before.nextStart };
}

/** Availability after an idle stop. The next start is not a restart. */
export function afterIdleStop(before: Availability): Availability {
  return { ...before, nextStart: 'starting' };
}

export function afterClose(before: Availability): Availability {
  return { ...before, connection: undefined, waitReason: undefined, failReason: before.failReason ?? 'stopped' };
}

function failReasonIn(state: ServerState, isInstalled: boolean): FailureReason | undefined {
  if (state === 'offline') return 'unreachable';
  if (state === 'blocked') return 'login_required';
  if (state === 'parked' || state === 'stopped') return isInstalled ? state : 'not_installed';
  return undefined;
}
