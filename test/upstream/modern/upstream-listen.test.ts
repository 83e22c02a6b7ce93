import { describe, expect, it } from 'vitest';
import { flush, type Message } from '../../support/wire.js';
import { Listener, TIMEOUTS } from '../stdio/bridging.js';
import { openModern } from './opening.js';

const ID = 'io.modelcontextprotocol/subscriptionId';
const LISTS = { tools: { listChanged: true }, prompts: {}, resources: { listChanged: true, subscribe: true } };
const OF_LISTS = { toolsListChanged: true, resourcesListChanged: true };
const UPDATED = 'notifications/resources/updated';

async function listening(capabilities: Message = LISTS) {
  const server = await openModern({ capabilities });
  const { output, connection, say, notifications } = server;
  const listens = () => output.messages.filter(({ method }) => method === 'subscriptions/listen');
  const last = () => listens().at(-1) ?? {};
  const cancelled = () =>
    output.messages.filter(({ method }) => method === 'notifications/cancelled').map(({ params }) => params.requestId);
  /** The server acknowledges a stream, by default the last one with all that it wants. */
  const acknowledge = ({ id, params } = last(), honored: Message = params.notifications) =>
    say({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: { [ID]: id }, notifications: honored },
    });
  const notify = (method: string, id: unknown, params: Message = {}) =>
    say({ jsonrpc: '2.0', method, params: { _meta: { [ID]: id, 'x/y': 1 }, ...params } });
  const subscription = async (uri: string, method = 'resources/subscribe') => {
    const listener = new Listener();
    void connection.request(method, { uri }, TIMEOUTS).then((outcome) => listener.settle(outcome));
    await flush();
    return listener;
  };
  const texts = () =>
    notifications.map(({ bytes, span }) => Buffer.from(bytes.subarray(span.start, span.end)).toString());
  return { ...server, listens, last, cancelled, acknowledge, notify, subscription, texts };
}

describe('the stream of changes', () => {
  it('is opened with the connection, for the lists whose changes the server declares', async () => {
    const { listens, connection, acknowledge, texts, clock } = await listening();
    expect(listens()).toMatchObject([{ params: { notifications: OF_LISTS } }]);
    expect(listens()[0]?.params._meta).toHaveProperty(['io.modelcontextprotocol/protocolVersion'], '2026-07-28');
    await acknowledge();
    expect(texts()).toEqual([]);
    // It stands open: nobody waits for its answer, and it has no deadline.
    expect(connection.inFlight).toBe(0);
    clock.advance(24 * 60 * 60_000);
    expect(clock.pending).toBe(0);
  });

  it('is not opened for a server that declares none', async () => {
    expect((await listening({ tools: {} })).listens()).toEqual([]);
  });

  it('brings notifications, which lose what names the stream', async () => {
    const { acknowledge, notify, last, say, texts } = await listening();
    await acknowledge();
    await notify('notifications/tools/list_changed', last().id);
    await say({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed', params: { _meta: { [ID]: last().id } } });
    await notify('notifications/tools/list_changed', 99);
    await say('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}');
    expect(texts()).toEqual([
      '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x/y":1}}}',
      '{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}',
      '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}',
    ]);
  });

  it('F151: is opened again after a pause when the server ends it, and reports what may have been missed', async () => {
    const { acknowledge, listens, last, say, advance, texts } = await listening();
    await acknowledge();
    await say({ jsonrpc: '2.0', id: last().id, result: { resultType: 'complete' } });
    await advance(999);
    expect(listens()).toHaveLength(1);
    await advance(1);
    expect(listens()).toHaveLength(2);
    expect(texts()).toEqual([]);
    await acknowledge(last(), { toolsListChanged: true });
    expect(texts()).toEqual(['{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}']);
  });

  it('F151: reports each resource that is subscribed to, too, when it is opened again', async () => {
    const { acknowledge, subscription, last, say, advance, texts } = await listening();
    await acknowledge();
    await subscription('x://a');
    await acknowledge();
    await say({ jsonrpc: '2.0', id: last().id, result: {} });
    await advance(1_000);
    await acknowledge(last(), { resourceSubscriptions: ['x://a'] });
    expect(texts()).toEqual([`{"jsonrpc":"2.0","method":"${UPDATED}","params":{"uri":"x://a"}}`]);
  });

  it('is opened again as well when the server cancels it', async () => {
    const { acknowledge, listens, last, say, advance, texts } = await listening();
    await acknowledge();
    await say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: last().id } });
    expect(texts()).toEqual([]);
    await advance(1_000);
    expect(listens()).toHaveLength(2);
  });

  it('is tried less and less often while it ends soon', async () => {
    const { acknowledge, listens, last, say, advance } = await listening();
    for (const [count, pauseMs] of [1_000, 2_000, 4_000].entries()) {
      await acknowledge();
      await say({ jsonrpc: '2.0', id: last().id, result: {} });
      await advance(pauseMs - 1);
      expect(listens()).toHaveLength(count + 1);
      await advance(1);
    }
  });

  it('is not tried again by a server without that method', async () => {
    const { listens, last, say, advance, clock } = await listening();
    await say({ jsonrpc: '2.0', id: last().id, error: { code: -32601, message: 'no' } });
    await advance(600_000);
    expect(listens()).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it('ends with the connection, and leaves no timer', async () => {
    const { acknowledge, bridge, clock } = await listening();
    await acknowledge();
    bridge.close('stopped');
    expect(clock.pending).toBe(0);
  });
});

describe('a subscription to a resource', () => {
  it('opens a wider stream, and the earlier one ends when that is acknowledged', async () => {
    const { acknowledge, subscription, listens, last, cancelled } = await listening();
    await acknowledge();
    const listener = await subscription('a:b');
    expect(listens()).toHaveLength(2);
    expect(last().params.notifications).toEqual({ ...OF_LISTS, resourceSubscriptions: ['a:b'] });
    expect([listener.told, cancelled()]).toEqual([[], []]);
    await acknowledge();
    expect([listener.told, cancelled()]).toEqual([['{}'], [listens()[0]?.id]]);
  });

  it('invariant 26: loses no update while the stream is replaced', async () => {
    const { acknowledge, subscription, listens, notify, texts } = await listening();
    await acknowledge();
    await subscription('a:b');
    await acknowledge();
    await subscription('a:c');
    const [, earlier, wider] = listens();
    await notify(UPDATED, earlier?.id, { uri: 'a:b' });
    await acknowledge(wider);
    await notify(UPDATED, wider?.id, { uri: 'a:c' });
    expect(texts().map((text) => JSON.parse(text).params.uri)).toEqual(['a:b', 'a:c']);
  });

  it('F225: reports what may have been missed if the server ends the earlier stream before the wider one is open', async () => {
    const { acknowledge, subscription, listens, say, texts } = await listening();
    await acknowledge();
    await subscription('a:b');
    await acknowledge();
    await subscription('a:c');
    await say({ jsonrpc: '2.0', id: listens()[1]?.id, result: { resultType: 'complete' } });
    await acknowledge();
    expect(texts().map((text) => JSON.parse(text))).toContainEqual({
      jsonrpc: '2.0',
      method: UPDATED,
      params: { uri: 'a:b' },
    });
  });

  it('fails if the acknowledgment leaves it out, and is not asked for again', async () => {
    const { acknowledge, subscription, last } = await listening();
    await acknowledge();
    const refused = await subscription('a:none');
    await acknowledge(last(), OF_LISTS);
    expect(refused.told).toEqual([expect.stringContaining('-32602')]);
    await subscription('a:b');
    expect(last().params.notifications.resourceSubscriptions).toEqual(['a:b']);
  });

  it('fails with the error of the server', async () => {
    const { acknowledge, subscription, last, say, cancelled } = await listening();
    await acknowledge();
    const refused = await subscription('a:b');
    await say({ jsonrpc: '2.0', id: last().id, error: { code: -32000, message: 'too many' } });
    expect(refused.told).toEqual(['{"code":-32000,"message":"too many"}']);
    // The stream of before still stands.
    expect(cancelled()).toEqual([]);
  });

  it('fails if the server does not acknowledge it', async () => {
    const { acknowledge, subscription, advance, cancelled, last } = await listening();
    await acknowledge();
    const waiting = await subscription('a:b');
    await advance(10_000);
    expect(waiting.told).toEqual([expect.stringContaining('-32603')]);
    expect(cancelled()).toEqual([last().id]);
  });

  it('waits for the stream that is being opened, and several take one more', async () => {
    const { acknowledge, subscription, listens, last } = await listening();
    const all = [await subscription('a:1'), await subscription('a:2'), await subscription('a:3')];
    expect(listens()).toHaveLength(1);
    await acknowledge();
    expect(listens()).toHaveLength(2);
    expect(last().params.notifications.resourceSubscriptions).toEqual(['a:1', 'a:2', 'a:3']);
    await acknowledge();
    expect(all.map(({ told }) => told)).toEqual([['{}'], ['{}'], ['{}']]);
  });

  it('leaves the stream when its client does, and the last one ends a stream that has nothing else', async () => {
    const { acknowledge, subscription, listens, last, cancelled } = await listening({ resources: { subscribe: true } });
    await subscription('a:1');
    await acknowledge();
    await subscription('a:2');
    await acknowledge();
    expect((await subscription('a:1', 'resources/unsubscribe')).told).toEqual(['{}']);
    expect(last().params.notifications).toEqual({ resourceSubscriptions: ['a:2'] });
    await acknowledge();
    await subscription('a:2', 'resources/unsubscribe');
    expect(cancelled()).toEqual(listens().map(({ id }) => id));
  });

  it('fails when its client leaves before the server has agreed, and says so', async () => {
    const { subscription } = await listening();
    const waiting = await subscription('a:b');
    expect((await subscription('a:b', 'resources/unsubscribe')).told).toEqual(['{}']);
    expect(waiting.told).toEqual([expect.stringContaining('ended before the server agreed')]);
  });

  it('fails with the connection', async () => {
    const { subscription, bridge } = await listening();
    const waiting = await subscription('a:b');
    bridge.close('exited');
    await flush();
    expect(waiting.told).toEqual(['exited sent']);
  });
});

describe('the states of a task', () => {
  /** Watches a task; `outcomes` is what came of it. */
  async function watching() {
    const server = await listening({ tools: {} });
    const outcomes: boolean[] = [];
    const end = server.connection.watchTask?.('t', (agreed) => outcomes.push(agreed)) ?? (() => {});
    await flush();
    return { ...server, outcomes, end };
  }

  it('are asked for beside the resources, by a client with the extension', async () => {
    const { last, acknowledge, outcomes, subscription } = await watching();
    expect(last().params.notifications).toEqual({ taskIds: ['t'] });
    expect(last().params._meta['io.modelcontextprotocol/clientCapabilities'].extensions).toHaveProperty([
      'io.modelcontextprotocol/tasks',
    ]);
    await acknowledge();
    expect(outcomes).toEqual([true]);
    await subscription('x://1');
    expect(last().params.notifications).toEqual({ resourceSubscriptions: ['x://1'], taskIds: ['t'] });
  });

  it.each([[{}], [{ taskIds: ['u'] }], [{ taskIds: 't' }], [{ resourceSubscriptions: ['t'] }]])(
    'are not promised if the server acknowledges %j',
    async (honored) => {
      const { acknowledge, last, outcomes } = await watching();
      await acknowledge(last(), honored);
      expect(outcomes).toEqual([false]);
    },
  );

  it('are not promised if the server ends before', async () => {
    const { connection, outcomes } = await watching();
    connection.close('exited');
    await flush();
    expect(outcomes).toEqual([false]);
  });

  it('F190: are read and reported after a time without a stream', async () => {
    const { acknowledge, last, say, advance, texts, output } = await watching();
    await acknowledge();
    await say({ jsonrpc: '2.0', id: last().id, result: { resultType: 'complete' } });
    await advance(1_000);
    await acknowledge();
    const { id, params } = output.messages.find(({ method }) => method === 'tasks/get') ?? {};
    expect(params.taskId).toBe('t');
    await say(`{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","taskId":"t","n":1.0,"_meta":{"a":1}}}`);
    expect(texts()).toEqual(['{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","n":1.0}}']);
  });

  it.each(['"text"', '[1]', 'null', '{"taskId":"t","uri":1,"uri":2}'])(
    'F201: are not reported from a server that answers %s, which does no harm',
    async (result) => {
      const { acknowledge, last, say, advance, texts, output } = await watching();
      await acknowledge();
      await say({ jsonrpc: '2.0', id: last().id, result: { resultType: 'complete' } });
      await advance(1_000);
      await acknowledge();
      const { id } = output.messages.find(({ method }) => method === 'tasks/get') ?? {};
      await say(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
      expect(texts()).toEqual([]);
    },
  );

  it('are asked for until the task has ended, which the server may forget then', async () => {
    const { acknowledge, notify, last, listens, subscription } = await watching();
    await acknowledge();
    await notify('notifications/tasks', last().id, { taskId: 't', status: 'working' });
    void subscription('x://1');
    await flush();
    expect(last().params.notifications).toEqual({ resourceSubscriptions: ['x://1'], taskIds: ['t'] });
    await acknowledge();
    await notify('notifications/tasks', last().id, { taskId: 't', status: 'completed' });
    expect(listens()).toHaveLength(2);
    void subscription('x://2');
    await flush();
    expect(last().params.notifications).toEqual({ resourceSubscriptions: ['x://1', 'x://2'] });
  });

  it.each([
    ['"result":{"taskId":"t","status":"completed"}', 1],
    ['"error":{"code":-32602,"message":"Unknown task"}', 0],
  ])('are read if a task that ended without a stream is not honored, and not asked for again', async (answer, told) => {
    const { acknowledge, last, say, advance, texts, output, subscription } = await watching();
    await acknowledge();
    await say({ jsonrpc: '2.0', id: last().id, result: { resultType: 'complete' } });
    await advance(1_000);
    await acknowledge(last(), {});
    const { id } = output.messages.find(({ method }) => method === 'tasks/get') ?? {};
    await say(`{"jsonrpc":"2.0","id":${id},${answer}}`);
    expect(texts()).toHaveLength(told);
    void subscription('x://1');
    await flush();
    expect(last().params.notifications).toEqual({ resourceSubscriptions: ['x://1'] });
  });

  it('F196: are not asked for again if the server refuses a stream for a task that it has forgotten', async () => {
    const { acknowledge, last, say, advance, output, listens, subscription } = await watching();
    void subscription('x://1');
    await flush();
    await acknowledge();
    await acknowledge();
    await say({ jsonrpc: '2.0', id: last().id, result: { resultType: 'complete' } });
    await advance(1_000);
    expect(last().params.notifications).toEqual({ resourceSubscriptions: ['x://1'], taskIds: ['t'] });
    const unknown = { code: -32602, message: 'Unknown task' };
    await say({ jsonrpc: '2.0', id: last().id, error: unknown });
    const { id } = output.messages.find(({ method }) => method === 'tasks/get') ?? {};
    await say({ jsonrpc: '2.0', id, error: unknown });
    const before = listens().length;
    await advance(2_000);
    expect(listens()).toHaveLength(before + 1);
    expect(last().params.notifications).toEqual({ resourceSubscriptions: ['x://1'] });
  });

  it('are waited for no longer when nobody watches any more before the server was asked for them', async () => {
    const { acknowledge, connection, last } = await watching();
    const other: boolean[] = [];
    connection.watchTask?.('other', (agreed) => other.push(agreed))();
    await acknowledge();
    await acknowledge();
    expect(last().params.notifications).toEqual({ taskIds: ['t'] });
    expect(other).toEqual([false]);
  });

  it('are not asked for any more when nobody watches', async () => {
    const { acknowledge, last, cancelled, end } = await watching();
    await acknowledge();
    end();
    await flush();
    expect(cancelled()).toEqual([last().id]);
  });
});
