import { describe, expect, it } from 'vitest';
import { type ByteReader, copyInto } from '../../../src/io/byte-reader.js';
import { YieldingReader } from '../../../src/upstream/stdio/yielding-reader.js';

const KIB = 1024;

/** A reader behind which each piece costs so much, and the account of which may have to wait. */
function reading({ costMs = 0, waitsAfter = Number.POSITIVE_INFINITY } = {}) {
  const pieces: string[] = [];
  const account = { chargedMs: 0, piecesLeft: waitsAfter, mustWait: () => account.piecesLeft <= 0 };
  let memory = new Uint8Array(16 * KIB);
  const inner: ByteReader = {
    get freeSpace() {
      return memory;
    },
    filled: (byteLength) => {
      pieces.push(Buffer.from(memory.subarray(0, byteLength)).toString());
      account.chargedMs += costMs;
      account.piecesLeft -= 1;
      // What was read stays as it is; the next bytes go elsewhere.
      memory = new Uint8Array(16 * KIB);
    },
  };
  const reader = new YieldingReader(inner, account);
  const moves: Uint8Array[] = [];
  reader.whenMoved(() => moves.push(reader.freeSpace));
  const go = (after: number) => {
    account.piecesLeft = after;
    reader.proceed();
  };
  return { reader, pieces, account, moves, go };
}

const numbers = (bytes: number) =>
  Array.from({ length: bytes }, (_, index) => `${index}\n`)
    .join('')
    .slice(0, bytes);

describe('a read of short lines', () => {
  it('is passed on in pieces, which grow while they answer requests', () => {
    const { reader, pieces } = reading();
    const text = numbers(8 * KIB);
    copyInto(reader, Buffer.from(text));
    expect(pieces.map(({ length }) => length)).toEqual([512, 1024, 2048, 4096, 512]);
    expect(pieces.join('')).toBe(text);
  });

  it('is passed on in small pieces while they answer nothing', () => {
    const { reader, pieces } = reading({ costMs: 0.1 });
    const text = numbers(4 * KIB);
    copyInto(reader, Buffer.from(text));
    expect(pieces.map(({ length }) => length)).toEqual(Array.from({ length: 8 }, () => 512));
    expect(pieces.join('')).toBe(text);
  });

  it('stops where the account has to wait, and goes on from there', () => {
    const { reader, pieces, moves, go } = reading({ costMs: 0.1, waitsAfter: 3 });
    const text = numbers(4 * KIB);
    copyInto(reader, Buffer.from(text));
    expect(pieces).toHaveLength(3);
    go(0);
    expect(pieces).toHaveLength(3);
    go(2);
    expect(pieces).toHaveLength(5);
    // Whoever reads into the free space has to know that it is elsewhere now.
    expect(moves.at(-1)).toBe(reader.freeSpace);
    go(100);
    expect(pieces.join('')).toBe(text);
    const before = moves.length;
    go(100);
    expect([pieces.length, moves.length]).toEqual([8, before]);
  });

  it('begins only when the account need not wait, also behind a long line', () => {
    const { reader, pieces, go } = reading({ waitsAfter: 0 });
    const text = `${'x'.repeat(1_500)}\n${numbers(2 * KIB)}`;
    copyInto(reader, Buffer.from(text));
    expect(pieces).toEqual([]);
    go(100);
    expect(pieces.join('')).toBe(text);
  });

  it('is passed on in order when more comes although the account waits', () => {
    const { reader, pieces, go } = reading({ waitsAfter: 1 });
    copyInto(reader, Buffer.from(numbers(2 * KIB)));
    copyInto(reader, Buffer.from('and more'));
    expect(pieces).toHaveLength(1);
    go(100);
    expect(pieces.join('')).toBe(`${numbers(2 * KIB)}and more`);
  });
});

describe('any other read', () => {
  it.each([
    ['is small', numbers(512)],
    ['is a part of a long line', 'x'.repeat(8 * KIB)],
    ['holds long lines', `${'x'.repeat(200)}\n`.repeat(20)],
  ])('is passed on as it is: one that %s', (_, text) => {
    const { reader, pieces } = reading({ waitsAfter: 0 });
    copyInto(reader, Buffer.from(text));
    expect(pieces.length).toBe(1);
    expect(pieces[0]).toBe(text);
  });
});
