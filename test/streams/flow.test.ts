import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { Flow } from '../../src/streams/flow.js';
import { flush } from '../support/wire.js';

/** A stream that flows, and what came out of it. */
function flowing() {
  const stream = new Readable({ read: () => {} });
  const seen: string[] = [];
  stream.on('data', (chunk) => seen.push(String(chunk)));
  return { stream, seen };
}

describe('Flow', () => {
  it('holds all streams back, and lets them run again without loss', async () => {
    const flow = new Flow();
    const [a, b] = [flowing(), flowing()];
    flow.add(a.stream);
    flow.add(b.stream);
    a.stream.push('1');
    await flush();
    flow.hold();
    flow.hold();
    a.stream.push('2');
    b.stream.push('3');
    await flush();
    expect([a.seen, b.seen]).toEqual([['1'], []]);
    flow.resume();
    await flush();
    expect([a.seen, b.seen]).toEqual([['1', '2'], ['3']]);
  });

  it('holds a stream that joins while the others are held', async () => {
    const flow = new Flow();
    flow.hold();
    const { stream, seen } = flowing();
    flow.add(stream);
    stream.push('1');
    await flush();
    expect(seen).toEqual([]);
    flow.resume();
    await flush();
    expect(seen).toEqual(['1']);
  });

  it('holds the streams of one source and no other, those that join included', async () => {
    const flow = new Flow();
    const [a, b, later] = [flowing(), flowing(), flowing()];
    flow.add(a.stream, 'a');
    flow.add(b.stream, 'b');
    flow.hold('a');
    flow.add(later.stream, 'a');
    for (const { stream } of [a, b, later]) stream.push('1');
    await flush();
    expect([a.seen, b.seen, later.seen]).toEqual([[], ['1'], []]);
    flow.resume('a');
    await flush();
    expect([a.seen, later.seen]).toEqual([['1'], ['1']]);
  });

  it('keeps a stream held until neither it nor all are to be', async () => {
    const flow = new Flow();
    const { stream, seen } = flowing();
    flow.add(stream, 'a');
    stream.push('1');
    flow.hold('a');
    flow.hold();
    flow.resume('a');
    await flush();
    expect(seen).toEqual([]);
    flow.hold('a');
    flow.resume();
    await flush();
    expect(seen).toEqual([]);
    flow.resume('a');
    await flush();
    expect(seen).toEqual(['1']);
  });

  it('lets a released stream run, then and later', async () => {
    const flow = new Flow();
    const { stream, seen } = flowing();
    flow.add(stream);
    flow.hold();
    stream.push('1');
    flow.release(stream);
    await flush();
    flow.resume();
    flow.hold();
    stream.push('2');
    await flush();
    expect(seen).toEqual(['1', '2']);
  });

  it('does not wake a stream that pauses for reasons of its own when nothing was held', async () => {
    const flow = new Flow();
    const { stream, seen } = flowing();
    flow.add(stream);
    stream.pause();
    stream.push('1');
    flow.resume();
    await flush();
    expect(seen).toEqual([]);
  });

  it('forgets a stream that closed', async () => {
    const flow = new Flow();
    const { stream } = flowing();
    flow.add(stream);
    stream.destroy();
    await flush();
    flow.hold();
    expect(stream.isPaused()).toBe(false);
  });
});
