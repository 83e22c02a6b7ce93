import { describe, expect, it } from 'vitest';
import { OutcomeWindow } from '../../../src/upstream/health/circuit-breaker.js';

describe('an outcome window', () => {
  it('counts successes and failures', () => {
    const outcomes = new OutcomeWindow(10_000);
    outcomes.addSuccess(0);
    outcomes.addSuccess(5_000);
    expect(outcomes.addFailure(9_999)).toEqual({ total: 3, failures: 1 });
  });

  it('forgets its oldest tenth as time passes', () => {
    const outcomes = new OutcomeWindow(10_000);
    outcomes.addFailure(999);
    outcomes.addFailure(1_000);
    expect(outcomes.addFailure(9_999)).toEqual({ total: 3, failures: 3 });
    expect(outcomes.addFailure(10_000)).toEqual({ total: 3, failures: 3 });
    expect(outcomes.addFailure(11_000)).toEqual({ total: 3, failures: 3 });
    expect(outcomes.addFailure(100_000)).toEqual({ total: 1, failures: 1 });
  });

  it('counts at most a thousand successes in a tenth, and every failure', () => {
    const outcomes = new OutcomeWindow(10_000);
    for (let count = 0; count < 3_000; count += 1) outcomes.addSuccess(0);
    for (let count = 0; count < 3_000; count += 1) outcomes.addFailure(0);
    expect(outcomes.addFailure(0)).toEqual({ total: 4_001, failures: 3_001 });
    outcomes.addSuccess(1_000);
    expect(outcomes.addFailure(1_000)).toEqual({ total: 4_003, failures: 3_002 });
  });

  it('is empty after it was cleared', () => {
    const outcomes = new OutcomeWindow(10_000);
    outcomes.addFailure(0);
    outcomes.clear();
    expect(outcomes.addFailure(0)).toEqual({ total: 1, failures: 1 });
  });
});
