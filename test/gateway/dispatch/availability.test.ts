import { describe, expect, it } from 'vitest';
import {
  type Availability,
  afterClose,
  afterConnect,
  afterConnectionEnd,
  afterIdleStop,
  afterState,
  initialAvailability,
} from '../../../src/gateway/dispatch/availability.js';
import type { ServerState } from '../../../src/spec/server-state.js';
import type { UpstreamConnection } from '../../../src/upstream/upstream-connection.js';

const CONNECTION = { generation: 1 } as UpstreamConnection;

/** The availability of a server that went through these states. As in reality, it has a connection before it is ready. */
function through(states: readonly ServerState[], before = initialAvailability(false)): Availability {
  return states.reduce(
    (now, state) =>
      afterState(state === 'ready' && now.connection === undefined ? afterConnect(now, CONNECTION) : now, state),
    before,
  );
}

/** The outcome that a call can expect, in a word or two. */
function expectation({ connection, waitReason, failReason }: Availability): string {
  if (failReason !== undefined) return `unavailable: ${failReason}`;
  if (connection === undefined) return `expected: ${waitReason}`;
  return waitReason === undefined ? 'connected' : 'suspended';
}

describe('a call to a server', () => {
  it.each<[what: string, states: ServerState[], expected: string]>([
    ['that starts for the first time', ['starting'], 'expected: starting'],
    ['that could not be started at once', ['starting', 'backoff'], 'expected: starting'],
    ['that is tried again', ['starting', 'backoff', 'starting'], 'expected: restarting'],
    ['that is ready', ['starting', 'ready'], 'connected'],
    ['that has gone silent', ['starting', 'ready', 'suspect'], 'suspended'],
    ['that answers again', ['starting', 'ready', 'suspect', 'ready'], 'connected'],
    ['that has crashed', ['starting', 'ready', 'backoff'], 'expected: restarting'],
    ['that rests until it is needed', ['starting', 'ready', 'stopping', 'idle'], 'expected: starting'],
    ['that is not tried any more', ['starting', 'backoff', 'parked'], 'unavailable: parked'],
    ['that was stopped', ['starting', 'ready', 'stopping', 'stopped'], 'unavailable: stopped'],
    ['whose package could not be installed', ['installing', 'backoff', 'parked'], 'unavailable: not_installed'],
    [
      'that fails although its package is there',
      ['installing', 'starting', 'backoff', 'parked'],
      'unavailable: parked',
    ],
  ])('%s', (_, states, expected) => {
    expect(expectation(through(states))).toBe(expected);
  });

  it('that is stopped because nobody needs it does not hear of a restart', () => {
    const resting = afterIdleStop(through(['starting', 'ready']));
    expect(expectation(through(['stopping'], resting))).toBe('expected: starting');
  });

  it('goes over the connection from the moment it is open, before the supervisor calls the server ready', () => {
    expect(expectation(afterConnect(through(['starting']), CONNECTION))).toBe('connected');
  });

  it('waits for a restart once the connection has ended, before the supervisor has noticed', () => {
    const ended = afterConnectionEnd(through(['starting', 'ready']), CONNECTION);
    expect([expectation(ended), ended.generation]).toEqual(['expected: restarting', 1]);
    expect(ended.connection).toBeUndefined();
  });

  it('does not lose a newer connection because an older one has ended', () => {
    const now = through(['starting', 'ready']);
    expect(afterConnectionEnd(now, { generation: 0 } as UpstreamConnection)).toBe(now);
  });
});

describe('a server', () => {
  it('that can never run is absent for that reason from the beginning', () => {
    const availability = initialAvailability(true);
    expect([availability.failReason, availability.isStartSettled]).toEqual(['misconfigured', true]);
    expect(afterClose(availability).failReason).toBe('misconfigured');
  });

  it('that the gateway is done with is unavailable', () => {
    expect(afterClose(through(['starting', 'ready'])).failReason).toBe('stopped');
  });

  it('has settled its first start once it is neither starting, nor being installed, nor stopped to begin otherwise', () => {
    for (const state of ['installing', 'starting', 'stopping'] as const)
      expect(through([state]).isStartSettled).toBe(false);
    for (const state of ['ready', 'backoff', 'parked', 'idle', 'stopped'] as const) {
      expect(through(['starting', state, 'starting']).isStartSettled).toBe(true);
    }
  });

  it('is demanded where that starts it, or starts it sooner', () => {
    const states: ServerState[] = [
      'idle',
      'starting',
      'stopping',
      'parked',
      'installing',
      'ready',
      'suspect',
      'backoff',
      'stopped',
    ];
    const heeding = states.filter((state) => through([state]).startsOnDemand);
    expect(heeding).toEqual(['idle', 'starting', 'stopping', 'parked']);
  });
});
