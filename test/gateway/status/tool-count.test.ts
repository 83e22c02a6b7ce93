import { describe, expect, it } from 'vitest';
import { adviseOnToolCount, createToolCountWarning } from '../../../src/gateway/status/status.js';

describe('the advice on many tools', () => {
  it.each([
    [39, undefined],
    [40, 40],
    [79, 40],
    [80, 80],
    [127, 80],
    [128, 128],
    [1_000, 128],
  ])('of %i names the number that some clients stop at: %s', (count, step) => {
    const advice = adviseOnToolCount(count);
    if (step === undefined) expect(advice).toBe('');
    else expect(advice).toMatch(new RegExp(`^${count} tools are listed.* no more than ${step}, .*tools.allow`));
  });

  it('is given once for each of the numbers', () => {
    const told: string[] = [];
    const warn = createToolCountWarning((advice) => told.push(advice));
    for (const count of [10, 41, 45, 39, 50, 200, 100, 130]) warn(count);
    expect(told.map((advice) => advice.split(' ')[0])).toEqual(['41', '200']);
  });
});
