import type { FailureReason } from '../../downstream/failure.js';
import type { ServerState } from '../../spec/server-state.js';
import type { UpstreamConnection } from '../../upstream/port.js';

/** Whether and when a call to the server can be sent. */
export type Reachability =
  /** Calls are sent over this connection. */
  | { readonly kind: 'connected'; readonly connection: UpstreamConnection }
  /** The liveness probe runs. Calls in flight continue, new calls wait. */
  | { readonly kind: 'suspended'; readonly connection: UpstreamConnection }
  /** A connection will come. Calls wait for it, and fail with the reason if it takes too long. */
  | { readonly kind: 'expected'; readonly reason: 'starting' | 'restarting' | 'installing' }
  /** No connection will come, so calls fail at once. */
  | { readonly kind: 'unavailable'; readonly reason: FailureReason };

/**
 * Everything that the gateway derives from the state of one server, as one immutable snapshot. Each event makes the next
 * snapshot. No other object stores a part of a snapshot.
 */
export interface Availability {
  readonly state: ServerState;
  readonly reach: Reachability;
  /** Whether the first start has succeeded or failed. Lists that are merged earlier may lack this server's entries. */
  readonly isStartSettled: boolean;
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
    reach: isMisconfigured
      ? { kind: 'unavailable', reason: 'misconfigured' }
      : { kind: 'expected', reason: 'starting' },
    isStartSettled: isMisconfigured,
    generation: undefined,
    isInstalled: true,
    nextStart: 'starting',
  };
}

export function afterState(before: Availability, state: ServerState): Availability {
  const isInstalled = state !== 'installing' && (before.isInstalled || state === 'starting');
  // A server that was idle starts on demand, which is not a restart.
  const thisStart = state === 'idle' ? 'starting' : before.nextStart;
  return {
    state,
    reach: reachIn(state, connectionOf(before), isInstalled, thisStart),
    isStartSettled: before.isStartSettled || !UNSETTLED.has(state),
    generation: before.generation,
    isInstalled,
    nextStart: state === 'ready' || state === 'backoff' ? 'restarting' : thisStart,
  };
}

/** States within a first start. `stopping` is one, because a start may be ended to begin again in another era. */
const UNSETTLED: ReadonlySet<ServerState> = new Set(['starting', 'installing', 'stopping']);

/** Availability after a connection opened. The supervisor reports the new state later. */
export function afterConnect(before: Availability, connection: UpstreamConnection): Availability {
  return { ...before, reach: { kind: 'connected', connection }, generation: connection.generation };
}

/** Availability after this connection ended, before the supervisor reports the end. */
export function afterConnectionEnd(before: Availability, connection: UpstreamConnection): Availability {
  if (connectionOf(before) !== connection) return before;
  return { ...before, reach: { kind: 'expected', reason: before.nextStart } };
}

/** Availability after an idle stop. The next start is not a restart. */
export function afterIdleStop(before: Availability): Availability {
  return { ...before, nextStart: 'starting' };
}

export function afterClose(before: Availability): Availability {
  return { ...before, reach: { kind: 'unavailable', reason: unavailableBecause(before) ?? 'stopped' } };
}

export function connectionOf({ reach }: Availability): UpstreamConnection | undefined {
  return reach.kind === 'connected' || reach.kind === 'suspended' ? reach.connection : undefined;
}

/** Reason for which no connection will come. `undefined` if a connection is open or expected. */
export function unavailableBecause({ reach }: Availability): FailureReason | undefined {
  return reach.kind === 'unavailable' ? reach.reason : undefined;
}

/** Reason for which no connection is usable now. */
export function waitReason(availability: Availability): FailureReason {
  const { reach } = availability;
  if (reach.kind === 'expected') return reach.reason;
  return unavailableBecause(availability) ?? 'unresponsive';
}

/** Whether a demand in this state may start the server, or hurries its start. */
export function startsOnDemand({ state }: Availability): boolean {
  return state === 'idle' || state === 'starting' || state === 'stopping' || state === 'parked' || state === 'blocked';
}

function reachIn(
  state: ServerState,
  connection: UpstreamConnection | undefined,
  isInstalled: boolean,
  thisStart: 'starting' | 'restarting',
): Reachability {
  switch (state) {
    case 'offline':
      return { kind: 'unavailable', reason: 'unreachable' };
    case 'blocked':
      return { kind: 'unavailable', reason: 'login_required' };
    case 'parked':
    case 'stopped':
      return { kind: 'unavailable', reason: isInstalled ? state : 'not_installed' };
    case 'ready':
      if (connection !== undefined) return { kind: 'connected', connection };
      break;
    case 'suspect':
      if (connection !== undefined) return { kind: 'suspended', connection };
      break;
    case 'installing':
      return { kind: 'expected', reason: 'installing' };
    case 'idle':
    case 'starting':
    case 'stopping':
    case 'backoff':
  }
  return { kind: 'expected', reason: thisStart };
}
