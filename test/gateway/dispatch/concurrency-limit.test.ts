import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConcurrencyLimit } from '../../../src/gateway/dispatch/admission.js';
import { SharedLimit } from '../../../src/wire/io/shared-limit.js';
import { flush } from '../../support/wire.js';

function queueing(concurrency: number, maxQueued: number, allWaiting?: SharedLimit) {
  const started: string[] = [];
  const releases = new Map<string, () => void>();
  const queue = new ConcurrencyLimit<string>({
    ...{ concurrency, maxQueued, allWaiting },
    onSlot: (name, release) => {
      started.push(name);
      releases.set(name, release);
    },
  });
  /** Returns whether the call was admitted or queued. */
  const enter = (name: string) => ['granted', 'waits'].includes(queue.enter(name));
  /** Releases the slot of a started call, once. */
  const leave = async (name: string) => {
    releases.get(name)?.();
    releases.delete(name);
    await flush();
  };
  return { queue, started, enter, leave };
}

describe('ConcurrencyLimit', () => {
  it('counts a withdrawn call no longer, from the moment it is withdrawn', () => {
    const { queue, enter } = queueing(1, 1);
    enter('a');
    enter('b');
    expect(enter('c')).toBe(false);
    queue.withdraw('b');
    expect(queue.queued).toBe(0);
    expect(enter('d')).toBe(true);
  });

  it('may let nothing wait at all', async () => {
    const { enter, leave } = queueing(1, 0);
    enter('a');
    expect(enter('b')).toBe(false);
    await leave('a');
    expect(enter('c')).toBe(true);
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

  it('keeps to its bounds and starts everyone who was not withdrawn, once and in order, whatever happens', async () => {
    const action = fc.record({
      do: fc.constantFrom('enter', 'enter', 'enter', 'leave', 'leave', 'withdraw', 'turn'),
      which: fc.nat(20),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
        const { queue, started, enter, leave } = queueing(2, 3);
        const places: boolean[] = [];
        const withdrawn = new Set<string>();
        for (const { do: what, which } of actions) {
          if (what === 'enter') places.push(enter(String(places.length)));
          if (what === 'leave') void leave(started.at(-1 - (which % 3)) ?? '');
          if (what === 'withdraw' && which < places.length && !started.includes(String(which))) {
            queue.withdraw(String(which));
            withdrawn.add(String(which));
          }
          if (what === 'turn') await flush();
          expect(queue.running).toBeLessThanOrEqual(2);
          expect(queue.queued).toBeLessThanOrEqual(3);
        }
        await flush();
        for (let name = 0; name < places.length; name += 1) await leave(String(name));
        const admitted = places.flatMap((isIn, name) => (isIn ? [String(name)] : []));
        expect(started).toEqual(admitted.filter((name) => !withdrawn.has(name)));
        expect([queue.running, queue.queued]).toEqual([0, 0]);
      }),
      { numRuns: 600 },
    );
  });
});

describe('several queues that share a bound', () => {
  it('keep no more calls waiting together than that, and name the bound', async () => {
    const waiting = new SharedLimit(2);
    const [one, two] = [queueing(1, 2, waiting), queueing(1, 2, waiting)];
    const verdicts = (queue: typeof one, ...names: string[]) => names.map((name) => queue.queue.enter(name));
    expect(verdicts(one, 'a', 'b', 'c', 'd')).toEqual(['granted', 'waits', 'waits', 'queue_full']);
    expect(verdicts(two, 'a', 'b')).toEqual(['granted', 'all_queues_full']);
    expect(waiting).toMatchObject({ used: 2, refusals: 1 });
    one.queue.withdraw('b');
    expect([...verdicts(two, 'c'), waiting.used]).toEqual(['waits', 2]);
    for (const name of ['a', 'b', 'c']) for (const queue of [one, two]) await queue.leave(name);
    expect([waiting.used, one.queue.running, two.queue.running]).toEqual([0, 0, 0]);
  });
});
