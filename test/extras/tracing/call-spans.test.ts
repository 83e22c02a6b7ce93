import { describe, expect, it } from 'vitest';
import type { Failure } from '../../../src/downstream/failure.js';
import type { Exchange } from '../../../src/downstream/port.js';
import { type CallSpan, CallSpans, type CallSpansOptions } from '../../../src/extras/tracing/call-spans.js';
import { CallFeed } from '../../../src/gateway/call-feed.js';
import { RpcError } from '../../../src/wire/jsonrpc/message.js';
import { EnvelopeRequest, type RelayedRequest } from '../../../src/wire/mcp/relayed-request.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { bytesOf, responseOf, scan } from '../../support/wire.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const META = (flags: string) => `"_meta":{"traceparent":"00-${TRACE}-00f067aa0ba902b7-${flags}"}`;
const CONNECTION = { generation: 2, revision: '2026-07-28' };

type Settings = CallSpansOptions['settings'];

/** A tracer, and calls that reach it as through a gateway. */
function tracer(settings: Partial<Settings> = {}, options: Partial<CallSpansOptions> = {}) {
  let [now, ids, dropped] = [1000, 0, 0];
  const spans: CallSpan[] = [];
  const faults: unknown[] = [];
  const feed = new CallFeed({ now: () => now }, (error) => faults.push(error));
  const id = (length: number) => (++ids).toString(16).padStart(length, '0');
  feed.observe(
    new CallSpans({
      settings: { sampler: { ratio: 1, followsParent: true }, insertsContext: false, hasContent: false, ...settings },
      ids: { generateTraceId: () => id(32), generateSpanId: () => id(16) },
      random: () => 0.5,
      isSampledId: (traceId) => traceId === TRACE,
      admit: () => true,
      dropped: () => {
        dropped += 1;
      },
      ended: (span) => spans.push(span),
      epoch: () => 1_000_000,
      now: () => now,
      scan,
      redact: (text) => text.replaceAll('hunter2', '[redacted]'),
      addressOf: (server) => (server === 'far' ? { address: 'mcp.example', port: 443 } : undefined),
      ...options,
    }),
  );
  const clientInfo = { name: 'agent', version: '1' };
  const facts = { profile: { clientInfo, capabilities: {}, protocolVersion: '2025-11-25' } };
  const serve = feed.session({ facts, view: { serve: () => {} } });
  return {
    spans,
    faults,
    serve,
    get dropped() {
      return dropped;
    },
    /** A call that is routed to a server, unless that is ''. */
    arrive: (params = '{"name":"far__merge"}', method = 'tools/call', server = 'far'): InMemoryExchange => {
      const exchange = new InMemoryExchange(method, params);
      serve(exchange);
      if (server !== '') exchange.trail?.routed(server, server, server === 'far');
      return exchange;
    },
    elapse: (ms: number) => {
      now += ms;
    },
  };
}

/** Sends a call with its original name. */
function send({ request, trail }: Exchange) {
  const { name } = request.tokens;
  return trail?.sending(CONNECTION, name === undefined ? [] : [{ span: name, text: bytesOf('"merge"') }]);
}

function answer(call: InMemoryExchange, members: string, at = 1000, sentAt = at): void {
  const response = responseOf(`{"jsonrpc":"2.0","id":1,${members}}`);
  call.trail?.attemptEnded({ kind: 'answered', response, at }, sentAt);
  call.answer(response);
}

describe('the spans of a call', () => {
  it('are one at the front and one toward the server, with the names and times of each', () => {
    const { arrive, spans, elapse, faults } = tracer();
    const call = arrive(`{"name":"far__merge",${META('01')}}`);
    elapse(5);
    const edits = send(call);
    elapse(20);
    answer(call, '"result":{"content":[]}', 1024, 1005);
    const [attempt, front] = spans;
    expect(faults).toEqual([]);
    expect(front).toMatchObject({
      ...{ name: 'tools/call far__merge', kind: 'server', startMs: 1_001_000, endMs: 1_001_025, error: undefined },
      ...{ parent: { traceId: TRACE, spanId: '00f067aa0ba902b7' }, context: { traceId: TRACE, traceFlags: 1 } },
      attributes: {
        'gen_ai.tool.name': 'far__merge',
        'trunkline.client.name': 'agent',
        'trunkline.outcome': 'ok',
        'trunkline.queue.wait_ms': 6,
        'network.transport': 'pipe',
      },
    });
    expect(attempt).toMatchObject({
      ...{ name: 'tools/call merge', kind: 'client', startMs: 1_001_005, endMs: 1_001_024 },
      parent: front?.context,
      attributes: {
        'gen_ai.tool.name': 'merge',
        'mcp.protocol.version': '2026-07-28',
        'server.address': 'mcp.example',
        'server.port': 443,
        'network.transport': 'tcp',
        'trunkline.generation': 2,
      },
    });
    const sent = edits?.map(({ text }) => new TextDecoder().decode(text));
    expect(sent).toEqual([`"00-${TRACE}-${attempt?.context.spanId}-01"`]);
    expect(JSON.stringify(spans)).not.toContain('arguments');
  });

  it('are one more for each attempt', () => {
    const { arrive, spans } = tracer();
    const call = arrive();
    send(call);
    call.trail?.attemptEnded({ kind: 'failed', reason: 'exited', sent: true });
    send(call);
    answer(call, '"result":{}');
    expect(spans.map(({ attributes }) => [attributes['error.type'], attributes['trunkline.attempt']])).toEqual([
      ['child_exited', undefined],
      [undefined, 2],
      [undefined, undefined],
    ]);
  });

  it.each([
    [-32602, undefined, '-32602'],
    [-32601, undefined, '-32601'],
    [-32002, undefined, '-32002'],
    [-32603, '-32603', '-32603'],
    [-32000, '-32000', '-32000'],
  ])('judge the code %i by the leg', (code, atFront, atServer) => {
    const { arrive, spans } = tracer();
    const call = arrive();
    send(call);
    answer(call, `"error":{"code":${code},"message":"it is hunter2"}`);
    const [attempt, front] = spans;
    expect([front, attempt].map((span) => span?.attributes['error.type'])).toEqual([atFront, atServer]);
    expect([front, attempt].map((span) => span?.attributes['rpc.response.status_code'])).toEqual(
      Array(2).fill(`${code}`),
    );
    expect([front?.error, attempt?.error]).toEqual([atFront && 'it is [redacted]', 'it is [redacted]']);
  });

  it('have the error of a failed tool, of a failure, and of a cancellation', () => {
    const { arrive, spans } = tracer();
    const complained = arrive();
    send(complained);
    answer(complained, '"result":{"content":[],"isError":true}');
    const failed = arrive();
    const failure: Failure = { reason: 'timeout', server: 'far', generation: 2, sent: true, retryAfterMs: undefined };
    send(failed);
    failed.trail?.attemptEnded({ kind: 'failed', reason: 'timeout', sent: true });
    failed.fail(failure);
    const left = arrive();
    send(left);
    left.cancel();
    const types = spans.map(({ attributes }) => attributes['error.type']);
    expect(types).toEqual(['tool_error', 'tool_error', 'timeout', 'timeout', 'cancelled', 'cancelled']);
  });

  it('name no tool that no server has', () => {
    const { arrive, spans } = tracer();
    arrive('{"name":"made-up"}', 'tools/call', '').fail(new RpcError(-32602, 'Unknown tool'));
    expect(spans).toMatchObject([{ name: 'tools/call', error: undefined }]);
  });

  it('have contents only if asked to, without secrets and cut', () => {
    const { arrive, spans } = tracer({ hasContent: true });
    const call = arrive(`{"name":"far__merge","arguments":{"a":"hunter2","b":"${'x'.repeat(9000)}"}}`);
    send(call);
    answer(call, '"result":{"content":"hunter2"}');
    const { 'gen_ai.tool.call.arguments': given, 'gen_ai.tool.call.result': result } = spans[1]?.attributes ?? {};
    expect(given).toMatch(/^\{"a":"\[redacted\]","b":"x+$/);
    expect(String(given)).toHaveLength(4096);
    expect(result).toBe('{"content":"[redacted]"}');
  });

  it('add a context to a whole message, and not to one that is written with edits of its own', () => {
    const { serve } = tracer({ insertsContext: true });
    const envelope = scan(bytesOf('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"far__merge"}}'));
    if (envelope.kind !== 'request') throw new Error('not a request');
    const whole = new EnvelopeRequest(envelope);
    const inserted = /"_meta":\{"traceparent":"00-/;
    const served = (request: RelayedRequest) => {
      const exchange: Exchange = Object.assign(new InMemoryExchange('tools/call', undefined), { request });
      serve(exchange);
      return Buffer.from(exchange.request.bytes).toString();
    };
    expect(served(whole)).toMatch(inserted);
    expect(served(Object.create(whole, { whole: { value: undefined } }))).not.toMatch(inserted);
  });

  it('give the server no context that the client has not sent', () => {
    expect(send(tracer().arrive())).toBeUndefined();
  });
});

describe('the sampler', () => {
  const follows = (ratio: number) => ({ sampler: { ratio, followsParent: true } });
  const alone = (ratio: number) => ({ sampler: { ratio, followsParent: false } });
  it.each([
    ['all calls', follows(1), '', true],
    ['no call', follows(0), '', false],
    ['a share of the calls that has this one', follows(0.6), '', true],
    ['a share of the calls that lacks this one', follows(0.4), '', false],
    ['a trace that the client samples', follows(0), META('01'), true],
    ['no trace that the client does not sample', follows(1), META('00'), false],
    ['by the id of the trace, whatever the client does', alone(0.1), META('00'), true],
  ])('takes %s', (_, settings, meta, isTraced) => {
    const { arrive, spans } = tracer(settings);
    const call = arrive(meta === '' ? undefined : `{"name":"far__merge",${meta}}`);
    expect(send(call)?.length ?? 0).toBe(isTraced && meta !== '' ? 1 : 0);
    answer(call, '"result":{}');
    expect(spans).toHaveLength(isTraced ? 2 : 0);
  });

  it('takes other requests only if the client samples them', () => {
    const { arrive, spans } = tracer();
    for (const params of ['{}', `{${META('00')}}`, `{${META('01')}}`])
      arrive(params, 'tools/list', '').succeed(bytesOf('{}'));
    expect(spans).toMatchObject([{ name: 'tools/list', kind: 'server' }]);
  });

  it('drops whole calls if there is no room, counts their spans, and changes nothing', () => {
    const traced = tracer({}, { admit: () => false });
    const call = traced.arrive(`{"name":"far__merge",${META('01')}}`);
    expect(send(call)).toBeUndefined();
    answer(call, '"result":{}');
    expect([traced.dropped, traced.spans.length]).toEqual([2, 0]);
  });
});
