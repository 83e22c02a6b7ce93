import { expect, it } from 'vitest';
import { aimsTable, brokenAims } from '../../bench/aims.mjs';
import { LEGACY_PAIR, pairName } from '../../bench/era-calls.mjs';
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

it('calls of the modern era are compared with the legacy pair of the same round', () => {
  const rounds = (...factors: number[]) =>
    [100, 1_000].map((p50, round) => ({ p50: p50 * (factors[round] ?? 1), cpuTogether: 5 }));
  const eras = new Map([
    [LEGACY_PAIR, rounds()],
    [pairName('modern', 'modern'), rounds(1.1, 1.2)],
    [pairName('modern', 'legacy'), rounds(4.1, 4.1)],
  ]);
  const [, rows] = aimsTable({ eras });
  expect(rows).toContain('| p50 of a call, modern client, modern server ÷ legacy pair ≤ 1.15 × | 1.15 × | met |');
  expect(rows).toContain('| p50 of a call, modern client, legacy server ÷ legacy pair ≤ 1.3 × | 4.10 × | not met |');
  expect(brokenAims({ eras })).toEqual(['p50 of a call, modern client, legacy server ÷ legacy pair: 4.10, beyond 4']);
});
