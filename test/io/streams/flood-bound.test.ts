import { describe, expect, it } from 'vitest';
import { FloodBound, FloodQueue } from '../../../src/io/streams/flood-bound.js';
import { FakeClock } from '../../support/fake-clock.js';

/** Servers that share one queue. Each read of a server causes so much work, and waits if its pace says so. */
function flooding(count: number) {
  const clock = new FakeClock();
  const queue = new FloodQueue(clock);
  const endless: number[] = [];
  const servers = Array.from({ length: count }, (_, index) => {
    const bound = new FloodBound(queue, () => endless.push(index));
    const server = { bound, isWaiting: false, workMs: 0, read: (_ms: number, _isUseful = false) => {} };
    let isUseful = false;
    const pace = bound.pace(() => isUseful);
    server.read = (ms, useful = false) => {
      isUseful = useful;
      const startedAt = clock.now();
      clock.advance(ms);
      server.workMs += ms;
      server.isWaiting = pace({ startedAt, endedAt: clock.now(), byteLength: 0 }, () => {
        server.isWaiting = false;
      });
    };
    return server;
  });
  /** Lets each server write without a pause for so long. */
  const flood = (ms: number) => {
    const end = clock.now() + ms;
    while (clock.now() < end) {
      for (const server of servers) if (!server.isWaiting) server.read(1);
      clock.advance(1);
    }
  };
  return { clock, servers, endless, flood };
}

describe('the bound of floods', () => {
  it('lets a quiet server cause some work at once, and as many answers as it likes', () => {
    const { servers, clock } = flooding(1);
    const [server] = servers;
    for (let count = 0; count < 9; count += 1) server?.read(1);
    expect(server?.isWaiting).toBe(false);
    for (let count = 0; count < 100; count += 1) server?.read(50, true);
    expect([server?.isWaiting, server?.bound.pausedMs]).toEqual([false, 0]);
    clock.advance(1_000);
    for (let count = 0; count < 9; count += 1) server?.read(1);
    expect(server?.isWaiting).toBe(false);
    server?.read(2);
    expect(server?.isWaiting).toBe(true);
    clock.advance(30);
    expect([server?.isWaiting, server?.bound.pausedMs]).toEqual([false, expect.closeTo(24, 0)]);
  });

  it.each([1, 5])('F98: reads floods by turns, for a tenth of the time together: %i', (count) => {
    const { servers, flood } = flooding(count);
    flood(10_000);
    const work = servers.map(({ workMs }) => workMs);
    const sum = work.reduce((all, ms) => all + ms, 0);
    expect(sum).toBeLessThan(1_000 + 20 * count);
    expect(sum).toBeGreaterThan(500);
    expect(Math.max(...work) - Math.min(...work)).toBeLessThanOrEqual(2);
  });

  it('reports a flood of a minute once, and none that had a second of rest', () => {
    const { clock, endless, flood } = flooding(1);
    flood(50_000);
    clock.advance(3_000);
    flood(50_000);
    expect(endless).toEqual([]);
    flood(70_000);
    expect(endless).toEqual([0]);
  });

  it('pauses no longer than a quarter of a second for one read, which something else may have interrupted', () => {
    const { clock, servers } = flooding(1);
    servers[0]?.read(5_000);
    expect(servers[0]?.isWaiting).toBe(true);
    clock.advance(251);
    expect(servers[0]?.isWaiting).toBe(false);
  });
});
