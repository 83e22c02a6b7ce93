import { describe, expect, it } from 'vitest';
import { LegacyExchange } from '../../../src/downstream/legacy/legacy-session.js';
import type { DownstreamClient } from '../../../src/downstream/port.js';
import { Bridge } from '../../../src/upstream/channel/bridge.js';
import { BufferPool } from '../../../src/wire/io/buffer-pool.js';
import { type ByteReader, copyInto } from '../../../src/wire/io/byte-reader.js';
import { LineDecoder } from '../../../src/wire/io/line-decoder.js';
import { Backpressure } from '../../../src/wire/io/streams/backpressure.js';
import { FairWriter } from '../../../src/wire/io/streams/fair-writer.js';
import { LineWriter } from '../../../src/wire/io/streams/line-writer.js';
import { readText } from '../../../src/wire/json/json-text.js';
import type { RequestEnvelope } from '../../../src/wire/mcp/envelope.js';
import { FakeClock } from '../../support/fake-clock.js';
import { slowReader } from '../../support/slow-reader.js';
import { flush, lineOf, type Message, scan } from '../../support/wire.js';
import { replyOn } from './reply-on.js';

function reader() {
  const { pipe, take, takeAll, text } = slowReader();
  return {
    ...{ pipe, take, takeAll },
    /** Each message in short: its id or token, the length of its text, and the letters in the text. */
    lines: () =>
      text()
        .split('\n')
        .slice(0, -1)
        .map((line) => {
          const { id, params, result } = JSON.parse(line) as { id: number; params?: Content; result?: Content };
          const { text: said = '', progressToken } = params ?? result ?? {};
          return `${progressToken ?? id}: ${said.length} ${[...new Set(said)].join('')}`;
        }),
  };
}

interface Content {
  readonly text?: string;
  readonly progressToken?: string;
}

/** Writes a line as a pipe delivers it. The line becomes large before it ends. */
function sayTo(reader: ByteReader, message: Message | string): void {
  const line = lineOf(message);
  for (let at = 0; at < line.length; at += 20_000) copyInto(reader, line.subarray(at, at + 20_000));
}

/** A client whose calls go to a server, and the pool for the bytes of calls and answers. */
function calling() {
  const clock = new FakeClock();
  const client = reader();
  const answers = new FairWriter(client.pipe, new Backpressure().client());
  const bufferPool = new BufferPool({ maxIdleBytes: 64 * 1024 * 1024 });
  const exchanges: LegacyExchange[] = [];
  const serve = (envelope: RequestEnvelope) =>
    exchanges.push(
      new LegacyExchange({
        ...{ envelope, clock, client: {} as DownstreamClient, key: readText(envelope.bytes, envelope.id) },
        reply: replyOn(answers),
        owner: { sendUnsolicited: () => {}, settled: () => {} },
      }),
    );
  const server = () => {
    const end = reader();
    const bridge = new Bridge({
      clock,
      scan,
      output: new LineWriter(end.pipe),
      bufferPool,
      maxFrameBytes: 1e7,
      maxUnwrittenBytes: 1e7,
      events: { request: () => {}, notification: () => {}, junk: () => {}, silent: () => {}, violated: () => {} },
    });
    const stdout = bridge.open();
    return {
      ...end,
      give: (exchange: LegacyExchange) => {
        const timeouts = { idleMs: 60_000, maxMs: 60_000 };
        bridge.send(exchange.request, [], timeouts, {
          lease: exchange.leaseRequest(),
          settle: (outcome) => outcome.kind === 'answered' && exchange.answer(outcome.response),
          progress: (notification) => exchange.progress(notification),
        });
      },
      say: (message: Message | Message[]) => sayTo(stdout, Array.isArray(message) ? JSON.stringify(message) : message),
    };
  };
  const sink = {
    line: (bytes: Uint8Array, start: number, end: number) => {
      const message = scan(bytes, start, end);
      if (message.kind === 'request') serve(message);
    },
  };
  const noLoss = () => expect.fail('a line was dropped');
  const dropped = { oversized: noLoss, evicted: noLoss };
  const decoder = new LineDecoder({ sink, dropped, maxLineBytes: 1e7, bufferPool });
  return {
    clock,
    bufferPool,
    client,
    server,
    /** Lets the client send a request with a large answer. */
    ask: (
      id: number,
      letter: string,
      { method = 'tools/call', length = 40_000, token = undefined as unknown } = {},
    ) => {
      const _meta = token === undefined ? undefined : { progressToken: token };
      sayTo(decoder, { jsonrpc: '2.0', id, method, params: { name: 'x', text: letter.repeat(length), _meta } });
      return exchanges.at(-1) ?? expect.fail('the request was not read');
    },
  };
}

const answer = (id: number, text = 'ok') => ({ jsonrpc: '2.0', id, result: { text } });

describe('the memory of a large call', () => {
  it('has another use when its server has read and answered it', async () => {
    const { bufferPool, client, server, ask } = calling();
    const { give, say, takeAll, lines } = server();
    give(ask(11, 'A'));
    await takeAll();
    expect(bufferPool.idleBytes).toBe(0);
    say(answer(1));
    expect(bufferPool.idleBytes).toBe(64 * 1024);
    give(ask(12, 'B'));
    expect(bufferPool.idleBytes).toBe(0);
    await takeAll();
    say(answer(2));
    await client.takeAll();
    expect(lines()).toEqual(['1: 40000 A', '2: 40000 B']);
    expect(client.lines()).toEqual(['11: 2 ok', '12: 2 ok']);
  });

  it('has none before the server has read all of it, though that has answered already', async () => {
    const { bufferPool, server, ask } = calling();
    const { give, say, takeAll, lines } = server();
    give(ask(11, 'A'));
    await flush();
    say(answer(1));
    expect(bufferPool.idleBytes).toBe(0);
    give(ask(12, 'B'));
    await takeAll();
    expect(lines()).toEqual(['1: 40000 A', '2: 40000 B']);
    expect(bufferPool.idleBytes).toBe(64 * 1024);
  });

  it('has none before another server has read it, to which it was given when the first one ended', async () => {
    const { bufferPool, server, ask } = calling();
    const [first, second] = [server(), server()];
    const exchange = ask(11, 'A');
    first.give(exchange);
    await flush();
    second.give(exchange);
    await flush();
    second.say(answer(1));
    await second.takeAll();
    // The pipe of the first client has not reported the write as complete.
    expect(bufferPool.idleBytes).toBe(0);
    await first.takeAll();
    expect(bufferPool.idleBytes).toBe(64 * 1024);
    expect(first.lines()).toEqual(['1: 40000 A']);
    expect(second.lines()).toEqual(['1: 40000 A']);
  });

  it('is not needed by an answer and by progress that the client has not read yet', async () => {
    const { clock, client, server, ask } = calling();
    const { give, say, takeAll } = server();
    give(ask(11, 'A', { token: 'first' }));
    await takeAll();
    const text = 'C'.repeat(50_000);
    say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1, text } });
    say(answer(1, text));
    // An answer is not sent right after progress.
    clock.advance(100);
    for (let more = 0; more < 3; more += 1) ask(12 + more, 'B', { token: 'other' });
    await client.takeAll();
    expect(client.lines()).toEqual(['first: 50000 C', '11: 50000 C']);
  });

  it.each([
    ['that was cancelled', 'tools/call', (exchange: LegacyExchange) => exchange.cancel()],
    ['of another kind', 'custom/ask', () => {}],
  ])('is left to the collector where it is one %s', async (_, method, before) => {
    const { bufferPool, server, ask } = calling();
    const { give, say, takeAll } = server();
    const exchange = ask(11, 'A', { method });
    give(exchange);
    before(exchange);
    await takeAll();
    say(answer(1));
    await takeAll();
    expect(bufferPool.idleBytes).toBe(0);
  });
});

describe('the memory of a large answer', () => {
  const large = (id: number, letter: string, length = 40_000) => answer(id, letter.repeat(length));

  /** Three small calls of the client are in flight at the server. */
  function called() {
    const { server, ask, ...others } = calling();
    const { give, say } = server();
    for (const id of [11, 12, 13]) give(ask(id, 'x', { length: 1 }));
    return { ...others, say };
  }

  it('has another use when the client has read it, and not before', async () => {
    const { bufferPool, client, say } = called();
    say(large(1, 'A'));
    say(large(2, 'B'));
    await flush();
    expect(bufferPool.idleBytes).toBe(0);
    await client.take();
    expect(bufferPool.idleBytes).toBe(64 * 1024);
    say(large(3, 'C'));
    expect(bufferPool.idleBytes).toBe(0);
    await client.takeAll();
    expect(client.lines()).toEqual(['11: 40000 A', '12: 40000 B', '13: 40000 C']);
  });

  it('is its own in a batch: a later line does not change the second answer', async () => {
    const { client, say } = called();
    say([large(1, 'A'), large(2, 'B')]);
    await client.take();
    say(large(3, 'C', 80_000));
    await client.takeAll();
    expect(client.lines()).toEqual(['11: 40000 A', '12: 40000 B', '13: 80000 C']);
  });
});
