import { describe, expect, it } from 'vitest';
import type { Failure } from '../../../src/downstream/failure.js';
import { LegacyExchange } from '../../../src/downstream/legacy/legacy-session.js';
import type { DownstreamClient } from '../../../src/downstream/port.js';
import { RpcError } from '../../../src/jsonrpc/rpc-error.js';
import { FakeClock } from '../../support/fake-clock.js';
import { type Message, RecordingSink, requestOf } from '../../support/wire.js';
import { replyOn } from './reply-on.js';

const FAILURE: Failure = { reason: 'timeout', server: 'a', generation: 1, sent: true, retryAfterMs: undefined };

function exchangeOf(message: Message) {
  const sink = new RecordingSink();
  const owner = { sendUnsolicited: () => {}, settled: () => {}, relayed: () => {} };
  const exchange = new LegacyExchange({
    envelope: requestOf({ jsonrpc: '2.0', id: 1, ...message }),
    client: {} as DownstreamClient,
    reply: replyOn(sink),
    clock: new FakeClock(),
    key: 1,
    owner,
    requireInput: () => () => {},
  });
  return { exchange, sink };
}

describe('a request that fails within the gateway', () => {
  it('is answered with a tool result if it is a tool call', () => {
    const { exchange, sink } = exchangeOf({ method: 'tools/call', params: { name: 'x' } });
    exchange.fail(FAILURE);
    expect(sink.messages).toEqual([{ jsonrpc: '2.0', id: 1, result: expect.objectContaining({ isError: true }) }]);
  });

  it.each([
    ['another method', { method: 'prompts/get', params: { name: 'x' } }],
    ['a tool call that was to become a task', { method: 'tools/call', params: { name: 'x', task: {} } }],
  ])('is answered with a JSON-RPC error if it is %s', (_, message) => {
    const { exchange, sink } = exchangeOf(message);
    exchange.fail(FAILURE);
    const error = expect.objectContaining({ code: -32603, data: expect.objectContaining({ reason: 'timeout' }) });
    expect(sink.messages).toEqual([{ jsonrpc: '2.0', id: 1, error }]);
  });

  it('is answered once', () => {
    const { exchange, sink } = exchangeOf({ method: 'tools/call', params: { name: 'x' } });
    exchange.fail(new RpcError(-32602, 'first'));
    exchange.fail(FAILURE);
    exchange.fail(new RpcError(-32602, 'third'));
    expect(sink.messages.map(({ error }) => error.message)).toEqual(['first']);
  });
});

describe('what the core sees of a request', () => {
  it('has no envelope: the text comes under the id that its reader gives it, and is otherwise unchanged', () => {
    const { exchange } = exchangeOf({
      method: 'tools/call',
      params: { name: 'x', n: 1, _meta: { progressToken: 'p' } },
    });
    const { request } = exchange;
    expect(['id', 'span', 'kind'].filter((name) => name in request)).toEqual([]);
    const sink = new RecordingSink();
    sink.send(request.message({ text: Buffer.from('no 42 no'), part: { start: 3, end: 5 } }, []));
    expect(sink.lines).toEqual([
      '{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"x","n":1,"_meta":{"progressToken":42}}}',
    ]);
  });
});
