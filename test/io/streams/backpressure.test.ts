import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { Backpressure } from '../../../src/io/streams/backpressure.js';
import { flush } from '../../support/wire.js';

/** A stream that flows, and what came out of it. */
function flowing() {
  const stream = new Readable({ read: () => {} });
  const seen: string[] = [];
  stream.on('data', (chunk) => seen.push(String(chunk)));
  return { stream, seen };
}

describe('Flow', () => {
  it('holds all streams back, and lets them run again without loss', async () => {
    const backpressure = new Backpressure();
    const [a, b] = [flowing(), flowing()];
    backpressure.add(a.stream);
    backpressure.add(b.stream);
    a.stream.push('1');
    await flush();
    backpressure.hold();
    backpressure.hold();
    a.stream.push('2');
    b.stream.push('3');
    await flush();
    expect([a.seen, b.seen]).toEqual([['1'], []]);
    backpressure.resume();
    await flush();
    expect([a.seen, b.seen]).toEqual([['1', '2'], ['3']]);
  });

  it('holds a stream that joins while the others are held', async () => {
    const backpressure = new Backpressure();
    backpressure.hold();
    const { stream, seen } = flowing();
    backpressure.add(stream);
    stream.push('1');
    await flush();
    expect(seen).toEqual([]);
    backpressure.resume();
    await flush();
    expect(seen).toEqual(['1']);
  });

  it('holds the streams of one source and no other, those that join included', async () => {
    const backpressure = new Backpressure();
    const [a, b, later] = [flowing(), flowing(), flowing()];
    backpressure.add(a.stream, 'a');
    backpressure.add(b.stream, 'b');
    backpressure.hold('a');
    backpressure.add(later.stream, 'a');
    for (const { stream } of [a, b, later]) stream.push('1');
    await flush();
    expect([a.seen, b.seen, later.seen]).toEqual([[], ['1'], []]);
    backpressure.resume('a');
    await flush();
    expect([a.seen, later.seen]).toEqual([['1'], ['1']]);
  });

  it('keeps a stream held until neither it nor all are to be', async () => {
    const backpressure = new Backpressure();
    const { stream, seen } = flowing();
    backpressure.add(stream, 'a');
    stream.push('1');
    backpressure.hold('a');
    backpressure.hold();
    backpressure.resume('a');
    await flush();
    expect(seen).toEqual([]);
    backpressure.hold('a');
    backpressure.resume();
    await flush();
    expect(seen).toEqual([]);
    backpressure.resume('a');
    await flush();
    expect(seen).toEqual(['1']);
  });

  it('lets a released stream run, then and later', async () => {
    const backpressure = new Backpressure();
    const { stream, seen } = flowing();
    backpressure.add(stream);
    backpressure.hold();
    stream.push('1');
    backpressure.release(stream);
    await flush();
    backpressure.resume();
    backpressure.hold();
    stream.push('2');
    await flush();
    expect(seen).toEqual(['1', '2']);
  });

  it('does not wake a stream that pauses for reasons of its own when nothing was held', async () => {
    const backpressure = new Backpressure();
    const { stream, seen } = flowing();
    backpressure.add(stream);
    stream.pause();
    stream.push('1');
    backpressure.resume();
    await flush();
    expect(seen).toEqual([]);
  });

  it('forgets a stream that closed', async () => {
    const backpressure = new Backpressure();
    const { stream } = flowing();
    backpressure.add(stream);
    stream.destroy();
    await flush();
    backpressure.hold();
    expect(stream.isPaused()).toBe(false);
  });
});
