import { expect, it } from 'vitest';
import { aimsTable, brokenAims } from '../../lab/bench/aims.mjs';
import { LEGACY_PAIR, pairName } from '../../lab/bench/era-calls.mjs';
import { LIMITED, RELAY, TRUNKLINE } from '../../lab/bench/ways.mjs';

it('the aims for many calls hold for both ways to write them, and are easier for a concurrency limit', () => {
  const calls = (callsPerSecond: number, cpuTogether: number, callsPerSecondApart: number, cpuApart: number) => [
    { p50: 1, p99: 1, callsPerSecond, cpuTogether, callsPerSecondApart, cpuApart },
  ];
  const measured = {
    calls: new Map([
      [RELAY, calls(100, 1, 100, 1)],
      [TRUNKLINE, calls(50, 3, 80, 2)],
      [LIMITED.name, calls(50, 3, 30, 6)],
    ]),
  };
  const [, rows] = aimsTable(measured);
  for (const row of [
    '| calls/s with 64 in flight, a write for each call ÷ byte relay ≥ 0.8 × | 0.80 × | met |',
    '| CPU of a call, a write for each call ÷ byte relay ≤ 2.2 × | 2.00 × | met |',
    '| calls/s, `concurrency: 16`, a write for each call ÷ byte relay ≥ 0.4 × | 0.30 × | not met |',
    '| CPU of a call, `concurrency: 16`, a write for each call ÷ byte relay ≤ 5 × | 6.00 × | not met |',
    '| calls/s with 64 in flight, many calls in one write ÷ byte relay ≥ 0.8 × | 0.50 × | not met |',
    '| CPU of a call, many calls in one write ÷ byte relay ≤ 2.2 × | 3.00 × | not met |',
    '| calls/s, `concurrency: 16`, many calls in one write ÷ byte relay ≥ 0.4 × | 0.50 × | met |',
    '| CPU of a call, `concurrency: 16`, many calls in one write ÷ byte relay ≤ 5 × | 3.00 × | met |',
  ])
    expect(rows).toContain(row);
});

it('calls of the modern era are compared with the legacy pair of the same round', () => {
  const rounds = (...factors: number[]) =>
    [100, 1_000].map((p50, round) => ({ p50: p50 * (factors[round] ?? 1), cpuApart: 5, cpuTogether: 5 }));
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
