import { describe, expect, it } from 'vitest';
import type { Failure, FailureReason } from '../../src/downstream/failure.js';
import type { CallTrail, Exchange } from '../../src/downstream/port.js';
import { CallFeed, type CallObservation, type ObservedCall } from '../../src/gateway/call-feed.js';
import { valuesAt } from '../../src/wire/json/json-text.js';
import { type Edit, type SplicedMessage, splice } from '../../src/wire/json/splice.js';
import { RpcError, unedited } from '../../src/wire/jsonrpc/message.js';
import { InMemoryExchange } from '../support/in-memory-client.js';
import { scriptGateway, startGateway } from '../support/scripted-gateway.js';
import { bytesOf, responseOf } from '../support/wire.js';

/** The facts of a call at its end. */
function factsOf(call: ObservedCall) {
  const { client, server, instance, method, name, requestId, outcome, effect, reason, errorCode } = call;
  const { durationMs, waitedMs, servedMs, attempts, bytesIn, bytesOut } = call;
  return {
    ...{ client, server, instance, method, name, requestId, outcome, effect, reason, errorCode },
    ...{ durationMs, waitedMs, servedMs, attempts, bytesIn, bytesOut },
  };
}

function session(observations: readonly CallObservation[] = [{}]) {
  let now = 0;
  const calls: ReturnType<typeof factsOf>[] = [];
  const served: Exchange[] = [];
  const faults: unknown[] = [];
  const feed = new CallFeed({ now: () => now }, (error) => faults.push(error));
  const ends = observations.map((each) => feed.observe({ begin: () => each }));
  ends.push(feed.observe({ begin: () => ({ ended: (call) => void calls.push(factsOf(call)) }) }));
  const clientInfo = { name: 'agent', version: '1' };
  const facts = { profile: { clientInfo, capabilities: {}, protocolVersion: '2025-11-25' } };
  const serve = feed.session({ facts, view: { serve: (exchange) => served.push(exchange) } });
  return {
    ...{ calls, faults, served },
    /** Passes a request to the gateway, which routes it to a server. */
    arrive: (exchange: InMemoryExchange): InMemoryExchange => {
      serve(exchange);
      exchange.trail?.routed('files', 'files~2', false);
      return exchange;
    },
    elapse: (ms: number) => {
      now += ms;
    },
    stop: () => {
      for (const end of ends) end();
    },
  };
}

const CALL = () => new InMemoryExchange('tools/call', '{"name":"files__read","arguments":{"path":"a"}}');
const CONNECTION = { generation: 3, revision: '2025-06-18' };
const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}';
const lost = (sent: boolean) => ({ kind: 'failed', reason: 'exited', sent }) as const;
const failure = (reason: FailureReason, sent: boolean): Failure => {
  return { reason, server: 'files', generation: 3, sent, retryAfterMs: undefined };
};

describe('the feed of calls', () => {
  it('passes requests on without a trail if nobody observes, and lists always', () => {
    const { arrive, stop } = session();
    expect(arrive(new InMemoryExchange('tools/list', '{}')).trail).toBeUndefined();
    expect(arrive(CALL()).trail).toBeDefined();
    stop();
    expect(arrive(CALL()).trail).toBeUndefined();
  });

  it('tells client, tool, server, bytes and times of a call, apart from the time in the server', () => {
    const { calls, arrive, elapse } = session();
    const call = arrive(CALL());
    elapse(5);
    call.trail?.sending(CONNECTION, []);
    elapse(12);
    call.trail?.attemptEnded({ kind: 'answered', response: responseOf(ANSWER), at: 16 }, 5);
    call.answer(responseOf(ANSWER));
    expect(call.answers).toHaveLength(1);
    expect(calls).toEqual([
      {
        ...{ client: { name: 'agent', version: '1', session: 1 }, server: 'files', instance: 'files~2' },
        ...{ method: 'tools/call', name: 'files__read', requestId: '1', outcome: 'ok', effect: 'ok' },
        ...{ reason: undefined, errorCode: undefined, durationMs: 17, waitedMs: 6, servedMs: 11, attempts: 1 },
        ...{ bytesIn: 47, bytesOut: 48 },
      },
    ]);
  });

  it.each(['7', 'null', '["\u00e9"]', `{"name":"${'x'.repeat(100)}"}`])('tells of no name where it is %s', (name) => {
    const { calls, arrive } = session();
    arrive(new InMemoryExchange('tools/call', `{"name":${name}}`)).fail(new RpcError(-32602, 'no name'));
    expect(calls).toMatchObject([{ method: 'tools/call', name: undefined, outcome: 'rpc_error', errorCode: -32602 }]);
  });

  it.each<[string, (exchange: InMemoryExchange) => void, object]>([
    [
      'a tool that failed',
      (exchange) => exchange.answer(responseOf('{"jsonrpc":"2.0","id":1,"result":{"isError":true}}')),
      { outcome: 'tool_error', effect: 'tool_error' },
    ],
    [
      'an error of the server',
      (exchange) => exchange.answer(responseOf('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}')),
      { outcome: 'rpc_error', effect: 'failed', errorCode: 1 },
    ],
    [
      'an error of the gateway',
      (exchange) => exchange.fail(new RpcError(-32602, 'unknown')),
      { outcome: 'rpc_error', effect: 'not_sent', reason: 'unknown', errorCode: -32602 },
    ],
    [
      'a server that is gone',
      (exchange) => exchange.fail(failure('child_exited', true)),
      { outcome: 'failed', effect: 'unknown', reason: 'child_exited' },
    ],
    [
      'a server that is not ready',
      (exchange) => exchange.fail(failure('starting', false)),
      { outcome: 'failed', effect: 'not_sent' },
    ],
    [
      'a lost answer',
      (exchange) => exchange.fail(failure('response_too_large', true)),
      { outcome: 'failed', effect: 'failed' },
    ],
    [
      'a tool of the gateway that failed',
      (exchange) => exchange.succeed(bytesOf('{"content":[],"isError":true}')),
      { outcome: 'tool_error', effect: 'tool_error' },
    ],
  ])('tells the outcome of a call: %s', (_, end, expected) => {
    const { calls, arrive } = session();
    end(arrive(CALL()));
    expect(calls).toMatchObject([expected]);
  });

  it('tells of a cancelled call once, and nothing of what comes later', () => {
    const { calls, arrive } = session();
    const call = arrive(CALL());
    call.cancel();
    call.answer(responseOf(ANSWER));
    expect(calls).toMatchObject([{ outcome: 'cancelled', effect: 'not_sent' }]);
  });

  it.each<[string, (trail: CallTrail) => void, string]>([
    ['written', (trail) => trail.sent(unedited(bytesOf('{}'))), 'unknown'],
    ['lost before it was written', (trail) => trail.attemptEnded(lost(false)), 'not_sent'],
    ['lost after it was written', (trail) => trail.attemptEnded(lost(true)), 'unknown'],
  ])('knows whether a cancelled call may have run: %s', (_, happen, effect) => {
    const { calls, arrive } = session();
    const call = arrive(CALL());
    call.trail?.sending(CONNECTION, []);
    if (call.trail !== undefined) happen(call.trail);
    call.cancel();
    expect(calls).toMatchObject([{ outcome: 'cancelled', effect }]);
  });

  it('counts a request that its session serves again as one call, with all its attempts', () => {
    const { calls, arrive, elapse } = session();
    const call = arrive(CALL());
    for (const at of [10, 30]) {
      arrive(call).trail?.sending(CONNECTION, []);
      elapse(10);
      call.trail?.attemptEnded({ kind: 'answered', response: responseOf(ANSWER), at }, at - 10);
      elapse(10);
    }
    call.answer(responseOf(ANSWER));
    expect(calls).toMatchObject([{ attempts: 2, servedMs: 20, waitedMs: 20 }]);
  });

  it('sends the edits of all observers, and goes on without them if one fails', () => {
    const edit = (start: number): Edit => ({ span: { start, end: start }, text: bytesOf('x') });
    const { faults, arrive } = session([{ sending: () => [edit(1)] }, { sending: () => [edit(2)] }]);
    expect(arrive(CALL()).trail?.sending(CONNECTION, [])).toEqual([edit(1), edit(2)]);
    expect(faults).toEqual([]);
    const broken: CallObservation = {
      sending: () => {
        throw new Error('broken');
      },
    };
    const other = session([broken]);
    const call = other.arrive(CALL());
    expect(call.trail?.sending(CONNECTION, [])).toBeUndefined();
    call.answer(responseOf(ANSWER));
    expect([call.answers.length, other.faults]).toEqual([1, [new Error('broken')]]);
  });
});

describe('a call through the gateway', () => {
  it.each([false, true])(
    'shows the messages of both legs to an observer that adds to the request (modern: %s)',
    async (isModern) => {
      const calls = new CallFeed({ now: () => 0 });
      const seen: string[] = [];
      const note = (leg: string, message: SplicedMessage | undefined) => {
        const { id, method, params, result } = JSON.parse(
          message === undefined ? '{}' : Buffer.from(splice(message)).toString(),
        );
        seen.push(
          `${leg} ${id} ${method ?? JSON.stringify(result.content)} ${params?.name} ${params?._meta?.traceparent}`,
        );
      };
      calls.observe({
        begin: ({ exchange }) => {
          note('client', exchange.received);
          return {
            sending: (call, { generation, revision }) => {
              seen.push(`${call.server} ${generation} ${revision}`);
              const { tokens, bytes } = exchange.request;
              const [span] = valuesAt(bytes, tokens.requestMeta ?? { start: 0, end: 0 }, ['traceparent']);
              return span && [{ span, text: bytesOf('"ours"') }];
            },
            sent: (_, message) => note('server', message),
            attemptEnded: (_, outcome) => {
              if (outcome.kind === 'answered') note('server', { ...outcome.response, edits: [] });
            },
            ended: (_, { message }) => note('client', message),
          };
        },
      });
      const server = { hasBridge: true, isModern, tools: ['read'] };
      const { connect, server: of } = await startGateway({ servers: { a: server }, calls });
      const client = isModern ? connect() : connect().greet();
      const params = { name: 'a__read', _meta: { traceparent: 'theirs' } };
      if (isModern) client.modernRequest('x', 'tools/call', params);
      else client.request('x', 'tools/call', params);
      const [{ id } = {}] = of('a').child.calls;
      of('a').child.answer(0, { content: [], resultType: 'complete' });
      expect(client.answerTo('x')).toBeDefined();
      expect(seen).toEqual([
        'client x tools/call a__read theirs',
        `a 1 ${isModern ? '2026-07-28' : '2025-11-25'}`,
        `server ${id} tools/call read ours`,
        `server ${id} [] undefined undefined`,
        'client x [] undefined undefined',
      ]);
    },
  );
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
