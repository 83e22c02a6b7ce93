import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FRAME, kindOf, lengthOf, lineAfter, writeFrameHeader } from '../../src/hub/wire.js';

describe('the header of a frame', () => {
  it('is read as it was written, for every kind, line and length', () => {
    const kinds = fc.constantFrom(...Object.values(FRAME));
    const lines = fc.integer({ min: 0, max: 2 ** 32 - 1 });
    fc.assert(
      fc.property(kinds, lines, fc.integer({ min: 0, max: 2 ** 28 - 1 }), (kind, line, length) => {
        const header = Buffer.alloc(8);
        writeFrameHeader(header, 0, kind, line, length);
        const first = header.readUInt32BE(0);
        expect([kindOf(first), lengthOf(first), header.readUInt32BE(4)]).toEqual([kind, length, line]);
      }),
    );
  });

  it('is refused for a payload whose length does not fit', () => {
    expect(() => writeFrameHeader(Buffer.alloc(8), 0, FRAME.message, 1, 2 ** 28)).toThrow(RangeError);
  });
});

describe('the numbers of lines', () => {
  it('begin again at 1 after the last that fits, since 0 is no line', () => {
    expect([lineAfter(0), lineAfter(1), lineAfter(2 ** 32 - 2), lineAfter(2 ** 32 - 1)]).toEqual([
      1,
      2,
      2 ** 32 - 1,
      1,
    ]);
  });
});
