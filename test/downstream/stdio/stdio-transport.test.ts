import { PassThrough, type Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { legacyEra } from '../../../src/downstream/legacy/legacy-session.js';
import { openStdioTransport } from '../../../src/downstream/stdio/stdio-transport.js';
import { createLineMemory } from '../../../src/wire/io/line-decoder.js';
import type { FairMemory } from '../../../src/wire/io/shared-limit.js';
import { Backpressure } from '../../../src/wire/io/streams/backpressure.js';
import { readInto } from '../../../src/wire/io/streams/read-into.js';
import { scriptGateway } from '../../support/scripted-gateway.js';
import { flush, lineOf, type Message, scan, writableTo } from '../../support/wire.js';

interface ConnectedOptions {
  readonly output: Writable;
  readonly unfinishedLines: FairMemory;
  readonly capabilities: object;
  readonly nextTurn: (task: () => void) => void;
  /** Milliseconds of work for each message. */
  readonly scanMs: number;
  /** Whether the handshake comes at once, without a wait for an answer. */
  readonly atOnce: boolean;
}

/** A client on two streams in memory, and the server that its calls go to. */
async function connected(
  revision: string,
  { output, unfinishedLines, capabilities = {}, nextTurn, scanMs = 0, atOnce = false }: Partial<ConnectedOptions> = {},
) {
  const { clock, gateway, server, startAll } = scriptGateway({ servers: { a: { tools: ['x'] } } });
  await startAll();
  const written: Buffer[] = [];
  const told: string[] = [];
  const input = new PassThrough();
  const transport = openStdioTransport({
    read: (reader) => readInto(input, reader),
    output:
      output ??
      writableTo((chunks, done) => {
        written.push(...chunks);
        done();
      }),
    backpressure: new Backpressure(),
    maxLineBytes: 1024 * 1024,
    ...(unfinishedLines && { unfinishedLines }),
    ...(nextTurn && { nextTurn }),
    scan: (...line) => {
      clock.advance(scanMs);
      return scan(...line);
    },
    clock,
    chooseEra: () => era,
    principal: 'somebody',
    onInputEnd: () => told.push('input ended'),
    onEnd: () => told.push('left'),
  });
  const era = legacyEra({ clock, scan, gateway, serverInfo: { name: 'trunkline', version: '1' } });
  const say = async (...messages: (Message | string)[]) => {
    for (const message of messages) input.write(lineOf(message));
    await flush();
  };
  /** All messages that the client got after the initialize result. */
  const answers = () =>
    Buffer.concat(written)
      .toString()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      .slice(1);
  const params = { protocolVersion: revision, capabilities, clientInfo: { name: 't', version: '1' } };
  const handshake = [
    { jsonrpc: '2.0', id: 0, method: 'initialize', params },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
  ];
  if (atOnce) await say(handshake.map((message) => JSON.stringify(message)).join('\n'));
  else for (const message of handshake) await say(message);
  return {
    transport,
    input,
    told,
    say,
    child: server('a').child,
    endInput: async () => {
      input.end();
      await flush();
    },
    answers,
    ids: () => answers().map((message) => (Array.isArray(message) ? message.map(({ id }) => id) : message.id)),
  };
}

const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'a__x' } });

describe('a line over the limit', () => {
  const large = { name: 'a__x', arguments: { text: 'x'.repeat(1024 * 1024) } };

  it.each([
    ['begins', { jsonrpc: '2.0', id: 'a-7', method: 'tools/call', params: large }, 'a-7'],
    ['ends', { method: 'tools/call', params: large, jsonrpc: '2.0', id: 7 }, 7],
  ])('F76: is answered under the id that it %s with, so that the request ends', async (_where, message, id) => {
    const { say, answers, child } = await connected('2025-11-25');
    await say(message);
    const error = {
      code: -32600,
      message:
        'The message was not read and had no effect: it is larger than the limit of 1048576 bytes. Send less at once',
    };
    expect(answers().at(-1)).toEqual({ jsonrpc: '2.0', id, error });
    await say(call(8));
    expect(child.calls).toHaveLength(1);
  });

  it('is answered under a null id if it is an answer, a batch, or no message', async () => {
    const { say, ids } = await connected('2025-11-25');
    await say({ jsonrpc: '2.0', id: 7, result: large }, [{ jsonrpc: '2.0', id: 7, method: 'x', params: large }]);
    await say('x'.repeat(1024 * 1024 + 1));
    expect(ids()).toEqual([null, null, null]);
  });
});

describe('a client among others', () => {
  it('is not read again in the same turn after messages that took long', async () => {
    const turns: (() => void)[] = [];
    const nextTurn = (task: () => void) => turns.push(task);
    const { input, say, ids } = await connected('2025-11-25', { nextTurn, scanMs: 5 });
    const takeTurn = async () => {
      for (const turn of turns.splice(0)) turn();
      await flush();
    };
    for (let turn = 0; turn < 3; turn += 1) await takeTurn();
    const pings = Array.from({ length: 50 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
    await say(pings.map((ping) => JSON.stringify(ping)).join('\n'));
    expect([ids().length, input.isPaused(), turns.length]).toEqual([50, true, 1]);
    await takeTurn();
    expect(input.isPaused()).toBe(false);
  });
});

describe('an answer over the limit', () => {
  const large = { roots: [{ uri: 'file:///x', name: 'x'.repeat(1024 * 1024) }] };

  it.each([
    ['begins', (id: number) => ({ jsonrpc: '2.0', id, result: large })],
    ['ends', (id: number) => ({ result: large, jsonrpc: '2.0', id })],
  ])('F84: fails the server request with the id that it %s with, at once', async (_where, answerTo) => {
    const { say, answers, child } = await connected('2025-11-25', { capabilities: { roots: {} } });
    await say(call(1));
    child.say({ jsonrpc: '2.0', id: 'q', method: 'roots/list' });
    await flush();
    const request = answers().find(({ method }) => method === 'roots/list');
    await say(answerTo(request?.id));
    const message =
      "The client's answer is lost. The message was not read and had no effect: it is larger than the limit of 1048576 bytes. Send less at once";
    expect(child.received.messages.at(-1)).toEqual({ jsonrpc: '2.0', id: 'q', error: { code: -32603, message } });
    expect(answers().at(-1)).toMatchObject({ id: null, error: { code: -32600 } });
  });

  it('to no server request reaches no server', async () => {
    const { say, child } = await connected('2025-11-25', { capabilities: { roots: {} } });
    await say(call(1));
    const before = child.received.messages.length;
    await say({ jsonrpc: '2.0', id: 1, result: large }, { jsonrpc: '2.0', id: 'x', result: large });
    expect(child.received.messages).toHaveLength(before);
  });
});

describe('a client that closes stdin', () => {
  it('has left when it has the answers to all requests that it sent before', async () => {
    const { say, endInput, child, told, ids, transport } = await connected('2025-11-25');
    await say(call(1), call(2));
    await endInput();
    expect([told, transport.inFlight]).toEqual([['input ended'], 2]);
    child.answer(1, {});
    await flush();
    expect([told, ids()]).toEqual([['input ended'], [2]]);
    child.answer(0, {});
    await flush();
    expect([told, ids()]).toEqual([
      ['input ended', 'left'],
      [2, 1],
    ]);
  });

  it('has left at once when it waits for nothing', async () => {
    const { endInput, told } = await connected('2025-11-25');
    await endInput();
    expect(told).toEqual(['input ended', 'left']);
  });

  it('gets the whole answer to a batch', async () => {
    const { say, endInput, child, told, ids } = await connected('2025-03-26');
    await say(`[${JSON.stringify(call(1))},${JSON.stringify(call(2))}]`);
    await endInput();
    child.answer(0, {});
    await flush();
    expect([told, ids()]).toEqual([['input ended'], []]);
    child.answer(1, {});
    await flush();
    expect([told, ids()]).toEqual([['input ended', 'left'], [[1, 2]]]);
  });

  it('does not wait for a request that it has cancelled', async () => {
    const { say, endInput, told } = await connected('2025-11-25');
    await say(call(1), { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await endInput();
    expect(told).toEqual(['input ended', 'left']);
  });

  it('has left only when its last answer is written, however large it is', async () => {
    let taken = () => {};
    const output = writableTo((_, done) => {
      taken = done;
    });
    const { say, endInput, child, told } = await connected('2025-11-25', { output });
    taken();
    await say(call(1));
    await endInput();
    child.answer(0, { text: 'x'.repeat(100_000) });
    await flush();
    expect(told).toEqual(['input ended']);
    expect(output.writableLength).toBeGreaterThan(100_000);
    while (output.writableLength > 0) {
      taken();
      await flush();
    }
    taken();
    await flush();
    expect(told).toEqual(['input ended', 'left']);
  });

  it('gets no answer any more once the transport is closed', async () => {
    const { say, endInput, child, told, ids, transport } = await connected('2025-11-25');
    await say(call(1));
    await endInput();
    transport.close();
    transport.close();
    child.answer(0, {});
    await flush();
    expect([told, ids()]).toEqual([['input ended', 'left'], []]);
  });
});

describe('an unfinished message of a client', () => {
  it('is refused when it holds the most of the memory for unfinished messages, and the next message is read', async () => {
    const unfinishedLines = createLineMemory(100_000);
    const { say, answers } = await connected('2025-06-18', { unfinishedLines });
    const params = { _meta: { text: 'x'.repeat(300_000) } };
    await say({ jsonrpc: '2.0', id: 1, method: 'ping', params }, { jsonrpc: '2.0', id: 2, method: 'ping' });
    const message = expect.stringContaining('whose limit gateway.maxPartial is reached');
    expect(answers()).toMatchObject([{ id: 1, error: { message } }, { id: 2 }]);
  });

  it('holds nothing any more when the client has left', async () => {
    const unfinishedLines = createLineMemory(100_000);
    const { input, endInput } = await connected('2025-06-18', { unfinishedLines });
    input.write('half');
    await flush();
    expect(unfinishedLines.used).toBe(4);
    await endInput();
    expect(unfinishedLines.used).toBe(0);
  });
});

describe('a client on stdin', () => {
  it.each([
    [false, true],
    [true, false],
  ])('whose first messages come at once (%s) is live: %s', async (atOnce, isLive) => {
    const { transport, say } = await connected('2025-11-25', { atOnce });
    expect(transport.isLive).toBe(isLive);
    await say({ jsonrpc: '2.0', id: 1, method: 'ping' });
    expect(transport.isLive).toBe(true);
  });

  it('has carriage returns between two tokens become spaces', async () => {
    const { child, say } = await connected('2025-11-25');
    await say('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{\r"name":"a__x",\r"arguments":{}}}');
    expect(child.received.lines.at(-1)).toContain('"params":{ "name":"x", "arguments":{}}');
  });
});
