import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { CallQueue, type QueuePlace } from '../../../src/gateway/dispatch/call-queue.js';
import { SharedLimit } from '../../../src/io/shared-limit.js';
import { flush } from '../../support/wire.js';

function queueing(concurrency: number, maxQueued: number, Made = CallQueue) {
  const queue = new Made({ concurrency, maxQueued });
  const started: string[] = [];
  const leaves = new Map<string, () => void>();
  const enter = (name: string): QueuePlace | undefined =>
    queue.enter((leave) => {
      started.push(name);
      leaves.set(name, leave);
    });
  /** Lets a started call leave, once. */
  const leave = async (name: string) => {
    leaves.get(name)?.();
    leaves.delete(name);
    await flush();
  };
  return { queue, started, enter, leave };
}

describe('CallQueue', () => {
  it('starts calls at once, within the call, as long as there is room', () => {
    const { queue, started, enter } = queueing(2, 10);
    enter('a');
    enter('b');
    enter('c');
    expect(started).toEqual(['a', 'b']);
    expect([queue.running, queue.queued]).toEqual([2, 1]);
  });

  it('lets waiting calls through in order of arrival, one for each that leaves', async () => {
    const { queue, started, enter, leave } = queueing(1, 10);
    for (const name of ['a', 'b', 'c']) enter(name);
    await leave('a');
    expect(started).toEqual(['a', 'b']);
    await leave('b');
    expect(started).toEqual(['a', 'b', 'c']);
    await leave('c');
    expect([queue.running, queue.queued]).toEqual([0, 0]);
  });

  it('keeps the order of calls that wait before what orders them is loaded', async () => {
    vi.resetModules();
    const { CallQueue: Made, loadCallQueue } = await import('../../../src/gateway/dispatch/call-queue.js');
    const { queue, started, enter, leave } = queueing(1, 10, Made);
    for (const name of ['a', 'b', 'c']) enter(name);
    const left = leave('a');
    expect(queue.queued).toBe(2);
    await loadCallQueue();
    await left;
    await flush();
    expect(started).toEqual(['a', 'b']);
    await leave('b');
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('takes no call that would wait behind too many others', async () => {
    const { started, enter, leave } = queueing(1, 2);
    expect(['a', 'b', 'c', 'd'].map((name) => enter(name) !== undefined)).toEqual([true, true, true, false]);
    for (const name of ['a', 'b', 'c']) await leave(name);
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('counts a withdrawn call no longer, from the moment it is withdrawn', () => {
    const { queue, enter } = queueing(1, 1);
    enter('a');
    const b = enter('b');
    expect(enter('c')).toBeUndefined();
    b?.withdraw();
    expect(queue.queued).toBe(0);
    expect(enter('d')).toBeDefined();
  });

  it('may let nothing wait at all', async () => {
    const { enter, leave } = queueing(1, 0);
    enter('a');
    expect(enter('b')).toBeUndefined();
    await leave('a');
    expect(enter('c')).toBeDefined();
  });

  it('gives the place of a withdrawn call to the next one', async () => {
    const { queue, started, enter, leave } = queueing(1, 1);
    enter('a');
    enter('b')?.withdraw();
    await flush();
    expect(queue.queued).toBe(0);
    expect(enter('c')).toBeDefined();
    await leave('a');
    expect(started).toEqual(['a', 'c']);
  });

  it('starts nothing that was withdrawn in the moment that a place became free', async () => {
    const { queue, started, enter, leave } = queueing(1, 5);
    enter('a');
    const b = enter('b');
    enter('c');
    await flush();
    const left = leave('a');
    b?.withdraw();
    await left;
    expect(started).toEqual(['a', 'c']);
    await leave('c');
    expect([queue.running, queue.queued]).toEqual([0, 0]);
  });

  it('lets nobody pass who comes in the moment that a place becomes free', async () => {
    const { started, enter, leave } = queueing(1, 5);
    enter('a');
    enter('b');
    await flush();
    const left = leave('a');
    enter('c');
    await left;
    expect(started).toEqual(['a', 'b']);
    await leave('b');
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('keeps the place of a call that is under way, whatever is withdrawn', async () => {
    const { queue, started, enter, leave } = queueing(1, 5);
    const a = enter('a');
    const b = enter('b');
    enter('c');
    a?.withdraw();
    await leave('a');
    b?.withdraw();
    await flush();
    expect(started).toEqual(['a', 'b']);
    expect([queue.running, queue.queued]).toEqual([1, 1]);
    await leave('b');
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('lets a call go that leaves before it has begun', async () => {
    const { queue } = queueing(1, 5);
    queue.enter((leave) => leave());
    await flush();
    expect(queue.running).toBe(0);
  });

  it('keeps to its bounds and starts everyone who was not withdrawn, once and in order, whatever happens', async () => {
    const action = fc.record({
      do: fc.constantFrom('enter', 'enter', 'enter', 'leave', 'leave', 'withdraw', 'turn'),
      which: fc.nat(20),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
        const { queue, started, enter, leave } = queueing(2, 3);
        const places: (QueuePlace | undefined)[] = [];
        const withdrawn = new Set<string>();
        for (const { do: what, which } of actions) {
          if (what === 'enter') places.push(enter(String(places.length)));
          if (what === 'leave') void leave(String(which));
          if (what === 'withdraw' && which < places.length && !started.includes(String(which))) {
            places[which]?.withdraw();
            withdrawn.add(String(which));
          }
          if (what === 'turn') await flush();
          expect(queue.running).toBeLessThanOrEqual(2);
          expect(queue.queued).toBeLessThanOrEqual(3);
        }
        await flush();
        for (let name = 0; name < places.length; name += 1) await leave(String(name));
        const admitted = places.flatMap((place, name) => (place === undefined ? [] : [String(name)]));
        expect(started).toEqual(admitted.filter((name) => !withdrawn.has(name)));
        expect([queue.running, queue.queued]).toEqual([0, 0]);
      }),
      { numRuns: 600 },
    );
  });
});

describe('several queues that share a bound', () => {
  it('keep no more calls waiting together than that, and say whose fault it is', async () => {
    const waiting = new SharedLimit(2);
    const queues = [1, 2].map(() => new CallQueue({ concurrency: 1, maxQueued: 2, waiting }));
    const [one, two] = queues as [CallQueue, CallQueue];
    const leaves: (() => void)[] = [];
    const enter = (queue: CallQueue) => queue.enter((leave) => leaves.push(leave));
    enter(one);
    enter(two);
    const places = [enter(one), enter(one)];
    expect([enter(one), one.isFull]).toEqual([undefined, true]);
    expect([enter(two), two.isFull]).toEqual([undefined, false]);
    expect(waiting).toMatchObject({ taken: 2, refusals: 1 });

    places[0]?.withdraw();
    expect([enter(two) !== undefined, waiting.taken]).toEqual([true, 2]);
    while (leaves.length > 0) {
      for (const leave of leaves.splice(0)) leave();
      await flush();
    }
    expect([waiting.taken, one.running, two.running]).toEqual([0, 0, 0]);
  });
});
