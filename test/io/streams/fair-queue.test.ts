import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../src/io/streams/fair-writer.js';

interface Sent {
  readonly index: number;
  readonly bytes: number;
  readonly source: string | undefined;
}

/** What is sent, with takes in between. */
const steps = fc.array(
  fc.oneof(
    fc.record({
      bytes: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 1_000_000 })),
      source: fc.constantFrom('a', 'b', 'c', undefined),
    }),
    fc.constant('take' as const),
  ),
  { maxLength: 80 },
);

/** Carries the steps out and takes the rest; calls `onTaken` with what waited just before. */
function run(
  script: (Omit<Sent, 'index'> | 'take')[],
  onTaken: (taken: Sent, waiting: readonly Sent[]) => void = () => {},
) {
  const queue = new FairQueue<Sent>();
  const sent: Sent[] = [];
  const taken: Sent[] = [];
  let waiting: Sent[] = [];
  const take = () => {
    const next = queue.take()?.item;
    if (next === undefined) return false;
    onTaken(next, waiting);
    waiting = waiting.filter((each) => each !== next);
    taken.push(next);
    expect(queue.bytes).toBe(waiting.reduce((sum, { bytes }) => sum + bytes, 0));
    return true;
  };
  for (const step of script) {
    if (step === 'take') {
      take();
      continue;
    }
    const item = { ...step, index: sent.length };
    sent.push(item);
    waiting.push(item);
    queue.add(item, item.bytes, item.source);
  }
  while (take());
  expect(queue.isEmpty).toBe(true);
  return { sent, taken };
}

describe('FairQueue', () => {
  it('gives out what came in, each once', () => {
    fc.assert(
      fc.property(steps, (script) => {
        const { sent, taken } = run(script);
        expect([...taken].sort((a, b) => a.index - b.index)).toEqual(sent);
      }),
    );
  });

  it('keeps the order of each source', () => {
    fc.assert(
      fc.property(steps, (script) => {
        run(script, (taken, waiting) => {
          expect(waiting.find(({ source }) => source === taken.source)).toBe(taken);
        });
      }),
    );
  });

  it('lets nothing pass what has no source, and that pass nothing', () => {
    fc.assert(
      fc.property(steps, (script) => {
        run(script, (taken, waiting) => {
          const before = waiting.filter(({ index }) => index < taken.index);
          if (taken.source === undefined) expect(before).toEqual([]);
          else expect(before.filter(({ source }) => source === undefined)).toEqual([]);
        });
      }),
    );
  });

  it('lets nobody pass for more bytes than the one who waits has had itself, and one message', () => {
    const sourced = fc.array(
      fc.record({ bytes: fc.integer({ min: 1, max: 100_000 }), source: fc.constantFrom('a', 'b', 'c') }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(
        sourced,
        fc.constantFrom('a', 'b', 'c'),
        fc.integer({ min: 1, max: 5_000 }),
        (script, mine, bytes) => {
          const queue = new FairQueue<string>();
          let ahead = 0;
          const largest = new Map<string, number>();
          for (const each of script) {
            queue.add(each.source, each.bytes, each.source);
            if (each.source === mine) ahead += each.bytes;
            largest.set(each.source, Math.max(each.bytes, largest.get(each.source) ?? 0));
          }
          queue.add('mine', bytes, mine);
          const passed = new Map<string, number>();
          for (let next = queue.take(); next !== undefined && next.item !== 'mine'; next = queue.take()) {
            passed.set(next.item, (passed.get(next.item) ?? 0) + next.bytes);
          }
          for (const [source, had] of passed) {
            if (source !== mine) expect(had).toBeLessThanOrEqual(ahead + (largest.get(source) ?? 0));
          }
        },
      ),
    );
  });

  it('lets a little go before much that has waited for longer', () => {
    const queue = new FairQueue<string>();
    queue.add('large 1', 1_000_000, 'far');
    queue.add('large 2', 1_000_000, 'far');
    queue.add('large 3', 1_000_000, 'far');
    expect(queue.take()?.item).toBe('large 1');
    queue.add('small 1', 100, 'near');
    queue.add('small 2', 100, 'near');
    expect([queue.take()?.item, queue.take()?.item, queue.take()?.item]).toEqual(['small 1', 'small 2', 'large 2']);
  });

  it('lets large ones have their turn while small ones never end', () => {
    const queue = new FairQueue<string>();
    queue.add('large', 10_000, 'far');
    queue.add('large', 10_000, 'far');
    queue.take();
    let small = 0;
    do {
      queue.add('small', 100, 'near');
      small += 1;
    } while (queue.take()?.item === 'small');
    expect(small).toBeLessThanOrEqual(10_000 / 100 + 1);
  });

  it('counts what waits of each source', () => {
    const queue = new FairQueue<number>();
    queue.add(1, 10, 'a');
    queue.add(2, 20, 'b');
    queue.add(3, 30, undefined);
    queue.add(4, 40, 'a');
    expect([queue.bytesOf('a'), queue.bytesOf('b'), queue.bytesOf('c'), queue.bytes]).toEqual([50, 20, 0, 100]);
    queue.take();
    expect([queue.bytesOf('a'), queue.bytes]).toEqual([40, 90]);
    queue.clear();
    expect([queue.isEmpty, queue.bytesOf('a'), queue.bytes]).toEqual([true, 0, 0]);
    expect(queue.take()).toBeUndefined();
  });
});
