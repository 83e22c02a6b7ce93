import { describe, expect, it } from 'vitest';
import { type ServerScript, scriptGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';
import {
  notificationsOf,
  progressOf,
  related,
  replied,
  serverRequests,
  statusOf,
  tasking,
  taskOf,
  taskServer,
} from './tasking.js';

/** A client of a revision without tasks that has called a tool which runs only as a task. */
async function driving(script: ServerScript = {}) {
  const world = await tasking('all', script);
  const client = world.handshake({}, { elicitation: {} }, '2025-06-18');
  const call = (id: number | string = 'call') =>
    client.call(id, 'a__only', { arguments: { n: 1 }, _meta: { progressToken: 'mine' } });
  call();
  const begin = () => world.child.answer(world.child.calls.length - 1, { task: taskOf('t') });
  return { ...world, client, call, begin };
}

describe('a tool that is called as a task only, for a client that knows of none', () => {
  it('is called as one, all else untouched, and answered with what becomes of it', async () => {
    const { handshake, child } = await tasking();
    const client = handshake({}, {}, '2025-06-18');
    client.say('{"params":{ "name":"a__only","arguments":{"n":1.0} },"id":"c","method":"tools/call","jsonrpc":"2.0"}');
    const sent = child.received.lines.at(-1) ?? '';
    expect(sent).toBe(
      `{"params":{ "name":"only","arguments":{"n":1.0} ,"task":{}},"id":${JSON.parse(sent).id},"method":"tools/call","jsonrpc":"2.0"}`,
    );
    child.answer(0, { task: taskOf('t') });
    expect(child.asked('tasks/result').map(({ params }) => params)).toEqual([{ taskId: 't' }]);
    expect(client.received.lines).toEqual([]);
    child.say(`{"result":{"content":[],"n":1e400},"id":${child.asked('tasks/result')[0]?.id},"jsonrpc":"2.0"}`);
    await flush();
    expect(client.received.lines).toEqual(['{"result":{"content":[],"n":1e400},"id":"c","jsonrpc":"2.0"}']);
  });

  it('is called as one even when the call came before the server was there', async () => {
    const { connect, server } = scriptGateway({ servers: { a: taskServer() } });
    const client = connect().greet('2025-06-18');
    server('a').moved('starting');
    client.call(1, 'a__only');
    const child = await server('a').start();
    expect(child.calls.map(({ params }) => params)).toEqual([{ name: 'only', task: {} }]);
  });

  it('is answered at once when the server makes no task of it', async () => {
    const { client, child } = await driving();
    child.answer(0, { content: [] });
    expect(client.answerTo('call')?.result).toEqual({ content: [] });
  });

  it('is answered with the error that the task ends with', async () => {
    const { client, child, begin } = await driving();
    begin();
    const error = { code: -32000, message: 'failed' };
    await replied(child, 'tasks/result', error);
    expect(client.answerTo('call')?.error).toEqual(error);
  });

  it('reports its progress all the while, and then no more', async () => {
    const { client, child, begin } = await driving();
    const token = child.calls[0]?.id;
    child.say(progressOf(token, 1));
    begin();
    child.say(progressOf(token, 2));
    expect(notificationsOf(client, 'notifications/progress')).toEqual([progressOf('mine', 1), progressOf('mine', 2)]);
    await replied(child, 'tasks/result', { content: [] });
    child.say(progressOf(token, 3));
    expect(notificationsOf(client, 'notifications/progress')).toHaveLength(2);
    expect(child.connection.counters.staleProgress).toBe(1);
  });

  it('may ask its client, and no other', async () => {
    const { client, child, handshake, begin } = await driving();
    const other = handshake();
    begin();
    other.call(1, 'a__slow');
    child.say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: related('t') });
    expect([client, other].map((each) => serverRequests(each).length)).toEqual([1, 0]);
  });

  it('tells its client nothing of the task, which it does not know of', async () => {
    const { client, child, begin } = await driving();
    begin();
    child.say(statusOf('t', 'completed'));
    expect(client.received.lines).toEqual([]);
    const message = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', ...related('t') } };
    child.say(message);
    expect(client.received.messages.map(({ method }) => method)).toEqual(['notifications/message']);
  });

  it("takes nobody's messages along any more once its client has cancelled it", async () => {
    const { client, child, begin } = await driving();
    begin();
    client.cancel('call');
    child.say(
      { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', ...related('t') } },
      { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info' } },
      { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: related('t') },
    );
    expect(client.received.messages.map(({ method }) => method)).toEqual([
      'notifications/message',
      'notifications/message',
      'elicitation/create',
    ]);
  });

  it('is cancelled as a task when its client cancels the call, and keeps its turn until it is over', async () => {
    const { client, child, server, begin, call } = await driving({ limits: { concurrency: 1 } });
    begin();
    call('next');
    client.cancel('call');
    expect(child.asked('tasks/cancel').map(({ params }) => params)).toEqual([{ taskId: 't' }]);
    expect(child.cancellations).toEqual([]);
    expect(child.calls).toHaveLength(1);
    await replied(child, 'tasks/result', { content: [] });
    expect(child.calls).toHaveLength(2);
    expect(client.answerTo('call')).toBeUndefined();
    expect(server('a').backend.dispatcher.counters.cancelled).toBe(1);
  });

  it('is cancelled as a call before it has become a task', async () => {
    const { client, child } = await driving();
    client.cancel('call');
    expect(child.cancellations).toHaveLength(1);
    expect(child.asked('tasks/cancel')).toEqual([]);
  });

  it('is cancelled when it takes longer than a call may', async () => {
    const { client, child, clock, begin } = await driving();
    begin();
    clock.advance(600_000);
    await flush();
    expect(client.answerTo('call')?.result._meta['trunkline/failure']).toMatchObject({
      reason: 'timeout',
      outcome: 'unknown',
    });
    expect(child.asked('tasks/cancel')).toHaveLength(1);
  });

  it('fails as a call does when the server ends', async () => {
    const { client, server, begin } = await driving();
    begin();
    server('a').crash();
    await flush();
    expect(client.answerTo('call')?.result._meta['trunkline/failure']).toMatchObject({
      reason: 'child_exited',
      outcome: 'unknown',
    });
  });

  it('may have had effects even if its result could not be asked for', async () => {
    const { client, child, begin } = await driving();
    child.received.unwrittenBytes = 2 * 1024 * 1024;
    begin();
    await flush();
    expect(client.answerTo('call')?.result._meta['trunkline/failure']).toMatchObject({
      reason: 'overloaded',
      outcome: 'unknown',
    });
  });
});

describe('a call is not made a task', () => {
  it('when its client knows of tasks', async () => {
    const { handshake, child } = await tasking();
    handshake().call(1, 'a__only');
    expect(child.calls[0]?.params).toEqual({ name: 'only' });
  });

  it.each(['slow', 'quick', 'unlisted'])('when its tool, such as %s, can be called without', async (tool) => {
    const { handshake, child } = await tasking();
    handshake({}, {}, '2025-06-18').call(1, `a__${tool}`);
    expect(child.calls[0]?.params).toEqual({ name: tool });
  });

  it('when its server has not said that it makes tasks of calls', async () => {
    const { handshake, child } = await tasking('all', { hello: { capabilities: { tools: {}, tasks: { list: {} } } } });
    handshake({}, {}, '2025-06-18').call(1, 'a__only');
    expect(child.calls[0]?.params).toEqual({ name: 'only' });
  });

  it('when it is one already', async () => {
    const { handshake, child } = await tasking();
    const client = handshake({}, {}, '2025-06-18');
    client.call(1, 'a__only', { task: { ttl: 1 } });
    expect(child.calls[0]?.params).toEqual({ name: 'only', task: { ttl: 1 } });
    child.answer(0, { task: taskOf('t') });
    expect(client.answerTo(1)?.result.task.taskId).toMatch(/^a:/);
  });
});
