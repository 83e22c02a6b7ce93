import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeldBytes } from '../../src/jsonrpc/held-bytes.js';

describe('bytes that are held until all have come', () => {
  it('are the same in the same order, whatever the sizes of their pieces and the room reserved', () => {
    const sizes = fc.array(fc.oneof(fc.nat(20), fc.integer({ min: 4_000, max: 4_200 }), fc.nat(20_000)));
    const held = new HeldBytes();
    fc.assert(
      fc.property(sizes, fc.nat(10), fc.nat(100_000), (lengths, reservedAt, spare) => {
        const pieces = lengths.map((length, index) => Buffer.alloc(length, index + 1));
        for (const [index, piece] of pieces.entries()) {
          if (index === reservedAt) held.reserve(held.length + spare);
          held.add(piece);
        }
        const whole = Buffer.concat(pieces);
        expect(held.length).toBe(whole.length);
        expect(whole.equals(held.take())).toBe(true);
        expect(held.length).toBe(0);
      }),
    );
  });

  it('stay as they were when others come after them', () => {
    const held = new HeldBytes();
    held.add(Buffer.from('first'));
    const first = held.take();
    held.add(Buffer.from('other'));
    held.take();
    expect(Buffer.from(first).toString()).toBe('first');
  });

  it('are not copied again when they nearly fill the room that was reserved', () => {
    const held = new HeldBytes();
    held.reserve(100_000);
    for (const mark of ['a', 'b', 'c']) held.add(Buffer.alloc(30_000, mark));
    expect(held.take().buffer.byteLength).toBe(100_000);
  });

  it('keep no room alive that is much larger than they are', () => {
    const held = new HeldBytes();
    held.reserve(100_000);
    held.add(Buffer.alloc(30_000, 'a'));
    expect(held.take().buffer.byteLength).toBe(30_000);
  });
});
