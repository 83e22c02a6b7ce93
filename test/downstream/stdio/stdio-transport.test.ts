import { PassThrough, type Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { legacyEra } from '../../../src/downstream/legacy/legacy-session.js';
import { openStdioTransport } from '../../../src/downstream/stdio/stdio-transport.js';
import { Backpressure } from '../../../src/io/streams/backpressure.js';
import { NO_WORK_TIME } from '../../../src/timing/work-time.js';
import { scriptGateway } from '../../support/scripted-gateway.js';
import { flush, lineOf, type Message, scan, writableTo } from '../../support/wire.js';

/** A client on two streams in memory, and the server that its calls go to. */
async function connected(revision: string, output?: Writable) {
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
    scan,
    clock,
    workTime: NO_WORK_TIME,
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
    ids: () =>
      Buffer.concat(written)
        .toString()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
        .slice(1)
        .map((message) => (Array.isArray(message) ? message.map(({ id }) => id) : message.id)),
  };
}

const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'a__x' } });

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
