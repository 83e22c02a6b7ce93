import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { frameReader } from '../../../src/web/page/stream.js';

describe('the reader of the stream', () => {
  it('returns the frame of each event, and nothing for a comment', () => {
    expect(frameReader()('data: {"a":1}\n\n: still here\n\ndata: {"b":"data: x"}\n\n')).toEqual([
      { a: 1 },
      { b: 'data: x' },
    ]);
  });

  it('finds the same frames however the stream is cut', () => {
    const text = 'data: 1\n\n: \n\ndata: 2\n\ndata: 3\n\n';
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (cuts) => {
        const read = frameReader();
        const places = [0, ...cuts.sort((a, b) => a - b), text.length];
        expect(places.slice(1).flatMap((end, at) => read(text.slice(places[at], end)))).toEqual([1, 2, 3]);
      }),
    );
  });
});
