import { describe, expect, it } from 'vitest';
import type { Exchange } from '../../src/downstream/port.js';
import { CallFeed, type EndedCall } from '../../src/gateway/call-feed.js';
import { RpcError } from '../../src/jsonrpc/message.js';
import { InMemoryExchange } from '../support/in-memory-client.js';
import { scriptGateway } from '../support/scripted-gateway.js';
import { bytesOf, responseOf } from '../support/wire.js';

function session({ isObserved = true, wantsContent = false } = {}) {
  let now = 0;
  const calls: EndedCall[] = [];
  const served: Exchange[] = [];
  const feed = new CallFeed(() => now);
  if (isObserved) feed.observer = { wantsContent, ended: (call) => calls.push(call) };
  const clientInfo = { name: 'agent', version: '1' };
  const facts = { profile: { clientInfo, capabilities: {}, protocolVersion: '2025-11-25' } };
  const serve = feed.session({ facts, view: { serve: (exchange) => served.push(exchange) } });
  /** The exchange that the gateway gets for a request. */
  const arrive = (exchange: InMemoryExchange): Exchange => {
    serve(exchange);
    return served.at(-1) ?? exchange;
  };
  return {
    calls,
    arrive,
    after: (ms: number) => {
      now += ms;
    },
  };
}

const CALL = () => new InMemoryExchange('tools/call', '{"name":"files__read","arguments":{"path":"a"}}');

describe('the feed of calls', () => {
  it('passes requests on as they are without an observer, and lists always', () => {
    const call = CALL();
    expect(session({ isObserved: false }).arrive(call)).toBe(call);
    const list = new InMemoryExchange('tools/list', '{}');
    expect(session().arrive(list)).toBe(list);
  });

  it('tells client, tool, instance, duration and bytes of a call, and nothing of the content', () => {
    const { calls, arrive, after } = session();
    const call = CALL();
    const exchange = arrive(call);
    exchange.route('files~2');
    after(12);
    exchange.answer(responseOf('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'));
    expect(call.answers).toHaveLength(1);
    expect(calls).toEqual([
      {
        ...{ client: { name: 'agent', version: '1', session: 1 }, instance: 'files~2', generation: undefined },
        ...{ method: 'tools/call', name: 'files__read', requestId: '1', outcome: 'ok', reason: undefined },
        ...{ durationMs: 12, bytesIn: 47, bytesOut: 48, params: undefined, result: undefined },
      },
    ]);
  });

  it.each(['7', 'null', '["\u00e9"]', `{"name":"${'x'.repeat(100)}"}`])('tells of no name where it is %s', (name) => {
    const { calls, arrive } = session();
    arrive(new InMemoryExchange('tools/call', `{"name":${name}}`)).fail(new RpcError(-32602, 'no name'));
    expect(calls).toMatchObject([{ method: 'tools/call', name: undefined, outcome: 'rpc_error' }]);
  });

  it('tells the arguments and the result if they are wanted, also when the memory of the request is used again', () => {
    const { calls, arrive } = session({ wantsContent: true });
    const call = CALL();
    const exchange = arrive(call);
    call.request.bytes.fill(0);
    exchange.succeed(bytesOf('{"x":1}'));
    expect(calls).toMatchObject([
      { params: { text: '{"path":"a"}', isCut: false }, result: { text: '{"x":1}', isCut: false } },
    ]);
  });

  it.each<[string, (exchange: Exchange) => void, Partial<EndedCall>]>([
    [
      'a tool that failed',
      (exchange) => exchange.answer(responseOf('{"jsonrpc":"2.0","id":1,"result":{"isError":true}}')),
      { outcome: 'tool_error' },
    ],
    [
      'an error of the server',
      (exchange) => exchange.answer(responseOf('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}')),
      { outcome: 'rpc_error' },
    ],
    [
      'an error of the gateway',
      (exchange) => exchange.fail(new RpcError(-32602, 'unknown')),
      { outcome: 'rpc_error', reason: 'unknown' },
    ],
    [
      'a server that is gone',
      (exchange) =>
        exchange.fail({ reason: 'child_exited', server: 'files', generation: 3, sent: true, retryAfterMs: undefined }),
      { outcome: 'failed', reason: 'child_exited', generation: 3 },
    ],
  ])('tells the outcome of a call: %s', (_, end, expected) => {
    const { calls, arrive } = session();
    end(arrive(CALL()));
    expect(calls).toMatchObject([expected]);
  });

  it('tells of a cancelled call once, and nothing of what comes later', () => {
    const { calls, arrive } = session();
    const call = CALL();
    const exchange = arrive(call);
    let heard = 0;
    exchange.onCancel(() => {
      heard += 1;
    });
    call.cancel();
    exchange.answer(responseOf('{"jsonrpc":"2.0","id":1,"result":{}}'));
    expect(calls).toMatchObject([{ outcome: 'cancelled' }]);
    expect(heard).toBe(1);
  });
});

describe('a client whose name is no text', () => {
  it('F223: is served like any other', () => {
    const { connect } = scriptGateway({ servers: {} });
    const clientInfo = { name: { toString: 1 }, version: '1' };
    const client = connect();
    client.request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    expect(client.answerTo(1)?.result).toMatchObject({ protocolVersion: '2025-11-25' });
  });
});
