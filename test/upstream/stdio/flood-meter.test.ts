import { describe, expect, it } from 'vitest';
import { PacedReader } from '../../../src/upstream/stdio/flood-meter.js';

const KIB = 1024;

function reading() {
  const work = { isTroubled: false, isWaiting: false, chargedMs: 0 };
  let cost = 0;
  const memory = new Uint8Array(1024 * KIB);
  const reader = new PacedReader({ freeSpace: memory, filled: () => (work.chargedMs += cost) }, work);
  /** Fills what is offered, or so much of it, and returns how much was offered. */
  const read = (costMs: number, byteLength?: number) => {
    const offered = reader.freeSpace.length;
    cost = costMs;
    reader.filled(byteLength ?? offered);
    return offered / KIB;
  };
  return { work, read };
}

describe('the size of a read', () => {
  it('grows with answers, up to 256 KiB, however large they are', () => {
    const { read } = reading();
    expect(Array.from({ length: 9 }, () => read(0))).toEqual([4, 8, 16, 32, 64, 128, 256, 256, 256]);
  });

  it('follows what comes, and is small again after a read that answered nothing', () => {
    const { read } = reading();
    expect([read(0), read(0), read(0, 6 * KIB), read(0, 100), read(0), read(0), read(0.1), read(0)]).toEqual([
      4, 8, 16, 12, 4, 8, 16, 4,
    ]);
  });

  it('stays small for a server that floods', () => {
    const { work, read } = reading();
    work.isTroubled = true;
    expect([read(0), read(0), read(0.1), read(0)]).toEqual([4, 4, 4, 4]);
  });
});
