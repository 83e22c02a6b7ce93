import { describe, expect, it } from 'vitest';
import { Latencies } from '../../../src/gateway/dispatch/call.js';

describe('Latencies', () => {
  it('knows nothing before the first call', () => {
    expect(new Latencies().quantile(0.5)).toBeUndefined();
  });

  it('tells what a share of the calls did not exceed', () => {
    const latencies = new Latencies();
    for (const ms of [100, 9, 40, 20, 30]) latencies.add(ms);
    expect([0, 0.5, 0.95, 1].map((quantile) => latencies.quantile(quantile))).toEqual([9, 30, 100, 100]);
  });

  it('tells it of all instances of a server', () => {
    const [one, other, unused] = [new Latencies(), new Latencies(), new Latencies()];
    one.add(9);
    for (const ms of [1, 2, 3]) other.add(ms);
    expect([one.quantile(0.5, [other]), unused.quantile(0.5, [one])]).toEqual([3, 9]);
  });

  it('remembers the last 512 calls', () => {
    const latencies = new Latencies();
    latencies.add(1_000_000);
    for (let count = 0; count < 512; count += 1) latencies.add(1);
    expect(latencies.quantile(1)).toBe(1);
    latencies.add(5);
    expect(latencies.quantile(1)).toBe(5);
  });
});
