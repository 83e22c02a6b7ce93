import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  END_OF_INPUT,
  FRAME,
  type FrameKind,
  FrameReader,
  kindOfFrame,
  lengthOfFrame,
  lineAfter,
  MarkedInput,
  withoutMark,
  writeFrameHeader,
} from '../../src/hub/wire.js';
import { copyInto } from '../../src/wire/io/byte-reader.js';
import { repetitions } from '../support/repetitions.js';

describe('the header of a frame', () => {
  it('is read as it was written, for every kind, line and length', () => {
    const kinds = fc.constantFrom(...Object.values(FRAME));
    const lines = fc.integer({ min: 0, max: 2 ** 32 - 1 });
    fc.assert(
      fc.property(kinds, lines, fc.integer({ min: 0, max: 2 ** 28 - 1 }), (kind, line, length) => {
        const header = Buffer.alloc(8);
        writeFrameHeader(header, 0, kind, line, length);
        const first = header.readUInt32BE(0);
        expect([kindOfFrame(first), lengthOfFrame(first), header.readUInt32BE(4)]).toEqual([kind, length, line]);
      }),
    );
  });

  it('is refused for a payload whose length does not fit', () => {
    expect(() => writeFrameHeader(Buffer.alloc(8), 0, FRAME.message, 1, 2 ** 28)).toThrow(RangeError);
  });
});

describe('the bytes of a client', () => {
  it('arrive in any pieces up to their end, which no byte of the client can stand for', () => {
    const bytes = fc.array(fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constant(END_OF_INPUT)), { maxLength: 40 });
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(bytes, sizes, (sent, pieces) => {
        const read: number[] = [];
        let ends = 0;
        const space = new Uint8Array(8);
        const reader = {
          freeSpace: space,
          filled: (byteLength: number) => {
            expect(byteLength).toBeGreaterThan(0);
            read.push(...space.subarray(0, byteLength));
          },
        };
        const input = new MarkedInput(reader, () => {
          ends += 1;
        });
        const stream = Uint8Array.of(...withoutMark(Uint8Array.from(sent)), END_OF_INPUT);
        for (let at = 0, turn = 0; at < stream.length; turn += 1) {
          const piece = stream.subarray(at, at + (pieces[turn % pieces.length] ?? 1));
          expect(ends).toBe(0);
          copyInto(input, piece);
          at += piece.length;
        }
        expect([read, ends]).toEqual([sent.map((byte) => (byte === END_OF_INPUT ? 0xfe : byte)), 1]);
      }),
    );
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

interface Frame {
  readonly kind: FrameKind;
  readonly line: number;
  readonly payload: Buffer;
}

function encoded(frames: readonly Frame[]): Buffer {
  return Buffer.concat(
    frames.flatMap(({ kind, line, payload }) => {
      const header = Buffer.alloc(8);
      writeFrameHeader(header, 0, kind, line, payload.length);
      return [header, payload];
    }),
  );
}

/** Reads the stream in pieces of these sizes, in turn. Frames of even lines below 100 are dropped. */
function read(stream: Buffer, sizes: readonly number[], isLent: (write: number) => boolean) {
  const views: { view: Uint8Array; copy: Buffer; isLent: boolean }[] = [];
  const told: string[] = [];
  const reader = new FrameReader({
    write: (bytes) => {
      const lent = isLent(views.length);
      views.push({ view: bytes, copy: Buffer.from(bytes), isLent: lent });
      if (lent) reader.lend();
    },
    message: (line) => {
      told.push(`${line}`);
      return isDropped(line);
    },
    control: (kind, line, payload) => told.push(`${kind} ${line} ${payload}`),
  });
  for (let at = 0, turn = 0; at < stream.length; turn += 1) {
    const { freeSpace } = reader;
    const piece = stream.subarray(at, at + Math.min(sizes[turn % sizes.length] ?? 1, freeSpace.length));
    freeSpace.set(piece);
    reader.filled(piece.length);
    at += piece.length;
  }
  return { reader, told, views, written: Buffer.concat(views.map(({ copy }) => copy)) };
}

const isDropped = (line: number) => line < 100 && line > 0 && line % 2 === 0;

const frames = fc.array(
  fc.record({
    kind: fc.constantFrom(FRAME.message, FRAME.message, FRAME.message, FRAME.keep, FRAME.moved),
    line: fc.nat(200),
    size: fc.oneof(fc.nat(40), fc.nat(3_000), fc.integer({ min: 60_000, max: 70_000 }), fc.nat(300_000)),
  }),
  { maxLength: 12 },
);

describe('frames in any pieces', () => {
  it('come out whole and in order, without those that are dropped, and lent memory stays as it is', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 65_536 })), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(frames, sizes, fc.nat(3), (all, pieces, lendEvery) => {
        const sent = all.map(({ kind, line, size }, index): Frame => {
          const length = kind === FRAME.message ? size : size % 500;
          return { kind, line, payload: Buffer.from(`${String.fromCharCode(97 + index).repeat(length)}\n`) };
        });
        // One byte a time takes long for large streams.
        const stream = encoded(sent);
        const steps = pieces.some((size) => size > 1_000) ? pieces : [...pieces, 20_000];
        const { reader, told, views, written } = read(
          stream,
          steps,
          (write) => lendEvery > 0 && write % lendEvery === 0,
        );
        const messages = sent.filter(({ kind }) => kind === FRAME.message);
        const kept = messages.filter(({ line, payload }) => !isDropped(line) && payload.length > 1);
        expect(written.equals(Buffer.concat(kept.map(({ payload }) => payload)))).toBe(true);
        expect(told).toEqual(
          sent.map(({ kind, line, payload }) =>
            kind === FRAME.message ? `${line}` : `${kind} ${line} ${payload.toString().trimEnd()}`,
          ),
        );
        for (const { view, copy, isLent } of views) if (isLent) expect(copy.equals(view)).toBe(true);
        expect([reader.isWithinFrame, reader.isWithinMessage]).toEqual([false, false]);
      }),
      { numRuns: repetitions({ full: 1_000, short: 100 }) },
    );
  });

  it('reach the client whole or not at all up to 64 KiB', () => {
    const small = encoded([{ kind: FRAME.message, line: 1, payload: Buffer.alloc(65_536 - 8, 'x') }]);
    const { reader, written } = read(small.subarray(0, -1), [65_536], () => false);
    expect([written.length, reader.isWithinMessage, reader.isWithinFrame]).toEqual([0, false, true]);
    const large = encoded([{ kind: FRAME.message, line: 1, payload: Buffer.alloc(65_536, 'x') }]);
    const cut = read(large.subarray(0, -1), [65_536], () => false);
    expect([cut.written.length, cut.reader.isWithinMessage]).toEqual([65_535, true]);
  });
});
