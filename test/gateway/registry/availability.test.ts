import { describe, expect, it } from 'vitest';
import { Lifecycle, type LifecycleState } from '../../../src/gateway/registry/availability.js';

/** A process that went through these states, and what calls were told of each. */
function through(states: readonly LifecycleState[], isMisconfigured = false) {
  const told: string[] = [];
  const lifecycle = new Lifecycle({
    isMisconfigured,
    dispatcher: {
      giveUp: (absence) => told.push(`give up: ${absence}`),
      hold: () => told.push('hold'),
      resume: () => told.push('resume'),
      disconnect: (absence) => told.push(`wait: ${absence}`),
    },
  });
  for (const state of states) lifecycle.moved(state);
  return { lifecycle, told };
}

describe('what calls are told of a process', () => {
  it.each<[what: string, states: LifecycleState[], told: string]>([
    ['that starts for the first time', ['starting'], 'wait: starting'],
    ['that could not be started at once', ['starting', 'backoff'], 'wait: starting'],
    ['that is tried again', ['starting', 'backoff', 'starting'], 'wait: restarting'],
    ['that is ready', ['starting', 'ready'], 'resume'],
    ['that has gone silent', ['starting', 'ready', 'suspect'], 'hold'],
    ['that answers again', ['starting', 'ready', 'suspect', 'ready'], 'resume'],
    ['that has crashed', ['starting', 'ready', 'backoff'], 'wait: restarting'],
    ['that rests until it is needed', ['starting', 'ready', 'stopping', 'idle'], 'wait: starting'],
    ['that is not tried any more', ['starting', 'backoff', 'parked'], 'give up: parked'],
    ['that was stopped', ['starting', 'ready', 'stopping', 'stopped'], 'give up: stopped'],
    ['whose package could not be installed', ['installing', 'backoff', 'parked'], 'give up: not_installed'],
    ['that fails although its package is there', ['installing', 'starting', 'backoff', 'parked'], 'give up: parked'],
  ])('%s', (_, states, expected) => {
    expect(through(states).told.at(-1)).toBe(expected);
  });

  it('that rests by our own wish is not that it restarts', () => {
    const { lifecycle, told } = through(['starting', 'ready']);
    lifecycle.toRest();
    lifecycle.moved('stopping');
    expect(told.at(-1)).toBe('wait: starting');
  });
});

describe('a process', () => {
  it.each<[states: LifecycleState[], absence: string | undefined]>([
    [[], undefined],
    [['starting', 'backoff'], undefined],
    [['stopped'], 'stopped'],
    [['installing'], undefined],
    [['installing', 'parked'], 'not_installed'],
    [['starting', 'parked'], 'parked'],
  ])('that went through %j is to be expected, or why it is not', (states, absence) => {
    const { lifecycle } = through(states);
    expect([lifecycle.absence, lifecycle.isGivenUp]).toEqual([absence, absence !== undefined]);
  });

  it('that can never run is absent for that reason from the beginning', () => {
    const { lifecycle } = through([], true);
    expect(lifecycle).toMatchObject({ absence: 'misconfigured', isStartSettled: true });
  });

  it.each<[states: LifecycleState[], delay: string]>([
    [['installing'], 'installing'],
    [['starting'], 'starting'],
    [['starting', 'backoff'], 'restarting'],
    [['starting', 'ready', 'backoff'], 'restarting'],
    [['starting', 'ready', 'stopping', 'idle'], 'starting'],
  ])('that went through %j is late as it is %s', (states, delay) => {
    expect(through(states).lifecycle.delay).toBe(delay);
  });

  it('has settled its first start once it is neither starting nor being installed', () => {
    for (const state of ['installing', 'starting'] as const)
      expect(through([state]).lifecycle.isStartSettled).toBe(false);
    for (const state of ['ready', 'backoff', 'parked', 'idle', 'stopped'] as const) {
      expect(through(['starting', state, 'starting']).lifecycle.isStartSettled).toBe(true);
    }
  });

  it('is demanded where that starts it, or starts it sooner', () => {
    const states = ['idle', 'starting', 'stopping', 'parked', 'installing', 'ready', 'suspect', 'backoff', 'stopped'];
    const heeding = states.filter((state) => through([state as LifecycleState]).lifecycle.heedsDemand);
    expect(heeding).toEqual(['idle', 'starting', 'stopping', 'parked']);
  });
});
