import { describe, expect, it } from 'vitest';
import { RpcError } from '../../../src/jsonrpc/rpc-error.js';
import { bytesOf, type Message } from '../../support/wire.js';
import { answerTo, bridging, progressOf, sendCall } from './bridging.js';

const batchOf = (...messages: (Message | string)[]) =>
  `[${messages.map((message) => (typeof message === 'string' ? message : JSON.stringify(message))).join(' , ')}]`;

const MESSAGE = { jsonrpc: '2.0', method: 'notifications/message', params: {} };

describe('a batch of a child', () => {
  it('is taken as if each of its messages had come alone, in their order', () => {
    const { bridge, junk, notifications, requests, say } = bridging();
    const [one, other] = [sendCall(bridge), sendCall(bridge)];
    say(
      batchOf(
        progressOf(1, 1),
        answerTo(2, 'second'),
        MESSAGE,
        { jsonrpc: '2.0', id: 7, method: 'roots/list' },
        '{"jsonrpc":"2.0", "id":1,"result":{"text":"f\\u0069rst"}}',
      ),
    );
    expect([one.listener.told, other.listener.told]).toEqual([['{"text":"f\\u0069rst"}'], ['{"text":"second"}']]);
    expect(one.listener.reports).toEqual([JSON.stringify(progressOf(1, 1))]);
    expect(notifications.map(({ method }) => method)).toEqual(['notifications/message']);
    expect(requests.map(({ request }) => request.method)).toEqual(['roots/list']);
    expect(bridge.inFlight).toBe(0);
    expect([junk, bridge.counters.junk]).toEqual([[], 0]);
  });

  it('may have requests in it, each of which is answered alone: no array is ever sent to a child', () => {
    const { output, requests, say } = bridging();
    const ask = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'roots/list' });
    say(batchOf(ask('a'), ask(1.5), ask('c')));
    const [first, second, third] = requests;
    if (first === undefined || second === undefined || third === undefined) throw new Error('Not three requests');
    second.succeed(bytesOf('{"roots":[]}'));
    third.fail(new RpcError(-32601, 'no'));
    first.succeed(bytesOf('{}'));
    expect(output.lines).toEqual([
      '{"jsonrpc":"2.0","id":1.5,"result":{"roots":[]}}',
      '{"jsonrpc":"2.0","id":"c","error":{"code":-32601,"message":"no"}}',
      '{"jsonrpc":"2.0","id":"a","result":{}}',
    ]);
  });

  it('loses what is no message in it to the log, and nothing else', () => {
    const { bridge, junk, say } = bridging();
    const { listener } = sendCall(bridge);
    say(batchOf('7', '{"level":"info"}', answerTo(1, 'done'), '[{"jsonrpc":"2.0","method":"n"}]'));
    expect(listener.told).toEqual(['{"text":"done"}']);
    expect(junk).toEqual([
      ['7', 'not-an-object'],
      ['{"level":"info"}', 'not-json-rpc'],
      ['[{"jsonrpc":"2.0","method":"n"}]', 'batch'],
    ]);
    expect(bridge.counters.junk).toBe(3);
  });

  it('fails the request that a spoilt answer in it belongs to', () => {
    const { bridge, say } = bridging();
    const [one, other] = [sendCall(bridge), sendCall(bridge)];
    say(batchOf('{"jsonrpc":"2.0","id":1}', answerTo(2)));
    expect([one.listener.told, other.listener.told]).toEqual([['response_malformed sent'], ['{}']]);
  });

  it('has no answer to one request twice, nor one that nobody asked for', () => {
    const { bridge, say } = bridging();
    const { listener } = sendCall(bridge);
    say(batchOf(answerTo(1, 'first'), answerTo(1, 'second'), answerTo(9)));
    expect(listener.told).toEqual(['{"text":"first"}']);
    expect(bridge.counters).toMatchObject({ duplicate: 1, unknown: 1 });
  });

  it.each([
    ['[]', 'batch'],
    ['[1,2,"three"]', 'batch'],
    ['[[{}]]', 'batch'],
    ['[{"jsonrpc":"2.0","id":1,"result":{}},]', 'not-json'],
    [`[${Array(101).fill('{"jsonrpc":"2.0","method":"n"}').join(',')}]`, 'batch-too-long'],
  ])('is %.40s not, which is one line of output like any other', (line, reason) => {
    const { bridge, junk, notifications, say } = bridging();
    const { listener } = sendCall(bridge);
    say(line);
    expect(junk).toEqual([[`${line}`, reason]]);
    expect([listener.told, notifications, bridge.counters.junk]).toEqual([[], [], 1]);
  });
});
