import { describe, expect, it } from 'vitest';
import { FirstStarts } from '../../../../src/cli/commands/calls/run-once.js';
import type { ChildSnapshot } from '../../../../src/supervision/child-state.js';

describe('the first starts', () => {
  it('are over when every server is ready or has failed with nothing left of it', async () => {
    let now = 0;
    const pending: (readonly string[])[] = [];
    const starts = new FirstStarts({ keys: ['a', 'b'], now: () => now, onSettled: (keys) => pending.push(keys) });
    starts.moved('a', snapshot('starting', undefined));
    now = 10;
    starts.moved('a', snapshot('starting', 7));
    now = 35;
    starts.moved('a', snapshot('ready', 7));
    starts.moved('b', snapshot('parked', 8));
    expect(pending).toEqual([['b']]);
    starts.moved('b', snapshot('parked', undefined));
    await starts.settled;
    expect(pending).toEqual([['b'], []]);
    expect(starts.readyAfterMs('a')).toBe(25);
    expect(starts.readyAfterMs('b')).toBeUndefined();
  });

  it('are over at once when there are none', async () => {
    await new FirstStarts({ keys: [], now: () => 0, onSettled: () => {} }).settled;
  });
});

function snapshot(state: ChildSnapshot['state'], pid: number | undefined): ChildSnapshot {
  return {
    state,
    pid,
    generation: 1,
    restarts: 0,
    consecutiveFailures: 0,
    lastExit: undefined,
    lastFailure: undefined,
    readySince: undefined,
    retryAt: undefined,
    missing: undefined,
    installingSince: undefined,
  };
}
