import { describe, expect, it } from 'vitest';
import { LegacyExchange } from '../../../src/downstream/legacy/legacy-session.js';
import type { DownstreamClient } from '../../../src/downstream/port.js';
import { BufferPool } from '../../../src/io/buffer-pool.js';
import { copyInto } from '../../../src/io/byte-reader.js';
import { Backpressure } from '../../../src/io/streams/backpressure.js';
import { FairWriter } from '../../../src/io/streams/fair-writer.js';
import { idKey } from '../../../src/jsonrpc/envelope-scanner.js';
import { StdioBridge } from '../../../src/upstream/stdio/stdio-bridge.js';
import { FakeClock } from '../../support/fake-clock.js';
import { slowReader } from '../../support/slow-reader.js';
import { flush, lineOf, type Message, RecordingSink, requestOf, scan } from '../../support/wire.js';
import { replyOn } from './reply-on.js';

/** A server whose answers go to a client that reads when it is told to, and the memory in which they stand. */
function relaying() {
  const { pipe, take, text } = slowReader();
  const writer = new FairWriter(pipe, new Backpressure().client());
  const bufferPool = new BufferPool({ maxIdleBytes: 64 * 1024 * 1024 });
  const clock = new FakeClock();
  const bridge = new StdioBridge({
    clock,
    scan,
    output: new RecordingSink(),
    bufferPool,
    maxFrameBytes: 1e7,
    maxUnwrittenBytes: 1e7,
    events: { request: () => {}, notification: () => {}, junk: () => {}, silent: () => {}, violated: () => {} },
  });
  const requireInput = () => () => {};
  const owner = {
    sendUnsolicited: () => {},
    settled: () => {},
  };
  return {
    bufferPool,
    /** The client calls; our own ids count from 1, too. */
    call: (id: number) => {
      const envelope = requestOf({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'x' } });
      const key = idKey(envelope.bytes, envelope.id);
      const client = {} as DownstreamClient;
      const exchange = new LegacyExchange({
        envelope,
        client,
        key,
        reply: replyOn(writer),
        clock,
        owner,
        requireInput,
      });
      bridge.send(
        exchange.request,
        [],
        { idleMs: 60_000, maxMs: 60_000 },
        {
          settle: (outcome) => outcome.kind === 'answered' && exchange.answer(outcome.response),
        },
      );
    },
    say: (message: Message | Message[]) => {
      const line = lineOf(Array.isArray(message) ? JSON.stringify(message) : message);
      // As it comes from a pipe: the line becomes large before it ends.
      for (let at = 0; at < line.length; at += 20_000) copyInto(bridge, line.subarray(at, at + 20_000));
    },
    take,
    lines: () =>
      text()
        .split('\n')
        .slice(0, -1)
        .map((line) => {
          const { id, result } = JSON.parse(line) as { id: number; result: { text: string } };
          return `${id}: ${result.text.length} ${[...new Set(result.text)].join('')}`;
        }),
  };
}

const answer = (id: number, letter: string, length = 40_000) => ({
  jsonrpc: '2.0',
  id,
  result: { text: letter.repeat(length) },
});

describe('the memory of a large answer', () => {
  it('has another use when the client has read it, and not before', async () => {
    const { bufferPool, call, say, take, lines } = relaying();
    for (const id of [1, 2, 3]) call(id);
    say(answer(1, 'A'));
    say(answer(2, 'B'));
    await flush();
    expect(bufferPool.idleBytes).toBe(0);
    await take();
    expect(bufferPool.idleBytes).toBe(64 * 1024);
    say(answer(3, 'C'));
    expect(bufferPool.idleBytes).toBe(0);
    while (await take());
    expect(lines()).toEqual(['1: 40000 A', '2: 40000 B', '3: 40000 C']);
  });

  it('is its own in a batch: what is read after the first was written does not change the second', async () => {
    const { call, say, take, lines } = relaying();
    for (const id of [1, 2, 3]) call(id);
    say([answer(1, 'A'), answer(2, 'B')]);
    await take();
    say(answer(3, 'C', 80_000));
    while (await take());
    expect(lines()).toEqual(['1: 40000 A', '2: 40000 B', '3: 80000 C']);
  });
});
