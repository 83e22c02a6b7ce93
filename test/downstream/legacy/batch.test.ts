import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BatchReply } from '../../../src/downstream/stdio/stdio-transport.js';
import { unedited } from '../../../src/wire/jsonrpc/message.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { repetitions } from '../../support/repetitions.js';
import { scriptGateway } from '../../support/scripted-gateway.js';
import { flush, type Message, RecordingSink, requestOf } from '../../support/wire.js';
import { replyOn } from './reply-on.js';

async function serving(revision = '2025-03-26') {
  const world = scriptGateway({ servers: { a: { tools: ['read'] } } });
  await world.startAll();
  const client = world.connect();
  client.initialize(revision);
  return { ...world, client, child: world.server('a').child };
}

const call = (id: unknown, members: Message = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'a__read', ...members },
});
const ping = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'ping' });
const cancel = (requestId: unknown) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
const batchOf = (...messages: (Message | string)[]) =>
  `[${messages.map((message) => (typeof message === 'string' ? message : JSON.stringify(message))).join(',')}]`;
const refusal = (message: string, id: unknown = null) => ({ jsonrpc: '2.0', id, error: { code: -32600, message } });

describe('a batch of a client of 2025-03-26', () => {
  it('is answered with one array when the last answer is there, all as it was written', async () => {
    const { client, child } = await serving();
    client.say(
      ' [ {"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"a__read"}} ,\t{"params":{"name":"a__read"},"id":"\\u0062","method":"tools/call","jsonrpc":"2.0"},{"jsonrpc":"2.0","method":"notifications/x"}]',
    );
    expect(child.calls).toHaveLength(2);
    child.say(`{"id":${child.calls[1]?.id}, "result":{"n":1e400,"n":1.0},"jsonrpc":"2.0"}`);
    expect(client.received.lines).toEqual([]);
    child.say(`{"jsonrpc":"2.0","result":{}  ,"id":${child.calls[0]?.id}}`);
    expect(client.received.lines).toEqual([
      '[{"id":"\\u0062", "result":{"n":1e400,"n":1.0},"jsonrpc":"2.0"},{"jsonrpc":"2.0","result":{}  ,"id":1.0}]',
    ]);
    expect(client.session.inFlight).toBe(0);
  });

  it('holds nothing back but answers: progress, and what is asked outside of it', async () => {
    const { client, child, clock } = await serving();
    client.say(batchOf(call(1, { _meta: { progressToken: 'p' } }), ping(2), call(3)));
    const params = { progressToken: child.calls[0]?.id, progress: 1 };
    child.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
    child.answer(1);
    client.request(4, 'ping');
    expect(client.received.take()).toEqual([
      { jsonrpc: '2.0', method: 'notifications/progress', params: { ...params, progressToken: 'p' } },
      { jsonrpc: '2.0', id: 4, result: {} },
    ]);
    child.answer(0);
    expect(client.received.lines).toEqual([]);
    clock.advance(5);
    expect(client.received.take()).toEqual([[2, 3, 1].map((id) => expect.objectContaining({ id }))]);
  });

  it('may bring the answers to what the client was asked', async () => {
    const world = scriptGateway({ servers: {} });
    const client = world.connect();
    const capabilities = { sampling: {} };
    client.request(0, 'initialize', { protocolVersion: '2025-03-26', capabilities, clientInfo: {} });
    client.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    client.received.take();
    const answers: string[] = [];
    for (const id of ['x', 'y']) {
      const request = new EnvelopeRequest(
        requestOf({ jsonrpc: '2.0', id, method: 'sampling/createMessage', params: {} }),
      );
      const answer = ({ bytes, span }: { bytes: Uint8Array; span: { start: number; end: number } }) =>
        answers.push(Buffer.from(bytes.subarray(span.start, span.end)).toString());
      client.downstream.requireInput({ request, edits: [], answer, fail: () => {}, progress: () => {} });
    }
    const [x, y] = client.received.take().map(({ id }) => id);
    client.say(`[{"jsonrpc":"2.0","id":${y},"result":{"y":1.0}}, {"jsonrpc":"2.0","id":${x},"result":{"x":1}}]`);
    expect(answers).toEqual([
      `{"jsonrpc":"2.0","id":${y},"result":{"y":1.0}}`,
      `{"jsonrpc":"2.0","id":${x},"result":{"x":1}}`,
    ]);
    expect(client.received.lines).toEqual([]);
  });

  it('leaves out what was cancelled, from within or later, and is silent when nothing is left', async () => {
    const { client, child } = await serving();
    client.say(batchOf(call(1), call(2), cancel(1), call(3)));
    expect(child.cancellations).toHaveLength(1);
    child.answer(1, 'two');
    client.cancel(3);
    expect(client.received.take()).toEqual([[{ jsonrpc: '2.0', id: 2, result: 'two' }]]);
    client.say(batchOf(call(4), call(5)));
    client.cancel(4);
    client.cancel(5);
    for (const index of [3, 4]) child.answer(index);
    expect(client.received.lines).toEqual([]);
    expect(client.session.inFlight).toBe(0);
  });

  it('has an error in the array for each element that is no message, with its id if it can be read', async () => {
    const { client, child } = await serving();
    client.say(batchOf('1', '{"jsonrpc":"2.0","id":"x","method":7}', ping(2), '[{"jsonrpc":"2.0"}]', '{}', call(3)));
    expect(client.received.lines).toEqual([]);
    child.answer(0, 'done');
    expect(client.received.take()).toEqual([
      [
        refusal('Refused: not-an-object'),
        refusal('Refused: not-json-rpc', 'x'),
        { jsonrpc: '2.0', id: 2, result: {} },
        refusal('Refused: batch'),
        refusal('Refused: not-json-rpc'),
        { jsonrpc: '2.0', id: 3, result: 'done' },
      ],
    ]);
  });

  it('has an error for the later of two requests with one id, in the batch or in flight before it', async () => {
    const { client, child } = await serving();
    client.call(9, 'a__read');
    client.say(batchOf(call(1), ping('1'), call(1), call(9), ping(2), ping(2)));
    expect(child.calls).toHaveLength(2);
    child.answer(1, 'one');
    child.answer(0, 'nine');
    expect(client.received.take()).toEqual([
      [
        { jsonrpc: '2.0', id: '1', result: {} },
        refusal('Another request of this batch has the same id', 1),
        refusal('A request with this id is in flight already', 9),
        { jsonrpc: '2.0', id: 2, result: {} },
        refusal('Another request of this batch has the same id', 2),
        { jsonrpc: '2.0', id: 1, result: 'one' },
      ],
      { jsonrpc: '2.0', id: 9, result: 'nine' },
    ]);
  });

  it('keeps its ids from requests that come after it', async () => {
    const { client, child } = await serving();
    client.say(batchOf(call(1), call(2)));
    client.call(1, 'a__read');
    client.say(batchOf(call(2)));
    expect(client.received.take()).toEqual([
      refusal('A request with this id is in flight already', 1),
      [refusal('A request with this id is in flight already', 2)],
    ]);
    expect(child.calls).toHaveLength(2);
  });

  it('is answered with several arrays rather than that more than 16 MiB are held', () => {
    const sink = new RecordingSink();
    const reply = new BatchReply(replyOn(sink), 4);
    const large = unedited(Buffer.from(`"${'x'.repeat(6 * 1024 * 1024)}"`));
    for (let count = 0; count < 3; count += 1) reply.answer(large);
    expect(sink.lines.map((line) => JSON.parse(line).length)).toEqual([3]);
    reply.answer(unedited(Buffer.from('{"id":1}')));
    expect(sink.lines.map((line) => JSON.parse(line).length)).toEqual([3, 1]);
  });

  it('is cancelled with its client, and what was answered by then goes out', async () => {
    const { client, child } = await serving();
    client.say(batchOf(ping(1), call(2)));
    client.session.close();
    expect(client.received.take()).toEqual([[{ jsonrpc: '2.0', id: 1, result: {} }]]);
    expect(child.cancellations).toHaveLength(1);
  });
});

describe('a batch that is refused', () => {
  it.each(['2025-11-25', '2025-06-18', '2024-11-05'])('is any of a client of %s', async (revision) => {
    const { client, child } = await serving(revision);
    client.say(batchOf(call(1), cancel(1)));
    client.say('[]');
    expect(client.received.take()).toEqual(Array(2).fill(refusal(`Revision ${revision} has no batches`)));
    expect(child.calls).toEqual([]);
  });

  it.each([
    ['nothing', '[]', 'The batch is empty'],
    [
      'initialize',
      batchOf(call(1), { jsonrpc: '2.0', id: 2, method: 'initialize' }),
      'initialize cannot be in a batch',
    ],
    ['more than 100 messages', batchOf(...Array.from({ length: 101 }, (_, id) => call(id))), 'Refused: batch-too-long'],
  ])('has %s in it, and nothing of it is served', async (_, line, message) => {
    const { client, child } = await serving();
    client.say(line);
    expect(client.received.take()).toEqual([refusal(message)]);
    expect(child.calls).toEqual([]);
    client.call(1, 'a__read');
    expect(child.calls).toHaveLength(1);
  });

  it('is no JSON as a whole', async () => {
    const { client, child } = await serving();
    client.say(`${batchOf(call(1)).slice(0, -1)},]`);
    expect(client.received.take().map(({ id, error }) => [id, error.code])).toEqual([[null, -32700]]);
    expect(child.calls).toEqual([]);
  });

  it('comes before the handshake, which cannot be in it', async () => {
    const client = scriptGateway({ servers: {} }).connect();
    client.say(batchOf({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-03-26' } }));
    expect(client.received.take()).toEqual([
      refusal('The session has to begin with initialize, which cannot be in a batch'),
    ]);
    client.initialize();
    expect(client.session.revision).toBe('2025-11-25');
  });
});

describe('a batch with any content and any outcome', () => {
  const element = fc.constantFrom('call', 'call', 'call', 'ping', 'repeat', 'notification', 'response', 'invalid');
  const step = fc.tuple(fc.constantFrom('answer', 'cancel', 'progress', 'wait', 'turn'), fc.nat(12));

  it('is answered once for each request that was not cancelled, in one array', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(element, { minLength: 1, maxLength: 12 }),
        fc.array(step, { maxLength: 30 }),
        async (elements, steps) => {
          const { client, child, clock } = await serving();
          const messages = elements.map((kind, id) => {
            if (kind === 'call') return call(id, { arguments: id, _meta: { progressToken: id } });
            if (kind === 'ping') return ping(id);
            if (kind === 'repeat') return ping(0);
            if (kind === 'invalid') return 'null';
            if (kind === 'response') return { jsonrpc: '2.0', id: 77, result: {} };
            return { jsonrpc: '2.0', method: 'notifications/x' };
          });
          client.say(batchOf(...messages));
          const cancelled = new Set<number>();
          for (const [what, id] of steps) {
            const asked = child.calls.find(({ params }) => params.arguments === id);
            if (what === 'answer' && asked !== undefined) child.say({ jsonrpc: '2.0', id: asked.id, result: id });
            if (what === 'cancel') {
              const { inFlight } = client.session;
              client.cancel(id);
              if (client.session.inFlight < inFlight) cancelled.add(id);
            }
            if (what === 'progress' && asked !== undefined) {
              const params = { progressToken: asked.id, progress: clock.now() + 1 };
              child.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
            }
            if (what === 'wait') clock.advance(3);
            if (what === 'turn') await flush();
          }
          for (const { id, params } of child.calls) child.say({ jsonrpc: '2.0', id, result: params.arguments });
          clock.advance(100);

          const arrays = client.received.messages.filter(Array.isArray) as unknown as Message[][];
          const expected = elements.flatMap((kind, id) => {
            if (kind === 'invalid') return ['null error'];
            if (kind === 'ping') return [`${id} result`];
            if (kind === 'call') return cancelled.has(id) ? [] : [`${id} result`];
            if (kind !== 'repeat') return [];
            const isFirst = !['call', 'ping'].includes(elements[0] ?? '') && elements.indexOf('repeat') === id;
            return [isFirst ? '0 result' : '0 error'];
          });
          expect(arrays).toHaveLength(expected.length === 0 ? 0 : 1);
          const told = (arrays[0] ?? []).map(({ id, result }) => `${id} ${result === undefined ? 'error' : 'result'}`);
          expect(told.sort()).toEqual(expected.sort());
          const others = client.received.messages.filter((message) => !Array.isArray(message));
          expect(others.every(({ method }) => method === 'notifications/progress')).toBe(true);
          expect(client.session.inFlight).toBe(0);
          expect(child.connection.inFlight).toBe(0);
        },
      ),
      { numRuns: repetitions({ full: 200, short: 60 }) },
    );
  });
});
