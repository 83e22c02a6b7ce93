// A pipe whose reader takes nothing until the test says so, for tests of backpressure.
import type { Writable } from 'node:stream';
import { flush, writableTo } from './wire.js';

/** A pipe, and its reader, which takes what was written when the test says so. */
export interface SlowReader {
  readonly pipe: Writable;
  /** Takes what one write has written; resolves with whether there was anything. */
  take(): Promise<boolean>;
  /** Takes everything, write by write. */
  takeAll(): Promise<void>;
  /** Everything that was taken, as it was when it was taken. */
  text(): string;
}

export function slowReader(): SlowReader {
  const read: Buffer[] = [];
  let taken: (() => void) | undefined;
  const pipe = writableTo((chunks, done) => {
    taken = () => {
      // A copy, since the writer uses the memory again.
      read.push(...chunks.map((chunk) => Buffer.from(chunk)));
      done();
    };
  });
  const take = async () => {
    await flush();
    const takeIt = taken;
    taken = undefined;
    takeIt?.();
    await flush();
    return takeIt !== undefined;
  };
  const takeAll = async () => {
    while (await take());
  };
  return { pipe, take, takeAll, text: () => Buffer.concat(read).toString() };
}
