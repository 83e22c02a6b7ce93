import { describe, expect, it } from 'vitest';
import { clientPace, FloodBound, FloodQueue, TurnReader } from '../../../../src/wire/io/streams/turn-reader.js';
import { FakeClock } from '../../../support/fake-clock.js';

/** A reader whose work on each read takes as long as the test says, and a stream that says whether it flows. */
function reading(msOfRead: () => number) {
  let now = 0;
  let flows = true;
  const read: number[] = [];
  const tasks: (() => void)[] = [];
  const stream = {
    pause: () => {
      flows = false;
    },
    resume: () => {
      flows = true;
    },
  };
  const reader = {
    freeSpace: new Uint8Array(64 * 1024),
    filled: (byteLength: number) => {
      read.push(byteLength);
      now += msOfRead();
    },
  };
  const turns = new TurnReader(reader, {
    stream: () => stream,
    clock: { now: () => now },
    pace: clientPace((task) => tasks.push(task)),
  });
  const nextTurn = () => {
    for (const task of tasks.splice(0)) task();
  };
  return { turns, nextTurn, read, flows: () => flows, waits: () => tasks.length };
}

describe('a client among others', () => {
  it('F147: that writes without a pause is read once in a turn, and goes on in the next', () => {
    const { turns, nextTurn, read, flows } = reading(() => 20);
    for (let turn = 1; turn <= 3; turn += 1) {
      turns.filled(64 * 1024);
      expect([read.length, flows()]).toEqual([turn, false]);
      nextTurn();
      expect(flows()).toBe(true);
    }
  });

  it('gets small reads while they take long, and larger ones when they do not', () => {
    let ms = 20;
    const { turns, nextTurn } = reading(() => ms);
    const sizes: number[] = [];
    const readOn = () => {
      sizes.push(turns.freeSpace.length / 1024);
      turns.filled(turns.freeSpace.length);
      nextTurn();
    };
    for (let turn = 0; turn < 6; turn += 1) readOn();
    ms = 0.5;
    for (let turn = 0; turn < 6; turn += 1) readOn();
    expect(sizes).toEqual([4, 4, 4, 4, 4, 4, 4, 8, 16, 32, 64, 64]);
  });

  it('is read on if its messages take little work', () => {
    const quick = reading(() => 0.9);
    for (let count = 0; count < 32; count += 1) quick.turns.filled(64 * 1024);
    expect([quick.flows(), quick.waits()]).toEqual([true, 0]);
  });

  it('that does not read stays paused in the next turn, and is read when both reasons are over, in any order', () => {
    const { turns, nextTurn, flows } = reading(() => 20);
    turns.filled(64 * 1024);
    turns.pause();
    nextTurn();
    expect(flows()).toBe(false);
    turns.resume();
    expect(flows()).toBe(true);
    turns.filled(64 * 1024);
    turns.pause();
    turns.resume();
    expect(flows()).toBe(false);
    nextTurn();
    expect(flows()).toBe(true);
  });

  it('asks for one turn, also if a stream cannot stop within a chunk', () => {
    const { turns, nextTurn, read, flows, waits } = reading(() => 20);
    for (let count = 0; count < 3; count += 1) turns.filled(64 * 1024);
    expect([read.length, waits()]).toEqual([3, 1]);
    nextTurn();
    expect(flows()).toBe(true);
  });
});

/** Servers that share one queue. Each read of a server causes so much work, and waits if its pace says so. */
function flooding(count: number) {
  const clock = new FakeClock();
  const queue = new FloodQueue(clock);
  const endless: number[] = [];
  const servers = Array.from({ length: count }, (_, index) => {
    const bound = new FloodBound(queue, () => endless.push(index));
    const server = { bound, isWaiting: false, workMs: 0, read: (_ms: number, _isUseful = false) => {} };
    const reader = { wasUseful: false };
    const pace = bound.pace(reader);
    server.read = (ms, useful = false) => {
      reader.wasUseful = useful;
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
