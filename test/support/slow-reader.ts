import type { Writable } from 'node:stream';
import { flush, writableTo } from './wire.js';

/** The other end of a pipe, which takes what was written when it is told to. */
export interface SlowReader {
  readonly pipe: Writable;
  /** Takes what was written at once; returns whether there was anything. */
  take(): Promise<boolean>;
  /** Takes all that there is, in as many writes as it comes. */
  takeAll(): Promise<void>;
  /** All that was taken, as it was at that moment. */
  text(): string;
}

export function slowReader(): SlowReader {
  const read: Buffer[] = [];
  let taken: (() => void) | undefined;
  const pipe = writableTo((chunks, done) => {
    taken = () => {
      // A copy: what becomes of the memory afterwards must not show.
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
