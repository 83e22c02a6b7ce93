import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Backpressure, type ClientBackpressure } from '../../../../src/wire/io/streams/backpressure.js';
import { flush } from '../../../support/wire.js';

/** A stream that flows, and what came out of it. */
function flowing() {
  const stream = new Readable({ read: () => {} });
  const seen: string[] = [];
  stream.on('data', (chunk) => seen.push(String(chunk)));
  return { stream, seen };
}

/** The streams of servers, by the names of those, and which of them are paused. */
function joined(backpressure: Backpressure, ...sources: string[]) {
  const streams = sources.map((source) => {
    const { stream } = flowing();
    backpressure.add(stream, source);
    return { source, stream };
  });
  return () => streams.filter(({ stream }) => stream.isPaused()).map(({ source }) => source);
}

describe('one client', () => {
  it('pauses all streams, and resumes them without loss', async () => {
    const backpressure = new Backpressure();
    const client = backpressure.client();
    const [a, b] = [flowing(), flowing()];
    backpressure.add(a.stream);
    backpressure.add(b.stream);
    a.stream.push('1');
    await flush();
    client.pause();
    a.stream.push('2');
    b.stream.push('3');
    await flush();
    expect([a.seen, b.seen]).toEqual([['1'], []]);
    client.resume();
    await flush();
    expect([a.seen, b.seen]).toEqual([['1', '2'], ['3']]);
  });

  it('pauses a stream that joins while the others are paused', async () => {
    const backpressure = new Backpressure();
    const client = backpressure.client();
    client.pause();
    const { stream, seen } = flowing();
    backpressure.add(stream);
    stream.push('1');
    await flush();
    expect(seen).toEqual([]);
    client.resume();
    await flush();
    expect(seen).toEqual(['1']);
  });

  it('pauses the streams of one source and no other, those that join included', async () => {
    const backpressure = new Backpressure();
    const client = backpressure.client();
    const [a, b, later] = [flowing(), flowing(), flowing()];
    backpressure.add(a.stream, 'a');
    backpressure.add(b.stream, 'b');
    client.pause('a');
    backpressure.add(later.stream, 'a');
    for (const { stream } of [a, b, later]) stream.push('1');
    await flush();
    expect([a.seen, b.seen, later.seen]).toEqual([[], ['1'], []]);
    client.resume('a');
    await flush();
    expect([a.seen, later.seen]).toEqual([['1'], ['1']]);
  });

  it('resumes a released stream, and does not pause it again', async () => {
    const backpressure = new Backpressure();
    const client = backpressure.client();
    const { stream, seen } = flowing();
    backpressure.add(stream);
    client.pause();
    stream.push('1');
    backpressure.release(stream);
    await flush();
    client.resume();
    client.pause();
    stream.push('2');
    await flush();
    expect(seen).toEqual(['1', '2']);
  });

  it('does not wake a stream that pauses for reasons of its own', async () => {
    const backpressure = new Backpressure();
    const client = backpressure.client();
    const { stream, seen } = flowing();
    backpressure.add(stream);
    stream.pause();
    stream.push('1');
    client.resume();
    client.close();
    await flush();
    expect(seen).toEqual([]);
  });

  it('does not pause a stream that has closed', async () => {
    const backpressure = new Backpressure();
    const client = backpressure.client();
    const { stream } = flowing();
    backpressure.add(stream);
    stream.destroy();
    await flush();
    client.pause();
    expect(stream.isPaused()).toBe(false);
  });

  it('pauses nothing once it is closed', () => {
    const backpressure = new Backpressure();
    const paused = joined(backpressure, 'a', 'b');
    const client = backpressure.client();
    client.pause();
    client.pause('a');
    expect(paused()).toEqual(['a', 'b']);
    client.close();
    expect(paused()).toEqual([]);
    client.pause();
    expect([paused(), client.isAlone]).toEqual([[], false]);
  });
});

describe('several clients', () => {
  it('are not stopped by one that joins, nor by the one that pauses: the servers run again', () => {
    const backpressure = new Backpressure();
    const paused = joined(backpressure, 'a');
    const one = backpressure.client();
    one.pause();
    expect([paused(), one.isAlone]).toEqual([['a'], true]);
    const other = backpressure.client();
    expect([paused(), one.isAlone, other.isAlone]).toEqual([[], false, false]);
    other.close();
    other.close();
    expect([paused(), one.isAlone]).toEqual([['a'], true]);
  });

  it('pause exactly what every one of them pauses, whatever they do in whatever order', () => {
    const sources = ['a', 'b', 'c'];
    const step = fc.record({
      client: fc.nat(2),
      act: fc.constantFrom('pause', 'pause', 'resume', 'reopen'),
      source: fc.constantFrom(...sources, undefined),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const backpressure = new Backpressure();
        const paused = joined(backpressure, ...sources);
        const clients: { handle: ClientBackpressure; counts: Map<string | undefined, number> }[] = [];
        const open = () => ({ handle: backpressure.client(), counts: new Map() });
        for (let index = 0; index < 3; index += 1) clients.push(open());
        for (const { client: index, act, source } of steps) {
          const client = clients[index] ?? open();
          const count = client.counts.get(source) ?? 0;
          if (act === 'reopen') {
            client.handle.close();
            clients[index] = open();
          } else {
            client.handle[act](source);
            client.counts.set(source, Math.max(0, count + (act === 'pause' ? 1 : -1)));
          }
          const isPaused = (name: string) =>
            clients.every(({ counts }) => (counts.get(name) ?? 0) + (counts.get(undefined) ?? 0) > 0);
          expect(paused()).toEqual(sources.filter(isPaused));
        }
      }),
    );
  });
});
