import { describe, expect, it } from 'vitest';
import { lostScenarios, toReport } from '../../conformance/report.mjs';

const passed = (name: string) => ({ name, checks: [], faults: [] });
const failed = (name: string) => ({ name, checks: [], faults: [`FAILURE ${name}-check: why`] });

describe('a scenario of the conformance suite', () => {
  it('is lost when it passes directly and fails behind Trunkline', () => {
    const results = { direct: [passed('a'), passed('b')], Trunkline: [passed('a'), failed('b')] };
    expect(lostScenarios(results)).toEqual([failed('b')]);
    expect(toReport('1.0', results)).toBe(
      'Suite 1.0: direct 2 of 2, Trunkline 1 of 2\n  Lost behind Trunkline:\n    b\n      FAILURE b-check: why',
    );
  });

  it('is not lost when it fails directly too, but is reported', () => {
    const results = { direct: [failed('a')], Trunkline: [failed('a')] };
    expect(lostScenarios(results)).toEqual([]);
    expect(toReport('1.0', results)).toContain('Failed without Trunkline:\n    a');
  });

  it('is not lost when only the direct way was tried', () => {
    expect(lostScenarios({ direct: [passed('a')] })).toEqual([]);
  });
});
