import type { FailureReason } from '../../downstream/failure.js';
import type { UpstreamConnection } from '../../upstream/port.js';

/** Where a server is in its life, as its supervisor reports it. */
export type ServerState =
  | 'stopped'
  | 'idle'
  | 'installing'
  | 'starting'
  | 'ready'
  | 'suspect'
  | 'stopping'
  | 'backoff'
  | 'parked';

/** What a call to the server can expect now. */
export type Reachability =
  /** Calls are sent over this connection. */
  | { readonly kind: 'connected'; readonly connection: UpstreamConnection }
  /** The liveness probe runs: calls in flight go on, new ones wait. */
  | { readonly kind: 'suspended'; readonly connection: UpstreamConnection }
  /** A connection will come: calls wait for it, and fail with the reason when they have waited too long. */
  | { readonly kind: 'expected'; readonly reason: 'starting' | 'restarting' | 'installing' }
  /** No connection will come: calls fail at once. */
  | { readonly kind: 'unavailable'; readonly reason: FailureReason };

/**
 * Everything the gateway derives from the life of one server, as one immutable snapshot.
 *
 * Each event (a new state, a connection, its end) makes the next snapshot. Nobody keeps a copy of a part of it.
 */
export interface Availability {
  readonly state: ServerState;
  readonly reach: Reachability;
  /** False until the first start has succeeded or failed: a list made before may lack this server's entries. */
  readonly isStartSettled: boolean;
  /** Of the latest connection; `undefined` before the first one. */
  readonly generation: number | undefined;
  /** False while the server's package is missing: it is being installed, or its installation failed. */
  readonly isInstalled: boolean;
  /** What the next start is to callers: the first one, or one after a failure. */
  readonly nextStart: 'starting' | 'restarting';
}

/** A server that was not started yet. One with a wrong configuration never will be. */
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

/** The supervisor reports a new state. */
export function afterState(before: Availability, state: ServerState): Availability {
  const isInstalled = state !== 'installing' && (before.isInstalled || state === 'starting');
  // A server that was idle is started on demand, which is no restart.
  const thisStart = state === 'idle' ? 'starting' : before.nextStart;
  return {
    state,
    reach: reachIn(state, connectionOf(before), isInstalled, thisStart),
    isStartSettled: before.isStartSettled || (state !== 'starting' && state !== 'installing'),
    generation: before.generation,
    isInstalled,
    nextStart: state === 'ready' || state === 'backoff' ? 'restarting' : thisStart,
  };
}

/** A connection is open. Its server's state follows. */
export function afterConnect(before: Availability, connection: UpstreamConnection): Availability {
  return { ...before, reach: { kind: 'connected', connection }, generation: connection.generation };
}

/** This connection takes no more requests, although the supervisor has not noticed yet. */
export function afterConnectionEnd(before: Availability, connection: UpstreamConnection): Availability {
  if (connectionOf(before) !== connection) return before;
  return { ...before, reach: { kind: 'expected', reason: before.nextStart } };
}

/** The server is stopped because nobody needs it, so its next start is no restart. */
export function afterIdleStop(before: Availability): Availability {
  return { ...before, nextStart: 'starting' };
}

/** The gateway is done with the server. */
export function afterClose(before: Availability): Availability {
  return { ...before, reach: { kind: 'unavailable', reason: unavailableBecause(before) ?? 'stopped' } };
}

export function connectionOf({ reach }: Availability): UpstreamConnection | undefined {
  return reach.kind === 'connected' || reach.kind === 'suspended' ? reach.connection : undefined;
}

/** Why no connection will come, or `undefined` when one is there or will come. */
export function unavailableBecause({ reach }: Availability): FailureReason | undefined {
  return reach.kind === 'unavailable' ? reach.reason : undefined;
}

/** Whether a demand starts the server, or starts it sooner. */
export function startsOnDemand({ state }: Availability): boolean {
  return state === 'idle' || state === 'starting' || state === 'stopping' || state === 'parked';
}

function reachIn(
  state: ServerState,
  connection: UpstreamConnection | undefined,
  isInstalled: boolean,
  thisStart: 'starting' | 'restarting',
): Reachability {
  switch (state) {
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
