import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventStreamReader } from '../../../src/upstream/http/event-stream.js';
import type { ByteReader } from '../../../src/wire/io/byte-reader.js';

/** Reads the chunks, and tells everything that came of them. */
function read(...chunks: Uint8Array[]) {
  let text = '';
  const endpoints: string[] = [];
  const freeSpace = new Uint8Array(64);
  const messages: ByteReader = {
    freeSpace,
    filled: (length) => {
      text += Buffer.from(freeSpace.subarray(0, length)).toString('latin1');
    },
    whenMoved: () => {},
  };
  const reader = new EventStreamReader({ messages, onEndpoint: (url) => endpoints.push(url) });
  // A copy, because a stream hands out its own memory.
  for (const chunk of chunks) reader.push(Uint8Array.from(chunk));
  const { lastEventId, retryMs } = reader;
  return { lines: Buffer.from(text, 'latin1').toString().split('\n').slice(0, -1), endpoints, lastEventId, retryMs };
}

const STREAM = [
  '\uFEFF: a comment',
  'event: endpoint',
  'data: /messages?s=1',
  '',
  'id: 7',
  'retry: 1500',
  'data: {"n":1,',
  'data:"text":"ä"}',
  '',
  ':',
  'event: message',
  'data: {"n":2}',
  'id: 8',
  '',
  'id: primed',
  'data:',
  'data: ',
  '',
  'event: ping',
  'data: {"n":3}',
  '',
  'unknown: field',
  'data',
  'retry: soon',
  'id: null\0',
  '',
  '',
];
const EXPECTED = {
  lines: ['{"n":1, "text":"ä"}', '{"n":2}'],
  endpoints: ['/messages?s=1'],
  lastEventId: 'primed',
  retryMs: 1500,
};

describe.each([
  ['LF', '\n'],
  ['CR', '\r'],
  ['CRLF', '\r\n'],
])('an event stream with lines that end in %s', (_, end) => {
  const bytes = Buffer.from(STREAM.join(end));

  it('is the same wherever it is cut', () => {
    expect(read(bytes)).toEqual(EXPECTED);
    expect(read(...[...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(EXPECTED);
    for (let at = 1; at < bytes.length; at += 1)
      expect(read(bytes.subarray(0, at), bytes.subarray(at))).toEqual(EXPECTED);
  });

  it('is the same in pieces of any sizes', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 8 }), (cuts) => {
        const ends = [...cuts, bytes.length].sort((a, b) => a - b);
        const pieces = ends.map((to, index) => bytes.subarray(ends[index - 1] ?? 0, to));
        expect(read(...pieces)).toEqual(EXPECTED);
      }),
    );
  });
});

describe('a value that is no data', () => {
  it('is cut before it fills memory', () => {
    const { lastEventId } = read(Buffer.from(`id: ${'x'.repeat(20_000)}\n\n`));
    expect(lastEventId).toHaveLength(8 * 1024);
  });
});
