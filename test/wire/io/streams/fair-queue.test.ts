import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../../src/wire/io/streams/fair-writer.js';

describe('FairQueue', () => {
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
});
