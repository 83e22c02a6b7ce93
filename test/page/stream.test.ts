import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventParser } from '../../src/page/stream.js';

describe('the parser of the stream', () => {
  it('returns the data of each event, and no comment', () => {
    const parser = new EventParser();
    expect(parser.push('id: 1\ndata: {"a":1}\n\n: still here\n\ndata:two\ndata: lines\n\n')).toEqual([
      '{"a":1}',
      'two\nlines',
    ]);
  });

  it('finds the same events however the stream is cut', () => {
    const text = 'id: 1\ndata: one\n\n: comment\n\nid: 2\r\ndata: two\r\n\r\ndata: three\n\n';
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (cuts) => {
        const parser = new EventParser();
        const places = [0, ...cuts.sort((a, b) => a - b), text.length];
        const events = places.slice(1).flatMap((end, at) => parser.push(text.slice(places[at], end)));
        expect(events).toEqual(['one', 'two', 'three']);
      }),
    );
  });
});
