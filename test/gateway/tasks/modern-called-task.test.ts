import { describe, expect, it } from 'vitest';
import { flush, type Message } from '../../support/wire.js';
import { related, replied, tasking, taskOf } from './tasking.js';

const GATHER_MS = 15;
const ASKABLE = { elicitation: { form: {} } };

/** A client without a handshake and without the tasks extension, and a server with a handshake. */
async function driving() {
  const world = await tasking();
  const client = world.connect();
  const call = (id: string, members = {}) =>
    client.modernRequest(id, 'tools/call', { name: 'a__only', arguments: { n: 1 }, ...members }, ASKABLE);
  const elicit = (id: string, task: string) =>
    world.child.say({
      jsonrpc: '2.0',
      id,
      method: 'elicitation/create',
      params: { message: task, requestedSchema: {}, ...related(task) },
    });
  return { ...world, client, call, elicit };
}

describe('a tool that is called as a task only, for a client without a handshake', () => {
  it('is called as one and answered with its result, if the client does not declare the extension', async () => {
    const { client, child, call } = await driving();
    call('c');
    expect(child.calls[0]?.params).toMatchObject({ name: 'only', task: {} });
    child.answer(0, { task: taskOf('t') });
    expect(child.asked('tasks/result').map(({ params }) => params)).toEqual([{ taskId: 't' }]);
    await replied(child, 'tasks/result', { content: [{ type: 'text', text: 'done' }] });
    expect(client.answerTo('c')?.result).toMatchObject({
      resultType: 'complete',
      content: [{ type: 'text', text: 'done' }],
    });
  });

  it('asks its client through the call that became the task, and no other call', async () => {
    const { client, child, clock, call, elicit } = await driving();
    call('one');
    call('other');
    child.answer(0, { task: taskOf('t1') });
    child.answer(1, { task: taskOf('t2') });
    elicit('q', 't1');
    clock.advance(GATHER_MS);
    const suspended = client.answerTo('one')?.result;
    expect(suspended).toMatchObject({ resultType: 'input_required' });
    expect(client.answerTo('other')).toBeUndefined();
    const [key = ''] = Object.keys(suspended.inputRequests);
    expect(suspended.inputRequests[key]).toEqual({
      method: 'elicitation/create',
      params: { message: 'Server "a" asks: t1', requestedSchema: {}, _meta: {} },
    });
    const { requestState } = suspended;
    call('again', { requestState, inputResponses: { [key]: { action: 'accept', content: {} } } });
    expect(child.received.messages.find(({ id }) => id === 'q')?.result).toEqual({ action: 'accept', content: {} });
    child.say({
      jsonrpc: '2.0',
      id: child.asked('tasks/result')[0]?.id,
      result: { content: [{ type: 'text', text: 'one' }] },
    });
    await flush();
    expect(client.answerTo('again')?.result).toMatchObject({ content: [{ type: 'text', text: 'one' }] });
  });

  it('asks nobody once its call was cancelled', async () => {
    const { client, child, clock, call, elicit } = await driving();
    call('one');
    call('other');
    child.answer(0, { task: taskOf('t1') });
    client.cancel('one');
    expect(child.asked('tasks/cancel').map(({ params }) => params)).toEqual([{ taskId: 't1' }]);
    elicit('q', 't1');
    clock.advance(GATHER_MS);
    expect(child.received.messages.find(({ id }) => id === 'q')?.error.code).toBe(-32603);
    expect(client.received.messages).toEqual([]);
  });

  it('is one task of the extension if the server has members of both revisions in it', async () => {
    const { connect, child } = await tasking();
    const client = connect();
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const both = {
      pollInterval: 500,
      pollIntervalMs: 7,
      ttlMs: 7,
      resultType: 'x',
      result: 7,
      error: 7,
      inputRequests: 7,
    };
    client.modernRequest('call', 'tools/call', { name: 'a__only' }, capabilities);
    child.answer(0, { task: { ...taskOf('t'), ...both } });
    await flush();
    const created: Message = client.answerTo('call')?.result;
    expect(created).toMatchObject({ resultType: 'task', status: 'working', ttlMs: 60_000, pollIntervalMs: 500 });
    client.modernRequest('get', 'tasks/get', { taskId: created.taskId }, capabilities);
    await flush();
    await replied(child, 'tasks/get', { ...taskOf('t', 'completed'), ...both });
    await replied(child, 'tasks/result', { content: [] });
    expect(client.answerTo('get')?.result).toMatchObject({
      status: 'completed',
      ttlMs: 60_000,
      result: { content: [] },
    });
    for (const line of client.received.lines) expect(line).not.toContain(':7');
  });
});
