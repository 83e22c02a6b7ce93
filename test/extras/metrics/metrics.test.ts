import { describe, expect, it } from 'vitest';
import type { FailureReason } from '../../../src/downstream/failure.js';
import { expositionOf, Histogram, MAX_TOOLS, Metrics } from '../../../src/extras/metrics/metrics.js';
import { CallFeed } from '../../../src/gateway/call-feed.js';
import { EventBus } from '../../../src/host/observe/events/events.js';
import type { ChildSnapshot } from '../../../src/spec/server-state.js';
import { RpcError } from '../../../src/wire/jsonrpc/message.js';
import { FakeClock } from '../../support/fake-clock.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { startGateway } from '../../support/scripted-gateway.js';
import { bytesOf, responseOf } from '../../support/wire.js';

function measuring({ listed = (name: string): boolean => name.startsWith('files__'), hasTools = true } = {}) {
  let now = 0;
  const events = new EventBus();
  const exposedName = (server: string | undefined, name: string) => {
    const isListed = server === undefined ? name === 'trunkline__status' : listed(name);
    return isListed ? name : undefined;
  };
  const metrics = new Metrics({ exposedName }, events);
  metrics.hasTools = hasTools;
  const feed = new CallFeed({ now: () => now });
  feed.observe(metrics);
  const facts = { profile: { clientInfo: {}, capabilities: {}, protocolVersion: '2025-11-25' } };
  const serve = feed.session({ facts, view: { serve: () => {} } });
  /** A call that ends in this way after some milliseconds. Without a server, it is sent to none. */
  const call = (name: string, end: (exchange: InMemoryExchange) => void, { server = 'files', ms = 3 } = {}) => {
    const exchange = new InMemoryExchange('tools/call', { name });
    serve(exchange);
    if (server !== '') exchange.trail?.routed(server, server, false);
    now += ms;
    end(exchange);
  };
  const ofSeries = (name: 'calls' | 'refused' | 'restarts' | 'renewals') =>
    metrics[name].samples.flatMap(({ labels, value }) =>
      value > 0 ? [`${Object.values(labels).join(' ')} ${value}`] : [],
    );
  const counts = () => ofSeries('calls');
  return { ...{ metrics, events, call, counts, ofSeries, serve } };
}

const OK = (exchange: InMemoryExchange) => exchange.answer(responseOf('{"jsonrpc":"2.0","id":1,"result":{}}'));
const FAILED = (reason: FailureReason, sent: boolean) => (exchange: InMemoryExchange) =>
  exchange.fail({ reason, server: 'files', generation: 1, sent, retryAfterMs: undefined });

describe('the counters of calls', () => {
  it('count each tool call once, by server, tool and outcome, and nothing else', () => {
    const { call, counts, serve, ofSeries } = measuring();
    call('files__read', OK);
    call('files__read', OK);
    call('files__read', FAILED('timeout', true));
    call('files__read', FAILED('queue_full', false));
    call('files__gone', (exchange) => exchange.cancel(), { server: '' });
    call('nothing', (exchange) => exchange.fail(new RpcError(-32602, 'Unknown tool: nothing')), { server: '' });
    call('trunkline__status', (exchange) => exchange.succeed(bytesOf('{}')), { server: '' });
    const prompt = new InMemoryExchange('prompts/get', { name: 'files__p' });
    serve(prompt);
    OK(prompt);
    expect(counts()).toEqual([
      ...['files files__read ok 2', 'files files__read not_sent 1', 'files files__read unknown 1'],
      ...[' other not_sent 2', 'trunkline trunkline__status ok 1'],
    ]);
    expect(ofSeries('refused')).toEqual(['call queue_full 1', 'call cancelled 1', 'call invalid 1']);
  });

  it('count tools that no list has as other, and name no tool if the configuration says so', () => {
    const { call, counts } = measuring();
    call('files__read', OK);
    call('made up by the client', OK);
    expect(counts()).toEqual(['files files__read ok 1', 'files other ok 1']);
    const nameless = measuring({ hasTools: false });
    nameless.call('files__read', OK);
    nameless.call('made up by the client', OK);
    expect(nameless.counts()).toEqual(['files  ok 2']);
  });

  it('have a bounded number of tools', () => {
    const { counts, call } = measuring({ listed: () => true });
    for (let at = 0; at < MAX_TOOLS + 50; at += 1) call(`tool${at}`, OK);
    expect(counts()).toHaveLength(MAX_TOOLS + 1);
    expect(counts()).toContain('files other ok 50');
  });

  it('give made-up error codes of a server no series of their own', () => {
    const { metrics, call } = measuring();
    for (const code of [-32603, 1, 2, 3])
      call('files__read', (exchange) =>
        exchange.answer(responseOf(`{"jsonrpc":"2.0","id":1,"error":{"code":${code},"message":""}}`)),
      );
    const types = metrics.clientRequests.samples.map(({ labels }) => labels.error_type);
    expect(types).toEqual(['-32603', '_OTHER']);
  });
});

describe('the counters of events', () => {
  it('tell why a server was started again, and count no first start and no start after idleness', () => {
    const { events, ofSeries } = measuring();
    const move = (restarts: number, ...states: ChildSnapshot['state'][]) => {
      for (const state of states)
        events.emit({ kind: 'server.changed', instance: 'files~2', snapshot: { state, restarts } as ChildSnapshot });
    };
    move(0, 'starting', 'ready', 'backoff');
    move(1, 'starting', 'ready', 'stopping', 'idle', 'starting', 'ready', 'stopping');
    move(2, 'starting', 'parked');
    move(3, 'starting');
    // The server cannot be reached.
    move(3, 'offline', 'starting', 'offline', 'starting');
    expect(ofSeries('restarts')).toEqual(['files failed 1', 'files requested 1', 'files parked 1']);
  });
});

describe('the text for Prometheus', () => {
  it('counts a duration in its bucket and in all above', () => {
    const histogram = new Histogram();
    for (const seconds of [0.0004, 0.0005, 0.3, 1_000]) histogram.add(seconds);
    const samples = { x_seconds: [{ labels: { server: 'a' }, value: histogram }] };
    const lines = expositionOf(
      { histogram: { x_seconds: 'Help.', y_seconds: 'Of a feature that is off.' } },
      samples,
    ).split('\n');
    expect(lines.slice(0, 3)).toEqual([
      ...['# HELP x_seconds Help.', '# TYPE x_seconds histogram', 'x_seconds_bucket{server="a",le="0.0005"} 2'],
    ]);
    expect(lines).toContain('x_seconds_bucket{server="a",le="0.2"} 2');
    expect(lines).toContain('x_seconds_bucket{server="a",le="0.5"} 3');
    expect(lines.slice(-4)).toEqual([
      ...['x_seconds_bucket{server="a",le="+Inf"} 4', 'x_seconds_sum{server="a"} 1000.3009'],
      ...['x_seconds_count{server="a"} 4', ''],
    ]);
  });

  it('escapes the values of labels, and leaves out labels without a value', () => {
    const samples = { x: [{ labels: { tool: 'a"b\\c\nd', none: undefined }, value: 1 }] };
    expect(expositionOf({ gauge: { x: 'Help.' } }, samples)).toContain('\nx{tool="a\\"b\\\\c\\nd"} 1\n');
  });
});

describe('the metrics of a gateway', () => {
  it('have the time in the server apart from the wait for a slot', async () => {
    const clock = new FakeClock();
    const calls = new CallFeed(clock);
    const metrics = new Metrics({ exposedName: (_, name) => name }, new EventBus());
    calls.observe(metrics);
    const server = { tools: ['read'], limits: { concurrency: 1 } };
    const { connect, server: of } = await startGateway({ servers: { a: server }, calls, clock });
    const client = connect().greet();
    client.call(1, 'a__read');
    client.call(2, 'a__read');
    clock.advance(40);
    of('a').child.answer(0);
    await expect.poll(() => of('a').child.calls).toHaveLength(2);
    clock.advance(10);
    of('a').child.answer(1);
    const [waits, durations] = [metrics.waits.samples[0]?.value, metrics.durations.samples[0]?.value];
    expect(durations?.sum).toBeCloseTo(0.09);
    expect(waits?.counts.reduce((sum, each) => sum + each)).toBe(2);
    // The second call waited for the end of the first one.
    expect(waits?.counts[6]).toBe(1);
  });
});
