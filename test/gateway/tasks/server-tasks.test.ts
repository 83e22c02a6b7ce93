import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createOwnTool, textResult } from '../../../src/gateway/routing/own-tool.js';
import { scriptGateway, startGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';
import {
  made,
  notificationsOf,
  progressOf,
  RELATED,
  related,
  replied,
  serverRequests,
  statusOf,
  tasking,
  taskOf,
  taskServer,
  withClient,
  withTask,
  withTwo,
} from './tasking.js';

const UNKNOWN = { code: -32602, message: 'Unknown task' };

describe('a call that is to become a task', () => {
  it('goes to its server as it is, and the client gets the task under an id of ours, all else untouched', async () => {
    const { client, child } = await withClient();
    client.say(
      '{"params":{"task":{"ttl":1e3 ,"x":1.0},"name":"a__slow"},"id":"c","method":"tools/call","jsonrpc":"2.0"}',
    );
    const sent = child.received.lines.at(-1) ?? '';
    expect(sent).toBe(
      `{"params":{"task":{"ttl":1e3 ,"x":1.0},"name":"slow"},"id":${JSON.parse(sent).id},"method":"tools/call","jsonrpc":"2.0"}`,
    );
    child.say(
      `{"result":{"task":{"x":1e400, "taskId":"t-1","status":"working"},"taskId":"mine"},"id":${JSON.parse(sent).id},"jsonrpc":"2.0"}`,
    );
    const id = client.answerTo('c')?.result.task.taskId;
    expect(id).toMatch(/^a:aaaaaaaaaa:[0-9a-f]{64}:t-1$/);
    expect(client.received.lines.at(-1)).toBe(
      `{"result":{"task":{"x":1e400, "taskId":"${id}","status":"working"},"taskId":"mine"},"id":"c","jsonrpc":"2.0"}`,
    );
  });

  it('may be answered at once, and that answer is not touched', async () => {
    const { client, child } = await withClient();
    client.call(1, 'a__slow', { task: {} });
    child.answer(0, { content: [], taskId: 't' });
    expect(client.answerTo(1)?.result).toEqual({ content: [], taskId: 't' });
  });

  it('is the only one whose answer can be a task: another server may mean something else by the word', async () => {
    const { client, child } = await withClient();
    client.call(1, 'a__slow');
    child.answer(0, { task: { taskId: 't' } });
    expect(client.answerTo(1)?.result).toEqual({ task: { taskId: 't' } });
  });

  it('gets an error that is one when it fails here, as its client waits for a task and not for content', async () => {
    const { client, server } = await withClient();
    server('a').crash('parked');
    client.call(1, 'a__slow', { task: {} });
    client.call(2, 'a__slow');
    expect(client.answerTo(1)?.error).toMatchObject({ code: -32603, data: { reason: 'parked', outcome: 'not_sent' } });
    expect(client.answerTo(2)?.result.isError).toBe(true);
  });

  it('is not for a tool of our own, which answers at once', async () => {
    const own = createOwnTool({ name: 'trunkline__x', inputSchema: { type: 'object' } }, () => textResult('x'));
    const { connect } = scriptGateway({ servers: {}, ownTools: [own] });
    const client = connect().greet();
    client.call(1, 'trunkline__x', { task: {} });
    await flush();
    expect(client.answerTo(1)?.error.code).toBe(-32601);
  });
});

describe('a request about a task', () => {
  it.each(['tasks/get', 'tasks/cancel'])('%s reaches its server under the original id, and back', async (method) => {
    const { client, child, server } = await withClient();
    const id = made(client, child, 't"1');
    client.say(`{"params":{"x":1.0,"taskId":${JSON.stringify(id)}},"jsonrpc":"2.0","id":2,"method":"${method}"}`);
    const sent = child.received.lines.at(-1) ?? '';
    expect(sent).toBe(
      `{"params":{"x":1.0,"taskId":"t\\"1"},"jsonrpc":"2.0","id":${JSON.parse(sent).id},"method":"${method}"}`,
    );
    child.say(`{"id":${JSON.parse(sent).id},"result":{"n":1.0,"taskId":"t\\"1"},"jsonrpc":"2.0"}`);
    expect(client.received.lines.at(-1)).toBe(
      `{"id":2,"result":{"n":1.0,"taskId":${JSON.stringify(id)}},"jsonrpc":"2.0"}`,
    );
    expect(server('b').child.asked(method)).toEqual([]);
  });

  it('tasks/result brings what the call would have, which says only in its metadata whose it is', async () => {
    const { client, child, taskId: id } = await withTask();
    client.request(2, 'tasks/result', { taskId: id });
    expect(child.asked('tasks/result')[0]?.params).toEqual({ taskId: 't' });
    child.reply('tasks/result', { content: [], taskId: 'its own', status: 'completed', ...related('t') });
    expect(client.answerTo(2)?.result).toEqual({
      content: [],
      taskId: 'its own',
      status: 'completed',
      ...related(id),
    });
  });

  it('is answered with the error that the server gives', async () => {
    const { client, child } = await withClient();
    client.request(2, 'tasks/result', { taskId: made(client, child, 't') });
    const error = { code: -32000, message: 'the call failed so', data: { taskId: 't' } };
    child.reply('tasks/result', error);
    expect(client.answerTo(2)?.error).toEqual(error);
  });

  it.each(['tasks/get', 'tasks/result', 'tasks/cancel'])(
    '%s with an id that we did not give reaches no server',
    async (method) => {
      const { handshake, child, server } = await tasking();
      const client = handshake();
      const id = made(client, child, 't');
      const before = [child, server('b').child].map(({ received }) => received.lines.length);
      const spoilt = [...Array(id.length).keys()].map(
        (at) => `${id.slice(0, at)}${id[at] === 'x' ? 'y' : 'x'}${id.slice(at + 1)}`,
      );
      for (const taskId of ['t', '', 7, null, undefined, {}, id.replace('a:', 'b:'), ...spoilt]) {
        client.request('x', method, { taskId });
      }
      client.request('x', method);
      const answers = client.received.messages.filter((message) => message.id === 'x');
      expect(answers).toHaveLength(8 + spoilt.length);
      for (const { error } of answers) expect(error).toEqual(UNKNOWN);
      expect([child, server('b').child].map(({ received }) => received.lines.length)).toEqual(before);
    },
  );

  it("with another person's id reaches no server either", async () => {
    const { handshake, child } = await tasking();
    const id = made(handshake({ principal: 'one' }), child, 't');
    const other = handshake({ principal: 'other' });
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      other.request(method, method, { taskId: id });
      expect(other.answerTo(method)?.error).toEqual(UNKNOWN);
      expect(child.asked(method)).toEqual([]);
    }
  });

  it('may come from another client of the same person, and through the endpoint of the server alone', async () => {
    const { handshake, child } = await tasking();
    const id = made(handshake(), child, 't');
    handshake().request(1, 'tasks/get', { taskId: id });
    const alone = handshake({ server: 'a' });
    await flush();
    alone.request(1, 'tasks/get', { taskId: id });
    expect(child.asked('tasks/get').map(({ params }) => params.taskId)).toEqual(['t', 't']);
  });

  describe('that another process of the gateway has named', () => {
    /** A process, and the id of a task that an earlier process or another gateway with the same key has named. */
    async function named() {
      const { handshake, child } = await tasking('all', {}, 'bbbbbbbbbb');
      const id = made(handshake(), child, 't');
      expect(id).toMatch(/^a:bbbbbbbbbb:/);
      return { ...(await withClient()), id };
    }

    it('reaches the server, which may have the task, and keeps its id', async () => {
      const { client, child, id } = await named();
      client.request(1, 'tasks/get', { taskId: id });
      expect(child.asked('tasks/get')[0]?.params.taskId).toBe('t');
      child.reply('tasks/get', taskOf('t'));
      expect(client.answerTo(1)?.result.taskId).toBe(id);
      child.say(statusOf('t', 'completed'));
      expect(client.received.last.params.taskId).toBe(id);
    });

    it('F316: gets an error that says where the task may be if the server does not have it', async () => {
      const { client, child, id } = await named();
      client.request(1, 'tasks/get', { taskId: id });
      child.reply('tasks/get', { code: -32602, message: 'Task not found' });
      expect(client.answerTo(1)?.error).toEqual({
        code: -32602,
        message: expect.stringContaining('Another process of Trunkline made this task'),
      });
    });

    it('gets every other error as the server wrote it, such as that of the task itself', async () => {
      const { client, child, id } = await named();
      client.request(1, 'tasks/result', { taskId: id });
      child.reply('tasks/result', { code: -32000, message: 'The task failed' });
      expect(client.answerTo(1)?.error).toEqual({ code: -32000, message: 'The task failed' });
    });
  });

  it('gets the error of the server as it is for a task of this process', async () => {
    const { client, child } = await withClient();
    client.request(1, 'tasks/get', { taskId: made(client, child, 't') });
    child.reply('tasks/get', { code: -32602, message: 'Task not found' });
    expect(client.answerTo(1)?.error).toEqual({ code: -32602, message: 'Task not found' });
  });

  it('takes the id of its params for what counts, whatever its metadata says', async () => {
    const { client, child } = await withClient();
    const [one, other] = [made(client, child, 't-1'), made(client, child, 't-2')];
    client.request(1, 'tasks/get', { taskId: one, ...related(other) });
    expect(child.asked('tasks/get')[0]?.params).toEqual({ taskId: 't-1', ...related('t-2') });
  });
});

describe('a wait for a result', () => {
  it('keeps no call from its turn, however long it takes', async () => {
    const { handshake, child } = await tasking('all', { limits: { concurrency: 1 } });
    const client = handshake();
    const id = made(client, child, 't');
    client.request('wait', 'tasks/result', { taskId: id });
    client.request('again', 'tasks/result', { taskId: id });
    client.request('cancel', 'tasks/cancel', { taskId: id });
    expect(child.asked('tasks/cancel')).toHaveLength(1);
  });

  it('is as long as a call may last, with or without progress, and its end says nothing against the server', async () => {
    const { client, child, server, clock, taskId: id } = await withTask();
    for (let call = 0; call < 10; call += 1) client.request(call, 'tasks/result', { taskId: id });
    clock.advance(599_999);
    expect(client.answerTo(0)).toBeUndefined();
    clock.advance(1);
    expect(client.answerTo(9)?.error).toMatchObject({ code: -32603, data: { reason: 'timeout' } });
    expect(child.cancellations).toHaveLength(10);
    await flush();
    expect(server('a').backend.dispatcher.breaker.state).toBe('closed');
  });

  it('is not what calls take', async () => {
    const { client, child, server, clock, taskId: id } = await withTask();
    client.request(1, 'tasks/result', { taskId: id });
    clock.advance(50_000);
    child.reply('tasks/result', { content: [] });
    expect(server('a').backend.dispatcher.latencies.quantile(1)).toBe(0);
  });

  it('is one of a bounded number', async () => {
    const { client, child, taskId: id } = await withTask();
    for (let call = 0; call < 257; call += 1) client.request(call, 'tasks/result', { taskId: id });
    expect(client.answerTo(256)?.error.data.reason).toBe('queue_full');
    child.reply('tasks/result', { content: [] });
    client.request('next', 'tasks/result', { taskId: id });
    expect(client.answerTo('next')).toBeUndefined();
  });

  it('can be given up', async () => {
    const { client, child, taskId: id } = await withTask();
    client.request(1, 'tasks/result', { taskId: id });
    const params = { requestId: 1, reason: 'enough', ...related(id) };
    client.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    const requestId = child.asked('tasks/result')[0]?.id;
    expect(child.cancellations.map((notice) => notice.params)).toEqual([
      { requestId, reason: 'enough', ...related('t') },
    ]);
  });
});

describe('the list of tasks', () => {
  const listed = async (client: ReturnType<Awaited<ReturnType<typeof tasking>>['handshake']>): Promise<Message> => {
    client.request('list', 'tasks/list');
    await flush();
    const answer = client.answerTo('list');
    client.received.take();
    return answer?.result;
  };

  it('holds those of all servers, under our ids, each as its server wrote it', async () => {
    const { client, child, server, taskId: id } = await withTask();
    client.call('b', 'b__slow', { task: {} });
    server('b').child.answer(0, { task: taskOf('t') });
    const other = client.answerTo('b')?.result.task.taskId;
    client.received.take();
    client.request(1, 'tasks/list', {});
    child.say(
      `{"jsonrpc":"2.0","id":${child.asked('tasks/list')[0]?.id},"result":{"tasks":[{ "x":1e400,"taskId":"t" }]}}`,
    );
    server('b').child.reply('tasks/list', { tasks: [{ taskId: 't' }] });
    await flush();
    expect(client.received.lines).toEqual([
      `{"jsonrpc":"2.0","id":1,"result":{"tasks":[{ "x":1e400,"taskId":"${id}" },{"taskId":"${other}"}]}}`,
    ]);
  });

  it('lacks those of a server that cannot list them or does not answer in time', async () => {
    const { client, child, server, clock, taskId: id } = await withTask();
    client.request(1, 'tasks/list');
    await replied(child, 'tasks/list', { tasks: [taskOf('t')] });
    expect(client.answerTo(1)).toBeUndefined();
    clock.advance(30_000);
    await flush();
    expect(client.answerTo(1)?.result.tasks).toEqual([taskOf(id)]);
    server('b').crash();
    client.request(2, 'tasks/list');
    await replied(child, 'tasks/list', { code: -32000, message: 'no' });
    expect(client.answerTo(2)?.result).toEqual({ tasks: [] });
  });

  it('is not asked of a server that has none', async () => {
    const { connect, server } = await startGateway({ servers: { a: { tools: ['x'] } } });
    const client = connect().greet();
    expect(await listed(client)).toEqual({ tasks: [] });
    expect(server('a').child.asked('tasks/list')).toEqual([]);
  });

  it('has one page, so that no cursor can be right', async () => {
    const { client, child } = await withClient();
    client.request(1, 'tasks/list', { cursor: 'x' });
    expect(client.answerTo(1)?.error).toEqual({ code: -32602, message: 'Invalid cursor' });
    expect(child.asked('tasks/list')).toEqual([]);
  });
});

describe('of the tasks that a server lists', () => {
  /** One server, and the same list as each client sees it. */
  async function listing(sharing: 'all' | 'profile') {
    const world = await startGateway({ servers: { a: taskServer({ sharing }) } });
    const { child } = world.server('a');
    const client = (principal: string) => world.connect({ principal }).greet();
    const seen = async (by: ReturnType<typeof client>, tasks: unknown[]) => {
      by.request('list', 'tasks/list');
      await replied(child, 'tasks/list', { tasks });
      const [answer] = by.received.take();
      return answer?.result.tasks.map(({ taskId }: Message) => taskId.split(':').at(-1));
    };
    return { ...world, child, client, seen };
  }

  const ALL = [taskOf('t-1'), taskOf('t-2'), taskOf('t-3'), { status: 'working' }, { taskId: 7 }, 7, null, [], 'x'];

  it('a client sees those of its own person', async () => {
    const { child, client, seen } = await listing('all');
    const [one, other] = [client('one'), client('other')];
    made(one, child, 't-1');
    made(other, child, 't-2');
    for (const each of [one, other]) each.received.take();
    expect([await seen(one, ALL), await seen(other, ALL)]).toEqual([['t-1'], ['t-2']]);
    one.session.close();
    expect(await seen(client('one'), ALL)).toEqual(['t-1']);
    expect(await seen(other, ALL)).toEqual(['t-2']);
  });

  it('a client sees those that nobody made if the process serves one person alone', async () => {
    const { client, seen } = await listing('profile');
    expect(await seen(client('one'), ALL)).toEqual(['t-1', 't-2', 't-3']);
  });

  it('a client never sees those that nobody made if the process is shared by all, even when it is alone', async () => {
    const { client, seen } = await listing('all');
    expect(await seen(client('one'), ALL)).toEqual([]);
  });
});

describe('the news of a task', () => {
  it('goes to whose task it is, under our id, all else untouched', async () => {
    const { one, other, child } = await withTwo();
    const id = made(one, child, 't');
    for (const client of [one, other]) client.received.take();
    child.say(
      '{"params":{"x":1.0,"taskId":"t","status":"working"},"jsonrpc":"2.0","method":"notifications/tasks/status"}',
    );
    expect(one.received.lines).toEqual([
      `{"params":{"x":1.0,"taskId":"${id}","status":"working"},"jsonrpc":"2.0","method":"notifications/tasks/status"}`,
    ]);
    expect(other.received.lines).toEqual([]);
  });

  it('is what a server says of it in any notification, such as a message for the log', async () => {
    const { one, other, child } = await withTwo();
    const id = made(one, child, 't');
    const say = (level: string) =>
      child.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data: 1, ...related('t') } });
    say('info');
    expect(notificationsOf(one, 'notifications/message')).toEqual([
      { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1, ...related(id) } },
    ]);
    one.request(1, 'logging/setLevel', { level: 'error' });
    say('info');
    say('error');
    expect(notificationsOf(one, 'notifications/message')).toHaveLength(2);
    expect(notificationsOf(other, 'notifications/message')).toEqual([]);
  });

  it('goes to the only client there is when nobody is known to have made the task, and else to nobody', async () => {
    const { handshake, child } = await tasking();
    const one = handshake();
    child.say(statusOf('never seen'));
    expect(notificationsOf(one, 'notifications/tasks/status')).toHaveLength(1);
    const other = handshake();
    child.say(statusOf('never seen'));
    expect([one, other].flatMap((client) => notificationsOf(client, 'notifications/tasks/status'))).toHaveLength(1);
  });

  it('that names no task reaches nobody', async () => {
    const { client, child } = await withClient();
    child.say({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { taskId: 7 } });
    expect(client.received.lines).toEqual([]);
  });

  it('goes to nobody but the same person when its client has left', async () => {
    const { handshake, child } = await tasking();
    const one = handshake({ principal: 'one' });
    made(one, child, 't');
    one.session.close();
    const stranger = handshake({ principal: 'other' });
    child.say(statusOf('t'));
    expect(stranger.received.lines).toEqual([]);
    stranger.session.close();
    const back = handshake({ principal: 'one' });
    child.say(statusOf('t'));
    expect(notificationsOf(back, 'notifications/tasks/status')).toHaveLength(1);
  });

  it('never comes before the task itself, even when the answer follows progress', async () => {
    const { client, child, clock } = await withClient();
    client.call(1, 'a__slow', { task: {}, _meta: { progressToken: 'p' } });
    child.say(progressOf(child.calls[0]?.id, 1));
    child.answer(0, { task: taskOf('t') });
    child.say(statusOf('t', 'completed'));
    clock.advance(100);
    const order = client.received.messages.map(({ id, method }) => method ?? id);
    expect(order).toEqual(['notifications/progress', 1, 'notifications/tasks/status']);
  });
});

describe('a server request about a task', () => {
  const ASK = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'Sure?', ...related('t') } };

  it('goes to whose task it is, even when another client has a call in flight', async () => {
    const { one, other, child } = await withTwo();
    const id = made(one, child, 't');
    other.call(1, 'a__slow');
    child.say(ASK);
    expect(serverRequests(other)).toEqual([]);
    expect(serverRequests(one)).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'elicitation/create',
        params: { message: 'Server "a" asks: Sure?', ...related(id) },
      },
    ]);
  });

  it('is answered under the id that the server knows, and progress of the answer comes so too', async () => {
    const { client, child, taskId: id } = await withTask();
    child.say({ ...ASK, params: { ...ASK.params, _meta: { ...related('t')._meta, progressToken: 'sp' } } });
    const { id: asked, params } = serverRequests(client)[0] ?? {};
    client.say(progressOf(params._meta.progressToken, 1, related(id)));
    client.say({ jsonrpc: '2.0', id: asked, result: { action: 'accept', ...related(id) } });
    expect(child.received.messages.slice(-2)).toEqual([
      progressOf('sp', 1, related('t')),
      { jsonrpc: '2.0', id: 'q', result: { action: 'accept', ...related('t') } },
    ]);
  });

  it('can be taken back', async () => {
    const { client, child, taskId: id } = await withTask();
    child.say(ASK);
    const params = { requestId: 'q', ...related('t') };
    child.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    expect(notificationsOf(client, 'notifications/cancelled').map((notice) => notice.params)).toEqual([
      { requestId: serverRequests(client)[0]?.id, ...related(id) },
    ]);
  });

  it('goes the way of a wait for a result rather than of any other call, and never of a mere look', async () => {
    const { client, server, taskId } = await withTask();
    const { inFlightCalls } = server('a').backend.dispatcher;
    const methodVia = () => inFlightCalls.latestOf(client.downstream)?.request.method;
    client.request(1, 'tasks/get', { taskId });
    expect(methodVia()).toBeUndefined();
    client.call(2, 'a__slow');
    client.request(3, 'tasks/get', { taskId });
    expect(methodVia()).toBe('tools/call');
    client.request(4, 'tasks/result', { taskId });
    client.call(5, 'a__slow');
    expect(methodVia()).toBe('tasks/result');
  });

  it('is refused when its client has left and others could be meant', async () => {
    const { handshake, child } = await tasking();
    const one = handshake();
    made(one, child, 't');
    one.session.close();
    const others = [handshake(), handshake()];
    others[0]?.call(1, 'a__slow');
    child.say(ASK);
    expect(others.flatMap(serverRequests)).toEqual([]);
    expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32603 } });
    // The owner of the task is known, so calls need not wait for the calls of another client.
    const before = child.calls.length;
    others[1]?.call(1, 'a__slow');
    expect(child.calls).toHaveLength(before + 1);
  });

  it('goes to the client that comes back for the result, and not to one that only looks', async () => {
    const { handshake, child } = await tasking();
    const [one, looking, waiting] = [handshake(), handshake(), handshake()];
    const taskId = made(one, child, 't');
    looking.request(1, 'tasks/get', { taskId });
    child.say(ASK);
    expect([one, looking].map((client) => serverRequests(client).length)).toEqual([1, 0]);
    waiting.request(1, 'tasks/result', { taskId });
    child.say({ ...ASK, id: 'q2' });
    expect([one, looking, waiting].map((client) => serverRequests(client).length)).toEqual([1, 0, 1]);
  });

  it('may come before the answer that makes the task', async () => {
    const { one, other, child } = await withTwo();
    one.call(1, 'a__slow', { task: {} });
    child.say(ASK);
    expect([one, other].map((client) => serverRequests(client).length)).toEqual([1, 0]);
  });

  it('about one that nobody is known to have made is not put down to a call in flight', async () => {
    const { one, other, child } = await withTwo();
    one.call(1, 'a__slow');
    child.say(ASK);
    expect([one, other].flatMap(serverRequests)).toEqual([]);
    expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32603 } });
  });
});

describe('a server request about no task', () => {
  it('is for whose call is in flight, while others only wait for results', async () => {
    const { one, other, child } = await withTwo();
    one.request(1, 'tasks/result', { taskId: made(one, child, 't') });
    other.call(1, 'a__slow');
    child.say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: {} });
    expect([one, other].map((client) => serverRequests(client).length)).toEqual([0, 1]);
  });
});

describe('progress of a task', () => {
  const TOKEN = { _meta: { progressToken: 'mine' } };

  it('goes on after the answer, under the token and the id of its client', async () => {
    const { one, other, child } = await withTwo();
    const id = made(one, child, 't', TOKEN);
    const token = child.calls[0]?.id;
    child.say(progressOf(token, 1), progressOf(token, 2, related('t')));
    expect(notificationsOf(one, 'notifications/progress')).toEqual([
      progressOf('mine', 1),
      progressOf('mine', 2, related(id)),
    ]);
    expect(other.received.lines).toEqual([]);
  });

  it('before the answer names the task just so', async () => {
    const { client, child } = await withClient();
    client.call(1, 'a__slow', { task: {}, ...TOKEN });
    child.say(progressOf(child.calls[0]?.id, 1, related('t')));
    expect(client.received.last.params._meta[RELATED].taskId).toMatch(/^a:.+:t$/);
  });

  it.each([
    ['the server says so', (end: Ending) => end.child.say(statusOf('t', 'failed'))],
    ['tasks/get tells', (end: Ending) => end.ask('tasks/get', taskOf('t', 'completed'))],
    ['it is cancelled', (end: Ending) => end.ask('tasks/cancel', taskOf('t', 'cancelled'))],
    ['its result is there', (end: Ending) => end.ask('tasks/result', { content: [] })],
    ['its client leaves', (end: Ending) => end.client.session.close()],
    ['its process ends', (end: Ending) => end.crash()],
  ])('ends when %s, and leaves nothing behind', async (_, end) => {
    const { client, child, server, taskId } = await withTask(TOKEN);
    const token = child.calls[0]?.id;
    const ask = (method: string, result: Message) => {
      client.request(method, method, { taskId });
      child.reply(method, result);
    };
    ask('tasks/get', taskOf('t', 'working'));
    child.say(progressOf(token, 1));
    expect(child.connection.counters.staleProgress).toBe(0);
    end({ child, client, ask, crash: () => server('a').moved('backoff') });
    client.received.take();
    child.say(progressOf(token, 2));
    expect(client.received.lines).toEqual([]);
    expect(child.connection.counters.staleProgress).toBe(1);
  });

  it('goes on when the result was asked for and is an error, as such a wait may have failed by itself', async () => {
    const { client, child, taskId } = await withTask(TOKEN);
    client.request(1, 'tasks/result', { taskId });
    child.reply('tasks/result', { code: -32603, message: 'busy' });
    child.say(progressOf(child.calls[0]?.id, 1));
    expect(notificationsOf(client, 'notifications/progress')).toHaveLength(1);
  });

  it('goes to its maker although another client of the same person waits for the result', async () => {
    const { one, other, child } = await withTwo();
    const taskId = made(one, child, 't', TOKEN);
    other.request(1, 'tasks/result', { taskId });
    child.say(progressOf(child.calls[0]?.id, 1));
    expect([one, other].map((client) => notificationsOf(client, 'notifications/progress').length)).toEqual([1, 0]);
    one.session.close();
    child.say(progressOf(child.calls[0]?.id, 2));
    expect(child.connection.counters.staleProgress).toBe(1);
  });
});

interface Ending {
  readonly child: Awaited<ReturnType<typeof tasking>>['child'];
  readonly client: ReturnType<Awaited<ReturnType<typeof tasking>>['handshake']>;
  ask(method: string, result: Message): void;
  crash(): void;
}

describe('the name of a task in a message of a client', () => {
  it('in a notification concerns the server that has the task, under its own id', async () => {
    const { client, child, server, taskId: id } = await withTask();
    const notice = (taskId: string) => ({ jsonrpc: '2.0', method: 'notifications/vendor', params: related(taskId) });
    client.say(notice(id));
    expect(child.received.last).toEqual(notice('t'));
    expect(server('b').child.asked('notifications/vendor')).toEqual([]);
    client.say(notice('unknown'));
    expect([child, server('b').child].map(({ received }) => received.last)).toEqual([
      notice('unknown'),
      notice('unknown'),
    ]);
  });

  it('in a call is told under the id of its server, and left alone where it means another', async () => {
    const { client, child, server, taskId: id } = await withTask();
    client.call(1, 'a__slow', related(id));
    client.call(2, 'b__slow', related(id));
    expect(child.calls.at(-1)?.params._meta).toEqual(related('t')._meta);
    expect(server('b').child.calls.at(-1)?.params._meta).toEqual(related(id)._meta);
  });
});

describe('with many tasks', () => {
  it('the oldest are forgotten, which costs them their news and nothing else', async () => {
    const { one, other, child } = await withTwo();
    const first = made(one, child, 'first');
    for (let count = 0; count < 1_024; count += 1) {
      // Without this, each call reads all earlier lines again.
      child.received.lines.length = 0;
      one.received.lines.length = 0;
      made(one, child, `t-${count}`);
    }
    child.say(statusOf('first'), statusOf('t-0'));
    expect([one, other].map((client) => notificationsOf(client, 'notifications/tasks/status').length)).toEqual([1, 0]);
    one.request('get', 'tasks/get', { taskId: first });
    expect(child.asked('tasks/get')[0]?.params.taskId).toBe('first');
  });

  it('F222: one with a long id is forgotten at once, which costs it its news and nothing else', async () => {
    const { one, other, child } = await withTwo();
    const [long, short] = ['t'.repeat(1_025), 't'.repeat(1_024)];
    const names = [long, short].map((id) => made(one, child, id));
    child.say(statusOf(long), statusOf(short));
    expect([one, other].map((client) => notificationsOf(client, 'notifications/tasks/status').length)).toEqual([1, 0]);
    one.request('get', 'tasks/get', { taskId: names[0] });
    expect(child.asked('tasks/get')[0]?.params.taskId).toBe(long);
  });

  it('each message about one reaches its client, and no other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(2), fc.nat(4)), { minLength: 1, maxLength: 20 }), async (steps) => {
        const { handshake, child } = await tasking();
        const clients = ['one', 'two', 'three'].map((principal) => handshake({ principal }));
        const owners = new Map<string, number>();
        for (const [index, [who, what]] of steps.entries()) {
          const client = clients[who] ?? handshake();
          if (what < 2 || owners.size === 0) {
            made(client, child, `t${index}`);
            owners.set(`t${index}`, who);
          }
          const [taskId, owner] = [...owners][index % owners.size] ?? ['', 0];
          for (const each of clients) each.received.take();
          if (what % 2 === 0) child.say(statusOf(taskId));
          else child.say({ jsonrpc: '2.0', id: `q${index}`, method: 'elicitation/create', params: related(taskId) });
          expect(clients.map(({ received }) => received.lines.length)).toEqual(
            clients.map((_, position) => (position === owner ? 1 : 0)),
          );
        }
      }),
      { numRuns: 40 },
    );
  });
});
