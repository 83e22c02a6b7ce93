import { expect, it } from 'vitest';
import { aimsTable } from '../../bench/aims.mjs';
import { LIMITED, RELAY, TRUNKLINE } from '../../bench/ways.mjs';

it('the aims for many calls are for default settings, and easier ones for a concurrency limit', () => {
  const calls = (callsPerSecond: number, cpuTogether: number) => [{ p50: 1, p99: 1, callsPerSecond, cpuTogether }];
  const measured = {
    calls: new Map([
      [RELAY, calls(100, 1)],
      [TRUNKLINE, calls(50, 3)],
      [LIMITED.name, calls(50, 3)],
    ]),
  };
  const [, rows] = aimsTable(measured);
  expect(rows).toContain('| calls/s with 64 in flight ÷ byte relay ≥ 0.8 × | 0.50 × | not met |');
  expect(rows).toContain('| CPU of a call then ÷ byte relay ≤ 2.2 × | 3.00 × | not met |');
  expect(rows).toContain('| calls/s with `concurrency: 16` ÷ byte relay ≥ 0.4 × | 0.50 × | met |');
  expect(rows).toContain('| CPU of a call with `concurrency: 16` ÷ byte relay ≤ 5 × | 3.00 × | met |');
});
