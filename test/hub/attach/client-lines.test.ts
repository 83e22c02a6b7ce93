import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClientLines, UnsettledLines } from '../../../src/hub/attach/client-lines.js';
import { copyInto } from '../../../src/io/byte-reader.js';
import { LineDecoder } from '../../../src/io/line-decoder.js';
import { repetitions } from '../../support/repetitions.js';

const MIB = 1024 * 1024;

function cutting() {
  const lines: string[] = [];
  const cut: number[] = [];
  const reader = new ClientLines((line, isCut) => {
    const pieces = Array.isArray(line) ? line : [line as Uint8Array];
    if (isCut) cut.push(lines.length);
    lines.push(Buffer.concat(pieces).toString('latin1'));
  });
  return { reader, lines, cut };
}

describe('the lines of a client', () => {
  it('are those that the hub counts, however the stream is cut', () => {
    const bytes = fc.array(fc.constantFrom(0x0a, 0x0a, 0x0d, 0x20, 0x09, 0x61, 0xc3, 0x00), { maxLength: 80 });
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(80), { maxLength: 8 }), fc.array(fc.nat(80)), (content, cuts, otherCuts) => {
        const all = Buffer.from(content);
        const { reader, lines } = cutting();
        for (const piece of piecesOf(all, cuts)) reader.add(piece);
        const counted: string[] = [];
        const decoder = new LineDecoder({
          maxLineBytes: 1024,
          sink: { line: (from, start, end) => counted.push(Buffer.from(from.subarray(start, end)).toString('latin1')) },
        });
        for (const piece of piecesOf(all, otherCuts)) copyInto(decoder, piece);
        // The hub skips white space before a line, which belongs to the line all the same.
        expect(lines.map((line) => line.replace(/^[ \t\r]+/, ''))).toEqual(counted);
        const rest = all.subarray(all.lastIndexOf(0x0a) + 1);
        expect(Buffer.concat(reader.unfinished)).toEqual(rest);
      }),
      { numRuns: repetitions({ full: 3_000, short: 500 }) },
    );
  });

  it('that are longer than any hub takes are kept by their beginning, and counted', () => {
    const { reader, lines, cut } = cutting();
    reader.add(Buffer.from('{"id":1}\n{"id":2,'));
    const piece = Buffer.alloc(MIB, 'x');
    for (let count = 0; count < 65; count += 1) reader.add(piece);
    expect(Buffer.concat(reader.unfinished).length).toBeLessThanOrEqual(1024);
    reader.add(Buffer.from('\n{"id":3}\n'));
    expect(lines).toEqual(['{"id":1}', '{"id":2,', '{"id":3}']);
    expect(cut).toEqual([1]);
  });
});

describe('the lines that are in flight', () => {
  it('are forgotten when they are settled, in any order', () => {
    const lines = new UnsettledLines();
    const line = () => ({ pieces: [], isCut: false, isReplay: false });
    for (let count = 0; count < 3; count += 1) lines.add(line());
    const [first, , third] = lines.all;
    lines.settle(2);
    lines.settle(2);
    lines.settle(99);
    expect([lines.all, lines.get(1), lines.get(2)]).toEqual([[first, third], first, undefined]);
    lines.settle(3);
    lines.settle(1);
    expect(lines.size).toBe(0);
  });
});

function piecesOf(all: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.filter((cut) => cut <= all.length).sort((one, other) => one - other), all.length];
  return at.slice(1).map((end, index) => all.subarray(at[index], end));
}
