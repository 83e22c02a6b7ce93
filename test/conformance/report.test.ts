import { describe, expect, it } from 'vitest';
import { isAsListed, toReport } from '../../lab/conformance/report.mjs';

const passed = (name: string) => ({ name, checks: [], faults: [] });
const failed = (name: string) => ({ name, checks: [], faults: [`FAILURE ${name}-check: why`] });

describe('a scenario of the conformance suite', () => {
  it('has to pass against every target if it is not listed as missing', () => {
    const direct = { outcomes: [passed('a'), passed('b')], missing: {} };
    const Trunkline = { outcomes: [passed('a'), failed('b')], missing: {} };
    expect(isAsListed(direct)).toBe(true);
    expect(isAsListed(Trunkline)).toBe(false);
    expect(toReport('1.0', { direct, Trunkline })).toBe(
      'Suite 1.0: direct 2 of 2, Trunkline 1 of 2\n  Failed, Trunkline:\n    b\n      FAILURE b-check: why',
    );
  });

  it('may fail if it is listed as missing, and is reported under the reason', () => {
    const missing = { b: 'Not built yet', c: 'Not built yet' };
    const Trunkline = { outcomes: [passed('a'), failed('b'), failed('c')], missing };
    expect(isAsListed(Trunkline)).toBe(true);
    expect(toReport('1.0', { Trunkline })).toBe(
      'Suite 1.0: Trunkline 1 of 3\n  Listed as missing, Trunkline:\n    Not built yet\n      b, c',
    );
  });

  it('may not pass if it is listed as missing', () => {
    const Trunkline = { outcomes: [passed('a'), passed('b')], missing: { b: 'Not built yet' } };
    expect(isAsListed(Trunkline)).toBe(false);
    expect(toReport('1.0', { Trunkline })).toContain('Listed as missing, but passed, Trunkline:\n    b');
  });

  it('may be listed without being run', () => {
    expect(isAsListed({ outcomes: [passed('a')], missing: { b: 'Not built yet' } })).toBe(true);
  });
});
