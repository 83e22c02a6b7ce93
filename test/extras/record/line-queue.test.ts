import { describe, expect, it } from 'vitest';
import { LineQueue } from '../../../src/extras/record/line-queue.js';

/** A disk that the test controls. */
function disk(delayMs = 0) {
  const written: string[] = [];
  const faults: unknown[] = [];
  let pass = () => {};
  let fault: Error | undefined;
  let isSlow = false;
  const queue = new LineQueue({
    sink: {
      write: async (text) => {
        if (isSlow) await new Promise<void>((resolve) => (pass = resolve));
        if (fault !== undefined) throw fault;
        written.push(...text.split('\n').slice(0, -1));
      },
      close: async () => {},
    },
    maxBytes: delayMs === 0 ? 10 : 1_000_000,
    delayMs,
    describeGap: (lines) => `${lines} missing`,
    onFault: (error) => faults.push(error),
  });
  return {
    queue,
    written,
    faults,
    offer: (...lines: string[]) => {
      for (const line of lines) queue.offer(line.length, () => () => line);
    },
    slow: (value: boolean) => {
      isSlow = value;
    },
    proceed: () => pass(),
    fail: (error: Error | undefined) => {
      fault = error;
    },
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a queue of lines', () => {
  it('writes nothing in the turn in which it gets a line', async () => {
    const { queue, written, offer } = disk();
    offer('one', 'two');
    expect(written).toEqual([]);
    await queue.close();
    expect(written).toEqual(['one', 'two']);
  });

  it('lets lines wait for others if it may, unless they fill a piece, and writes what waits when it is closed', async () => {
    const { queue, written, offer } = disk(600_000);
    offer('one');
    await turn();
    expect(written).toEqual([]);
    offer('x'.repeat(64 * 1024));
    await turn();
    await turn();
    expect(written.length).toBe(2);
    offer('three');
    await queue.close();
    expect(written.length).toBe(3);
  });

  it('F126: drops what has no room while the disk is slow, and says where and how much', async () => {
    const { queue, written, offer, slow, proceed } = disk();
    slow(true);
    offer('first');
    await turn();
    offer('12345', '67890', 'no room', 'none either');
    slow(false);
    proceed();
    await turn();
    await turn();
    offer('again');
    await queue.close();
    expect(written).toEqual(['first', '2 missing', '12345', '67890', 'again']);
    expect(queue.dropped).toBe(2);
  });

  it('does not copy what it has no room for', () => {
    const { queue } = disk();
    queue.offer(11, () => expect.unreachable());
    expect(queue.dropped).toBe(1);
  });

  it('F126: counts what a failing disk loses, reports the first fault, and goes on when the disk works again', async () => {
    const { queue, written, faults, offer, fail } = disk();
    const full = new Error('ENOSPC');
    fail(full);
    for (const line of ['a', 'b', 'c']) {
      offer(line);
      await turn();
      await turn();
    }
    fail(undefined);
    offer('d');
    await queue.close();
    expect(written).toEqual(['3 missing', 'd']);
    expect(faults).toEqual([full]);
    expect([queue.written, queue.dropped]).toEqual([1, 3]);
  });
});
