import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConcurrencyLimit } from '../../../src/gateway/dispatch/concurrency-limit.js';
import { SharedLimit } from '../../../src/io/shared-limit.js';
import { flush } from '../../support/wire.js';

interface Releasable {
  release(): void;
}

/** Takes a slot or queues for one, as admission does. Returns `undefined` when the queue is full. */
function enterInto(queue: ConcurrencyLimit, onSlot: (slot: Releasable) => void): Releasable | undefined {
  if (queue.takeDirect()) {
    const direct = { release: () => queue.releaseDirect() };
    onSlot(direct);
    return direct;
  }
  const slot = queue.enter(onSlot);
  return typeof slot === 'string' ? undefined : slot;
}

function queueing(concurrency: number, maxQueued: number) {
  const queue = new ConcurrencyLimit({ concurrency, maxQueued });
  const started: string[] = [];
  const leaves = new Map<string, () => void>();
  const enter = (name: string): Releasable | undefined =>
    enterInto(queue, (slot) => {
      started.push(name);
      leaves.set(name, () => slot.release());
    });
  /** Lets a started call leave, once. */
  const leave = async (name: string) => {
    leaves.get(name)?.();
    leaves.delete(name);
    await flush();
  };
  return { queue, started, enter, leave };
}

describe('ConcurrencyLimit', () => {
  it('starts calls at once, within the call, as long as there is room', () => {
    const { queue, started, enter } = queueing(2, 10);
    enter('a');
    enter('b');
    enter('c');
    expect(started).toEqual(['a', 'b']);
    expect([queue.running, queue.queued]).toEqual([2, 1]);
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
    b?.release();
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

  it('gives a call a free slot at once, even if others had to wait before', async () => {
    const { queue, started, enter, leave } = queueing(2, 1);
    for (const name of ['a', 'b', 'c']) enter(name);
    await leave('a');
    await leave('b');
    enter('d');
    expect(started).toEqual(['a', 'b', 'c', 'd']);
    expect([queue.running, queue.queued]).toEqual([2, 0]);
  });

  it('keeps calls in flight beyond a limit that became smaller, and starts no other before', async () => {
    const { queue, started, enter, leave } = queueing(3, 5);
    for (const name of ['a', 'b', 'c']) enter(name);
    queue.configure({ concurrency: 1, maxQueued: 5 });
    enter('d');
    await leave('a');
    await leave('b');
    expect(started).toEqual(['a', 'b', 'c']);
    await leave('c');
    expect(started).toEqual(['a', 'b', 'c', 'd']);
    queue.configure({ concurrency: 2, maxQueued: 5 });
    enter('e');
    expect(started).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('frees one slot for a call that releases its slot twice', async () => {
    const { queue, started, enter, leave } = queueing(1, 5);
    enter('a');
    const b = enter('b');
    for (const name of ['c', 'd']) enter(name);
    await leave('a');
    b?.release();
    b?.release();
    await flush();
    expect(started).toEqual(['a', 'b', 'c']);
    expect([queue.running, queue.queued]).toEqual([1, 1]);
  });

  it('frees the slot of a call that releases it as soon as it has it', async () => {
    const { queue, enter, leave } = queueing(1, 5);
    enter('a');
    queue.enter((slot) => slot.release());
    await leave('a');
    await flush();
    expect([queue.running, queue.queued]).toEqual([0, 0]);
  });

  it('keeps to its bounds and starts everyone who was not withdrawn, once and in order, whatever happens', async () => {
    const action = fc.record({
      do: fc.constantFrom('enter', 'enter', 'enter', 'leave', 'leave', 'withdraw', 'turn'),
      which: fc.nat(20),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
        const { queue, started, enter, leave } = queueing(2, 3);
        const places: (Releasable | undefined)[] = [];
        const withdrawn = new Set<string>();
        for (const { do: what, which } of actions) {
          if (what === 'enter') places.push(enter(String(places.length)));
          if (what === 'leave') void leave(started.at(-1 - (which % 3)) ?? '');
          if (what === 'withdraw' && which < places.length && !started.includes(String(which))) {
            places[which]?.release();
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
    const queues = [1, 2].map(() => new ConcurrencyLimit({ concurrency: 1, maxQueued: 2, allWaiting: waiting }));
    const [one, two] = queues as [ConcurrencyLimit, ConcurrencyLimit];
    const leaves: (() => void)[] = [];
    const enter = (queue: ConcurrencyLimit) => enterInto(queue, (slot) => leaves.push(() => slot.release()));
    enter(one);
    enter(two);
    const places = [enter(one), enter(one)];
    expect([one.enter(() => {}), two.enter(() => {})]).toEqual(['queue_full', 'all_queues_full']);
    expect(waiting).toMatchObject({ used: 2, refusals: 1 });

    places[0]?.release();
    expect([enter(two) !== undefined, waiting.used]).toEqual([true, 2]);
    while (leaves.length > 0) {
      for (const leave of leaves.splice(0)) leave();
      await flush();
    }
    expect([waiting.used, one.running, two.running]).toEqual([0, 0, 0]);
  });
});
