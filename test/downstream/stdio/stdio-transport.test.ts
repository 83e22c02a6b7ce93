import { PassThrough, type Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { legacyEra } from '../../../src/downstream/legacy/legacy-session.js';
import { openStdioTransport } from '../../../src/downstream/stdio/stdio-transport.js';
import { SharedLimit } from '../../../src/io/shared-limit.js';
import { Backpressure } from '../../../src/io/streams/backpressure.js';
import { scriptGateway } from '../../support/scripted-gateway.js';
import { flush, lineOf, type Message, scan, writableTo } from '../../support/wire.js';

/** A client on two streams in memory, and the server that its calls go to. */
async function connected(revision: string, output?: Writable, partialFrames?: SharedLimit) {
  const { clock, gateway, server, startAll } = scriptGateway({ servers: { a: { tools: ['x'] } } });
  await startAll();
  const written: Buffer[] = [];
  const told: string[] = [];
  const input = new PassThrough();
  const transport = openStdioTransport({
    input,
    output:
      output ??
      writableTo((chunks, done) => {
        written.push(...chunks);
        done();
      }),
    backpressure: new Backpressure(),
    maxLineBytes: 1024 * 1024,
    ...(partialFrames === undefined ? {} : { partialFrames }),
    scan,
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
  const messages = () =>
    Buffer.concat(written)
      .toString()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 't', version: '1' } };
  await say({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  await say({ jsonrpc: '2.0', method: 'notifications/initialized' });
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
    last: () => messages().at(-1),
    ids: () =>
      messages()
        .slice(1)
        .map((message) => (Array.isArray(message) ? message.map(({ id }) => id) : message.id)),
  };
}

const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'a__x' } });

describe('a line over the limit', () => {
  const large = { name: 'a__x', arguments: { text: 'x'.repeat(1024 * 1024) } };

  it.each([
    ['begins', { jsonrpc: '2.0', id: 'a-7', method: 'tools/call', params: large }, 'a-7'],
    ['ends', { method: 'tools/call', params: large, jsonrpc: '2.0', id: 7 }, 7],
  ])('is answered under the id that it %s with, so that the request ends', async (_where, message, id) => {
    const { say, last, child } = await connected('2025-11-25');
    await say(message);
    const error = {
      code: -32600,
      message:
        'The message was not read and had no effect: it is larger than the limit of 1048576 bytes. Send less at once',
    };
    expect(last()).toEqual({ jsonrpc: '2.0', id, error });
    await say(call(8));
    expect(child.calls).toHaveLength(1);
  });

  it('is answered under a null id if it is an answer, a batch, or no message', async () => {
    const { say, ids } = await connected('2025-11-25');
    await say({ jsonrpc: '2.0', id: 7, result: large }, [{ jsonrpc: '2.0', id: 7, method: 'x', params: large }]);
    await say('x'.repeat(1024 * 1024 + 1));
    expect(ids()).toEqual([null, null, null]);
  });

  it('of all incomplete lines together is answered as such', async () => {
    const { say, input, last } = await connected('2025-11-25', undefined, new SharedLimit(100_000));
    input.write('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"');
    input.write('x'.repeat(200_000));
    await say('"}}');
    expect(last()).toMatchObject({ id: 7, error: { message: expect.stringContaining('too much data at once') } });
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
    const { say, endInput, child, told } = await connected('2025-11-25', output);
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
