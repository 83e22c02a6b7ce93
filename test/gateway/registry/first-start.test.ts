import { describe, expect, it } from 'vitest';
import { FirstStart } from '../../../src/gateway/registry/first-start.js';

function starting() {
  let missed = 0;
  const first = new FirstStart(() => {
    missed += 1;
  });
  for (const state of ['installing', 'starting'] as const) first.stateChanged(state);
  return { first, missed: () => missed };
}

describe('a first start', () => {
  it('is recorded when it turns out to be slow, since Trunkline may be killed at any time', () => {
    const { first, missed } = starting();
    expect(missed()).toBe(0);
    first.turnedOutSlow();
    expect(missed()).toBe(1);
  });

  it.each(['backoff', 'parked'] as const)('is recorded when it fails and the server is in %s', (state) => {
    const { first, missed } = starting();
    first.stateChanged(state);
    expect(missed()).toBe(1);
  });

  it('is recorded once, whatever follows', () => {
    const { first, missed } = starting();
    first.turnedOutSlow();
    for (const state of ['backoff', 'starting', 'parked'] as const) first.stateChanged(state);
    first.turnedOutSlow();
    expect(missed()).toBe(1);
  });

  it('is over when the server is ready, so that a later failure says nothing about the next run', () => {
    const { first, missed } = starting();
    for (const state of ['ready', 'backoff', 'starting'] as const) first.stateChanged(state);
    first.turnedOutSlow();
    expect(missed()).toBe(0);
  });

  it('is not recorded once its backend is closed', () => {
    const { first, missed } = starting();
    first.close();
    first.turnedOutSlow();
    first.stateChanged('parked');
    expect(missed()).toBe(0);
  });
});
