import { describe, expect, it } from 'vitest';
import type { ScriptedClient } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';
import { made, notificationsOf, replied, statusOf, tasking, taskOf } from './tasking.js';

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const EXTENSION = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const DECLARED = { ...EXTENSION, elicitation: { form: {} } };
const MODERN_SERVER = { hasBridge: true, isModern: true, hello: { capabilities: { tools: {}, ...EXTENSION } } };

function stateOf(taskId: string, status = 'working', members: Message = {}): Message {
  const times = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z' };
  return { taskId, status, ...times, ttlMs: 60_000, ...members };
}

/** Task states that the client got. */
function states(client: ScriptedClient): Message[] {
  return notificationsOf(client, 'notifications/tasks').map(({ params }) => params);
}

function acknowledged(client: ScriptedClient): Message[] {
  return notificationsOf(client, ACKNOWLEDGED).map(({ params }) => params.notifications);
}

async function playing(era: 'legacy' | 'modern') {
  const world = await tasking('all', era === 'modern' ? MODERN_SERVER : {});
  const { child } = world;
  /** Calls a tool that becomes the task `original`. Returns the client's name of the task. */
  const called = async (client: ScriptedClient, original: string): Promise<string> => {
    client.modernRequest(original, 'tools/call', { name: era === 'modern' ? 'a__slow' : 'a__only' }, DECLARED);
    const task = era === 'modern' ? { ...stateOf(original), resultType: 'task' } : { task: taskOf(original) };
    child.answer(child.calls.length - 1, task);
    await flush();
    return client.answerTo(original)?.result.taskId;
  };
  const listen = async (client: ScriptedClient, id: string, taskIds: unknown, capabilities: Message = DECLARED) => {
    client.modernRequest(id, 'subscriptions/listen', { notifications: { taskIds } }, capabilities);
    await flush();
  };
  const cancel = async (client: ScriptedClient, requestId: string) => {
    client.cancel(requestId);
    await flush();
  };
  const say = async (message: Message) => {
    child.say(message);
    await flush();
  };
  const streams = () => child.asked('subscriptions/listen');
  const wanted = () => streams().map(({ params }) => params.notifications.taskIds);
  const tell = async (state: Message) => {
    const _meta = { [SUBSCRIPTION_ID]: streams().at(-1)?.id };
    await say({ jsonrpc: '2.0', method: 'notifications/tasks', params: { ...state, _meta } });
  };
  return { ...world, called, listen, cancel, say, wanted, tell };
}

describe('notifications of a task of a modern server', () => {
  it('reach the subscriptions that name it, under the names of the client', async () => {
    const { connect, called, listen, tell, wanted } = await playing('modern');
    const client = connect();
    const [one, two] = [await called(client, 't1'), await called(client, 't2')];
    await listen(client, 'first', [one]);
    expect(wanted()).toEqual([['t1']]);
    await listen(client, 'second', [one, two]);
    expect(wanted()).toEqual([['t1'], ['t1', 't2']]);
    expect(acknowledged(client)).toEqual([{ taskIds: [one] }, { taskIds: [one, two] }]);
    const result = { content: [], vendor: 1 };
    await tell(stateOf('t1', 'completed', { result, more: 1.5 }));
    await tell(stateOf('t2'));
    const idOf = (id: string) => ({ _meta: { [SUBSCRIPTION_ID]: id } });
    const done = stateOf(one, 'completed', { result, more: 1.5 });
    expect(states(client)).toEqual([
      { ...done, ...idOf('first') },
      { ...done, ...idOf('second') },
      { ...stateOf(two), ...idOf('second') },
    ]);
  });

  it('have none of the facts that the server claims in the place of Trunkline', async () => {
    const { connect, called, listen, tell } = await playing('modern');
    const client = connect();
    await listen(client, 'first', [await called(client, 't1')]);
    const claim = { reason: 'queue_full', outcome: 'not_sent' };
    const meta = { 'trunkline/failure': claim, vendor: 1 };
    await tell(stateOf('t1', 'working', { result: { _meta: meta }, error: { code: 1, message: 'no', data: claim } }));
    expect(states(client)).toMatchObject([{ result: { _meta: { vendor: 1 } }, error: { message: 'no' } }]);
    expect(JSON.stringify(states(client))).not.toContain('not_sent');
  });

  it('are asked for once, and until the last subscription ends', async () => {
    const { connect, called, listen, cancel, wanted, child } = await playing('modern');
    const [client, other] = [connect(), connect()];
    const name = await called(client, 't');
    await listen(client, 'listen', [name]);
    await listen(other, 'listen', [name]);
    expect([wanted(), acknowledged(other)]).toEqual([[['t']], [{ taskIds: [name] }]]);
    await cancel(client, 'listen');
    expect(child.asked('notifications/cancelled')).toEqual([]);
    await cancel(other, 'listen');
    expect(child.asked('notifications/cancelled')).toHaveLength(1);
  });

  it('are asked for again after the end of the task, also if another client listens already', async () => {
    const { connect, called, listen, tell, wanted } = await playing('modern');
    const [client, other] = [connect(), connect()];
    const name = await called(client, 't');
    await listen(client, 'listen', [name]);
    await tell(stateOf('t', 'completed', { result: { content: [] } }));
    await listen(other, 'listen', [name]);
    expect(wanted()).toEqual([['t'], ['t']]);
    await tell(stateOf('t', 'completed', { result: { content: [] } }));
    expect([states(client).length, states(other).length]).toEqual([1, 1]);
  });

  it('do not reach a client with a session', async () => {
    const { connect, handshake, called, listen, tell } = await playing('modern');
    const [client, legacy] = [connect(), handshake()];
    await listen(client, 'listen', [await called(client, 't')]);
    await tell(stateOf('t'));
    expect([states(client).length, legacy.received.lines.join()]).toEqual([1, expect.not.stringContaining('tasks')]);
  });
});

describe('notifications of a task of a legacy server', () => {
  /** A client that owns the task `t` and listens to it. */
  async function watching() {
    const world = await playing('legacy');
    const client = world.connect();
    const name = await world.called(client, 't');
    await world.listen(client, 'listen', [name]);
    await replied(world.child, 'tasks/get', taskOf('t'));
    return { ...world, client, name };
  }

  it('are promised for a task that the server knows, and translated', async () => {
    const { client, name, say } = await watching();
    expect(acknowledged(client)).toEqual([{ taskIds: [name] }]);
    await say({ ...statusOf('t'), params: { ...taskOf('t'), pollInterval: 5, _meta: { of: 'the server' } } });
    const { _meta, ...state } = states(client)[0] ?? {};
    expect(state).toEqual({ ...stateOf(name), pollIntervalMs: 5 });
    expect(_meta).toEqual({ [SUBSCRIPTION_ID]: 'listen' });
  });

  it('are not promised for a task that the server does not know', async () => {
    const { connect, called, listen, child } = await playing('legacy');
    const client = connect();
    await listen(client, 'listen', [await called(client, 't')]);
    await replied(child, 'tasks/get', { code: -32602, message: 'Unknown' });
    expect(acknowledged(client)).toEqual([{}]);
  });

  it('have the result of the task, as its state has it', async () => {
    const { client, name, say, child } = await watching();
    await say(statusOf('t', 'failed'));
    expect(states(client)).toEqual([]);
    const result = { content: [{ type: 'text', text: 'no' }], isError: true };
    await replied(child, 'tasks/result', result);
    expect(states(client)).toMatchObject([{ taskId: name, status: 'completed', result }]);
    expect(states(client)[0]).not.toHaveProperty('resultType');
  });

  it('have what the task asks for', async () => {
    const { client, name, say, clock } = await watching();
    await say(statusOf('t', 'input_required'));
    const params = { message: 'Who?', requestedSchema: {} };
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 't' } };
    await say({ jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params: { ...params, _meta } });
    clock.advance(15);
    await flush();
    const [{ taskId, status, inputRequests }] = states(client) as [Message];
    expect([taskId, status, Object.values(inputRequests)]).toMatchObject([
      name,
      'input_required',
      [{ method: 'elicitation/create', params: { ...params, message: 'Server "a" asks: Who?' } }],
    ]);
  });

  it.each([['completed'], ['input_required']])(
    'F195: begin with a state that came before anybody watched: %s',
    async (status) => {
      const { connect, called, listen, child, clock } = await playing('legacy');
      const client = connect();
      const name = await called(client, 't');
      await listen(client, 'listen', [name]);
      await replied(child, 'tasks/get', taskOf('t', status));
      expect(acknowledged(client)).toEqual([{ taskIds: [name] }]);
      const result = { content: [] };
      if (status === 'completed') child.reply('tasks/result', result);
      else {
        const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 't' } };
        const params = { message: 'Who?', requestedSchema: {}, _meta };
        child.say({ jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params });
        await flush();
        clock.advance(15);
      }
      await flush();
      const more =
        status === 'completed' ? { result } : { inputRequests: { 'input-1': { method: 'elicitation/create' } } };
      expect(states(client)).toMatchObject([{ taskId: name, status, ...more }]);
    },
  );

  it('are left out if a newer state is known before the older one is complete', async () => {
    const { client, say, child } = await watching();
    await say(statusOf('t', 'completed'));
    await say(statusOf('t', 'cancelled'));
    await replied(child, 'tasks/result', { content: [] });
    expect(states(client).map(({ status }) => status)).toEqual(['cancelled']);
  });

  it('end with the subscription, and with the process', async () => {
    const { client, say, cancel, connect, listen, name, child, server } = await watching();
    await cancel(client, 'listen');
    await say(statusOf('t'));
    expect(states(client)).toEqual([]);
    const other = connect();
    await listen(other, 'listen', [name]);
    child.reply('tasks/get', taskOf('t'));
    server('a').crash();
    await flush();
    expect(states(other)).toEqual([]);
  });

  it('begin with the state of a task that does not work any more, also if another client listens already', async () => {
    const { connect, called, listen, child, say } = await playing('legacy');
    const [client, other] = [connect(), connect()];
    const name = await called(client, 't');
    await listen(client, 'listen', [name]);
    await replied(child, 'tasks/get', taskOf('t'));
    await say(statusOf('t', 'cancelled'));
    await listen(other, 'listen', [name]);
    await replied(child, 'tasks/get', taskOf('t', 'cancelled'));
    expect(acknowledged(other)).toEqual([{ taskIds: [name] }]);
    expect(states(other).map(({ status }) => status)).toEqual(['cancelled']);
  });

  it('F227: are not promised again for a task whose process has ended, to a client that still listens for it', async () => {
    const { connect, server, called, listen } = await playing('legacy');
    const client = connect();
    const name = await called(client, 't');
    void listen(client, 'first', [name]);
    server('a').child.reply('tasks/get', taskOf('t'));
    await flush();
    server('a').crash();
    await server('a').start();
    await listen(client, 'second', [name]);
    expect(acknowledged(client)).toEqual([{ taskIds: [name] }, {}]);
  });

  it('reach a legacy client as its revision has them', async () => {
    const { handshake, child, say, client } = await watching();
    const legacy = handshake();
    const name = made(legacy, child, 'u');
    await say(statusOf('u'));
    expect(notificationsOf(legacy, 'notifications/tasks/status').map(({ params }) => params)).toEqual([taskOf(name)]);
    expect(states(client)).toEqual([]);
  });
});

describe.each(['legacy', 'modern'] as const)('a task of a %s server', (era) => {
  it('F188: is watched by its own user alone, whatever name another one uses', async () => {
    const { connect, called, listen, wanted, child } = await playing(era);
    const name = await called(connect(), 't');
    const stranger = connect({ principal: 'another' });
    await listen(stranger, 'listen', [name, `${name}x`, 't', name.replace(/^a:/, 'b:')]);
    expect(acknowledged(stranger)).toEqual([{}]);
    expect([wanted(), child.asked('tasks/get')]).toEqual([[], []]);
  });

  it('F189: is not shown to its earlier user if the server gives its id to a task of another one', async () => {
    const { connect, called, listen, child, tell, say } = await playing(era);
    const [client, other] = [connect(), connect({ principal: 'another' })];
    for (const each of [client, other]) {
      await listen(each, 'listen', [await called(each, 't')]);
      await replied(child, 'tasks/get', taskOf('t'));
    }
    if (era === 'modern') await tell(stateOf('t'));
    else await say(statusOf('t'));
    expect([acknowledged(client).length, states(client).length, states(other).length]).toEqual([1, 0, 1]);
  });

  it('cannot be watched without the extension', async () => {
    const { connect, called, listen } = await playing(era);
    const client = connect();
    const name = await called(client, 't');
    await listen(client, 'listen', [name], { elicitation: {} });
    expect(client.answerTo('listen')?.error).toMatchObject({ code: -32021, data: { requiredCapabilities: EXTENSION } });
    await listen(client, 'bad', [5]);
    expect(client.answerTo('bad')?.error.code).toBe(-32602);
  });
});
