import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readHello } from '../../../src/hub/server/hub-listener.js';
import { FirstLineReader, type Hello, MAX_HELLO_BYTES, WIRE } from '../../../src/hub/wire.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';

const HELLO: Hello = {
  ...({ wire: WIRE, proof: 'p', role: 'client', version: '1.0.0', pid: 1, folder: '/' } as const),
  ...{ environment: { A: 'é'.repeat(9_000) }, view: 'work', resumed: 0 },
};

/** Reads `stream` in these pieces; what follows an accepted hello is passed on. */
function read(stream: Buffer, pieces: readonly number[]) {
  const hellos: (Hello | undefined)[] = [];
  const rest: Buffer[] = [];
  const space = new Uint8Array(64);
  const next = {
    freeSpace: space,
    filled: (byteLength: number) => {
      rest.push(Buffer.from(space.subarray(0, byteLength)));
    },
  };
  const reader = new FirstLineReader((line) => {
    const hello = readHello(line);
    hellos.push(hello);
    if (hello !== undefined) reader.handOver(next);
  });
  for (let at = 0, turn = 0; at < stream.length; turn += 1) {
    const piece = stream.subarray(at, at + (pieces[turn % pieces.length] ?? 1));
    copyInto(reader, piece);
    at += piece.length;
  }
  return { hellos, rest: Buffer.concat(rest) };
}

describe('the hello of a connection', () => {
  it('is read in any pieces, and what follows reaches the next reader byte for byte', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(sizes, fc.string(), (pieces, after) => {
        const stream = Buffer.from(`${JSON.stringify(HELLO)}\n${after}`);
        const { hellos, rest } = read(stream, pieces);
        expect(hellos).toEqual([HELLO]);
        expect(rest.toString()).toBe(Buffer.from(after).toString());
      }),
      { numRuns: 100 },
    );
  });

  it.each([
    ['no JSON', 'x'],
    ['of another protocol', JSON.stringify({ ...HELLO, wire: WIRE + 1 })],
    ['without a proof', JSON.stringify({ ...HELLO, proof: undefined })],
    ['with another role', JSON.stringify({ ...HELLO, role: 'admin' })],
    ['with a variable that is no text', JSON.stringify({ ...HELLO, environment: { A: 1 } })],
    ['with a view that is no text', JSON.stringify({ ...HELLO, view: 1 })],
    ['an array', '[]'],
  ])('is refused if it is %s', (_what, line) => {
    expect(read(Buffer.from(`${line}\n`), [10_000]).hellos).toEqual([undefined]);
  });

  it('is refused once, and not stored, if it does not end', () => {
    expect(read(Buffer.alloc(MAX_HELLO_BYTES * 2, 'x'), [50_000]).hellos).toEqual([undefined]);
  });
});
