import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EditAnswer } from '../../../src/gateway/dispatch/call.js';
import type { ServerState } from '../../../src/spec/server-state.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { LIMITS } from '../../support/scripted-gateway.js';
import { bytesOf, flush, notificationOf, requestOf } from '../../support/wire.js';
import { dispatching } from './dispatching.js';

const ANSWER = '{"content":[]}';

describe('a call to a process that runs', () => {
  it('lets its connection ask the client for input, and says whether the client takes a result that requires it', async () => {
    const { dispatcher, start } = dispatching();
    const child = await start();
    const send = vi.spyOn(child.connection, 'send');
    const exchange = new InMemoryExchange();
    exchange.takesInputRequests = true;
    dispatcher.serve(exchange, { edits: [] });
    const handler = send.mock.calls[0]?.[3];
    expect(handler?.takesInputRequests).toBe(true);
    const request = new EnvelopeRequest(requestOf({ jsonrpc: '2.0', id: 1, method: 'roots/list' }));
    handler?.requireInput?.({ request, edits: [], answer: () => {}, fail: () => {}, progress: () => {} });
    expect(exchange.inputs).toHaveLength(1);
  });

  it('tells when it was written, each time that it is', async () => {
    const { dispatcher, start, serve } = dispatching();
    const first = await start();
    const exchange = serve({}, true);
    expect(exchange.leases).toEqual(['leased', 'released']);
    dispatcher.stateChanged('backoff');
    first.connection.close('exited');
    await start();
    expect(exchange.leases).toEqual(['leased', 'released', 'leased', 'released']);
  });

  it('tells nothing of that when it may be looked at after its answer, as one that becomes a task', async () => {
    const { dispatcher, start } = dispatching();
    const child = await start();
    const exchange = new InMemoryExchange();
    const translation = { answer: () => [], progress: () => [], cancel: () => [] };
    dispatcher.serve(exchange, { edits: [], translation });
    child.answer(0);
    expect(exchange.answers).toHaveLength(1);
    expect(exchange.leases).toEqual([]);
  });

  it('has what it is said to be changed in its answer changed when that comes, and nothing else', async () => {
    const { dispatcher, start } = dispatching();
    const child = await start();
    const exchange = new InMemoryExchange();
    const editAnswer = vi.fn<EditAnswer>(({ tokens: { isError } }) => {
      return isError === undefined ? [] : [{ span: isError, text: bytesOf('false') }];
    });
    dispatcher.serve(exchange, { edits: [], editAnswer });
    expect(editAnswer).not.toHaveBeenCalled();
    child.say(`{"jsonrpc":"2.0","result":{ "isError" : true,"n":1.0 },"id":${child.calls[0]?.id}}`);
    expect(editAnswer).toHaveBeenCalledTimes(1);
    expect(exchange.answers).toEqual(['{ "isError" : false,"n":1.0 }']);
  });

  it('is counted as an error when the server says so, in either way', async () => {
    const { dispatcher, start, serve } = dispatching();
    const child = await start();
    const exchanges = [serve(), serve(), serve(), serve()];
    child.answer(0, { isError: true });
    child.answer(1, { isError: false });
    child.say({ jsonrpc: '2.0', id: child.calls[2]?.id, error: { code: -32602, message: 'no' } });
    child.answer(3);
    expect(exchanges.map(({ answers }) => answers.length)).toEqual([1, 1, 1, 1]);
    expect(dispatcher.counters).toMatchObject({ calls: 4, errors: 2, failures: 0 });
  });

  it('reports progress only to a client that asked for it', async () => {
    const { start, serve } = dispatching();
    const child = await start();
    const [asked, not] = [serve({ _meta: { progressToken: 'p' } }), serve()];
    for (const { id } of child.calls) {
      child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: 1 } });
    }
    expect([asked.reports, not.reports]).toEqual([[1], []]);
  });

  it('F2: fails as unknown when the process ends, once and with its generation', async () => {
    const { dispatcher, start, serve } = dispatching();
    await start();
    const child = await start();
    const exchange = serve();
    child.connection.close('exited');
    child.answer(0);
    expect(exchange.answers).toHaveLength(1);
    expect(exchange.failure).toEqual({
      reason: 'child_exited',
      code: 'TL-CALL-EXITED',
      server: 'files',
      generation: 2,
      sent: true,
      outcome: 'unknown',
    });
    expect(dispatcher.counters.failures).toBe(1);
  });

  it('says what the server did, if it was ended for that', async () => {
    const { start, serve } = dispatching();
    const child = await start();
    const exchange = serve();
    child.connection.close('exited', 'it went mad');
    expect(exchange.failure).toMatchObject({ reason: 'child_exited', outcome: 'unknown', because: 'it went mad' });
  });

  it('goes to the next process if nothing of it can have reached the one that ends', async () => {
    const { dispatcher, start, serve } = dispatching();
    const first = await start();
    const sent = serve();
    const before = first.received.sentBytes;
    const unsent = [serve({ arguments: { n: 1 } }), serve({ arguments: { n: 2 } })];
    first.received.lostBytes = first.received.sentBytes - before;
    first.connection.close('exited', 'it went mad');
    dispatcher.stateChanged('backoff');
    expect(sent.failure).toMatchObject({ outcome: 'unknown' });
    const second = await start();
    expect(second.calls.map(({ params }) => params.arguments.n)).toEqual([1, 2]);
    for (const index of [0, 1]) second.answer(index);
    expect(unsent.map(({ answers }) => answers)).toEqual([[ANSWER], [ANSWER]]);
    expect(dispatcher.counters).toMatchObject({ failures: 1, repeated: 0 });
  });

  it('goes to the next process if it waited for the liveness probe, and the probe failed', async () => {
    const { clock, dispatcher, start, serve } = dispatching();
    const first = await start();
    dispatcher.stateChanged('suspect');
    const exchange = serve();
    clock.advance(4_000);
    first.connection.close('exited', 'it was silent');
    dispatcher.stateChanged('backoff');
    const second = await start();
    second.answer(0);
    expect([first.calls, exchange.answers]).toEqual([[], [ANSWER]]);
  });

  it('fails when it takes too long, and leaves its place to the next one', async () => {
    const { clock, start, serve } = dispatching({ concurrency: 1, timeoutMs: 1_000 });
    const child = await start();
    const [first, second] = [serve(), serve()];
    clock.advance(1_000);
    await flush();
    expect(first.failure).toMatchObject({ reason: 'timeout', sent: true });
    expect(child.calls).toHaveLength(2);
    child.answer(1);
    expect(second.answers).toEqual([ANSWER]);
  });
});

describe('a call that waits for its turn', () => {
  it('is sent when another one ends, in order of arrival', async () => {
    const { dispatcher, start, serve } = dispatching({ concurrency: 1 });
    const child = await start();
    for (const n of [0, 1, 2]) serve({ arguments: { n } });
    expect(dispatcher.admission.queued).toBe(2);
    for (const n of [0, 1, 2]) {
      expect(child.calls.at(-1)?.params.arguments.n).toBe(n);
      child.answer(n);
      await flush();
    }
    expect(dispatcher.admission.queued).toBe(0);
  });

  it('is refused when too many wait already', async () => {
    const { start, serve } = dispatching({ concurrency: 1, maxQueued: 2 });
    await start();
    const exchanges = [serve(), serve(), serve(), serve()];
    expect(exchanges.map(({ failure }) => failure?.reason)).toEqual([undefined, undefined, undefined, 'queue_full']);
    expect(exchanges[3]?.failure).toMatchObject({ sent: false, outcome: 'not_sent' });
  });

  it('gives up after its time and is not sent later', async () => {
    const { clock, dispatcher, start, serve } = dispatching({ concurrency: 1, maxWaitMs: 2_000 });
    const child = await start();
    serve();
    const waiting = serve();
    clock.advance(1_999);
    expect(waiting.answers).toEqual([]);
    clock.advance(1);
    expect(waiting.failure).toMatchObject({ reason: 'queue_timeout', sent: false });
    child.answer(0);
    await flush();
    expect(child.calls).toHaveLength(1);
    expect(dispatcher.admission.queued).toBe(0);
  });

  it('F3: goes to the next process when this one ends before it was sent', async () => {
    const { start, serve } = dispatching({ concurrency: 1 });
    const first = await start();
    const [sent, waiting] = [serve(), serve()];
    first.connection.close('exited');
    await flush();
    expect(sent.failure).toMatchObject({ outcome: 'unknown' });
    expect(waiting.answers).toEqual([]);
    const second = await start();
    expect(second.calls).toHaveLength(1);
    second.answer(0);
    expect(waiting.answers).toEqual([ANSWER]);
  });

  it('is told at once when no process is to be expected', async () => {
    const { clock, dispatcher, start, serve } = dispatching({ concurrency: 1 });
    const child = await start();
    const exchanges = [serve(), serve(), serve()];
    dispatcher.stateChanged('parked');
    child.connection.close('exited');
    await flush();
    expect(exchanges.map(({ failure }) => failure?.reason)).toEqual(['child_exited', 'parked', 'parked']);
    expect(dispatcher.admission.queued).toBe(0);
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
  });
});

describe('a call while there is no process', () => {
  it('waits, and is handed over to the next one exactly once', async () => {
    const { clock, dispatcher, start, serve } = dispatching();
    const exchanges = [serve(), serve()];
    expect(dispatcher.admission.queued).toBe(2);
    clock.advance(4_999);
    const child = await start();
    expect(child.calls).toHaveLength(2);
    expect(dispatcher.admission.queued).toBe(0);
    const again = await start();
    expect(again.calls).toEqual([]);
    child.answer(0);
    child.answer(1);
    expect(exchanges.map(({ answers }) => answers)).toEqual([[ANSWER], [ANSWER]]);
  });

  it.each<['starting' | 'restarting', number, ServerState[]]>([
    ['starting', 60_000, ['starting']],
    ['restarting', 5_000, ['starting', 'backoff', 'starting']],
  ])('is told that it is %s after %i ms', (absence, waitMs, states) => {
    const { clock, dispatcher, serve } = dispatching({}, () => 1_500);
    for (const state of states) dispatcher.stateChanged(state);
    const exchange = serve();
    clock.advance(waitMs - 1);
    expect(exchange.isSettled).toBe(false);
    clock.advance(1);
    expect(exchange.failure).toMatchObject({ reason: absence, sent: false, retryAfterMs: 1_500 });
    expect(dispatcher.admission.queued).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('keeps its turn, so that no more calls reach the next process than it takes at a time', async () => {
    const { start, serve } = dispatching({ concurrency: 2 });
    for (let count = 0; count < 5; count += 1) serve();
    const child = await start();
    await flush();
    expect(child.calls).toHaveLength(2);
    child.answer(0);
    await flush();
    expect(child.calls).toHaveLength(3);
  });

  it('waits on for the process after next when the next one dies at once', async () => {
    const { dispatcher, start, serve } = dispatching();
    const dead = await start();
    dead.connection.close('exited');
    const exchange = serve();
    expect(exchange.answers).toEqual([]);
    expect(dispatcher.connection).toBeUndefined();
    const child = await start();
    child.answer(0);
    expect(exchange.answers).toEqual([ANSWER]);
  });
});

describe('a cancelled call', () => {
  it('that was sent is cancelled at the child, and its answer comes too late', async () => {
    const { dispatcher, start, serve } = dispatching({ concurrency: 1 });
    const child = await start();
    const [exchange] = [serve(), serve()];
    exchange?.cancel(
      notificationOf({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: 1, reason: 'user', _meta: { a: 1 } },
      }),
    );
    await flush();
    expect(child.cancellations.map(({ params }) => params)).toEqual([
      { requestId: child.calls[0]?.id, reason: 'user', _meta: { a: 1 } },
    ]);
    expect(child.calls).toHaveLength(2);
    child.answer(0);
    expect(exchange?.answers).toEqual([]);
    expect(dispatcher.counters).toEqual({ calls: 2, errors: 0, failures: 0, cancelled: 1, repeated: 0 });
  });

  it('that waited for its turn is never sent', async () => {
    const { dispatcher, start, serve } = dispatching({ concurrency: 1 });
    const child = await start();
    serve();
    serve().cancel();
    await flush();
    expect(dispatcher.admission.queued).toBe(0);
    child.answer(0);
    await flush();
    expect(child.calls).toHaveLength(1);
    expect(child.cancellations).toEqual([]);
    expect(dispatcher.counters).toMatchObject({ cancelled: 1, failures: 0 });
  });

  it('that waited for a process is never sent, and leaves its turn to others', async () => {
    const { clock, dispatcher, start, serve } = dispatching({ concurrency: 1 });
    serve().cancel();
    const other = serve();
    await flush();
    const child = await start();
    expect(child.calls).toHaveLength(1);
    child.answer(0);
    expect(other.answers).toEqual([ANSWER]);
    expect(dispatcher.counters).toEqual({ calls: 2, errors: 0, failures: 0, cancelled: 1, repeated: 0 });
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
  });

  it('cannot be cancelled once it was answered', async () => {
    const { dispatcher, start, serve } = dispatching();
    const child = await start();
    const exchange = serve();
    child.answer(0);
    exchange.cancel();
    expect(child.cancellations).toEqual([]);
    expect(dispatcher.counters.cancelled).toBe(0);
  });
});

describe('a child that lives but does not serve', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Five calls that time out. */
  async function worn() {
    const world = dispatching({ timeoutMs: 1_000, listTimeoutMs: 1_000 });
    const child = await world.start();
    const calls = [1, 2, 3, 4, 5].map(() => world.serve());
    world.clock.advance(1_000);
    await flush();
    expect(calls.map(({ failure }) => failure?.reason)).toEqual(Array(5).fill('timeout'));
    return { ...world, child };
  }

  it('is not called any more: calls are answered at once', async () => {
    const { dispatcher, serve, child } = await worn();
    expect(dispatcher.breaker.state).toBe('open');
    const exchange = serve();
    expect(exchange.failure).toMatchObject({ reason: 'breaker_open', sent: false, retryAfterMs: expect.any(Number) });
    expect(exchange.failure?.retryAfterMs).toBe(30_000);
    expect(child.calls).toHaveLength(5);
    expect(dispatcher.counters).toMatchObject({ calls: 6, failures: 6 });
    dispatcher.close();
  });

  it('gets none of the calls that were in the queue when that showed', async () => {
    const { dispatcher, start, serve, clock } = dispatching({
      timeoutMs: 1_000,
      maxWaitMs: 60_000,
      concurrency: 5,
    });
    const child = await start();
    const calls = Array.from({ length: 8 }, () => serve());
    expect(child.calls).toHaveLength(5);
    clock.advance(1_000);
    await flush();
    const reasons = calls.map(({ failure }) => failure?.reason);
    expect(reasons.slice(0, 5)).toEqual(Array(5).fill('timeout'));
    expect(reasons.slice(5)).toEqual(Array(3).fill('breaker_open'));
    expect(child.calls).toHaveLength(5);
    dispatcher.close();
  });

  it.each(['ping', 'tools/list'])('is probed by ourselves, and called again when it answers %s', async (method) => {
    const { clock, dispatcher, serve, child } = await worn();
    child.listsTools = false;
    vi.advanceTimersByTime(30_000);
    await flush();
    // A server that answers the `ping` gets no `tools/list`, because its lists may hang.
    expect([child.asked('ping').length, child.asked('tools/list').length]).toEqual([1, 0]);
    if (method === 'tools/list') {
      clock.advance(LIMITS.listTimeoutMs);
      await flush();
    }
    expect(dispatcher.breaker.state).toBe('half-open');
    child.reply(method, { code: -32601, message: 'no such method' });
    await flush();
    expect(dispatcher.breaker.state).toBe('closed');
    const exchange = serve();
    child.answer(5);
    expect(exchange.answers).toEqual([ANSWER]);
    dispatcher.close();
  });

  it('is judged anew when it is a new process', async () => {
    const { dispatcher, start, serve } = await worn();
    const child = await start();
    expect(dispatcher.breaker.state).toBe('closed');
    serve();
    expect(child.calls).toHaveLength(1);
    dispatcher.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('F47: is not what a server is that answers with errors, or dies', async () => {
    const { dispatcher, start, serve } = dispatching();
    let child = await start();
    for (let count = 0; count < 100; count += 1) {
      serve();
      child.answer(count, { isError: true });
    }
    for (let count = 0; count < 10; count += 1) {
      serve();
      child.connection.close('exited');
      child = await start();
    }
    expect(dispatcher.breaker.state).toBe('closed');
    dispatcher.close();
  });
});

describe('a call that is refused without a try', () => {
  it('is counted and told why', async () => {
    const { dispatcher, start, serve } = dispatching();
    await start();
    const exchange = serve();
    expect(exchange.answers).toEqual([]);
    dispatcher.refuse(exchange, 'misconfigured');
    expect(exchange.failure).toMatchObject({ reason: 'misconfigured', sent: false, outcome: 'not_sent' });
    expect(dispatcher.counters).toMatchObject({ calls: 2, failures: 1 });
  });
});
