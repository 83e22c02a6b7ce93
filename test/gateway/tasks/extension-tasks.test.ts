import { describe, expect, it } from 'vitest';
import type { ScriptedClient } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';
import { EVERYTHING, related, replied, serverRequests, tasking, taskOf } from './tasking.js';

const GATHER_MS = 15;
const EXTENSION = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const DECLARED = { ...EXTENSION, elicitation: { form: {} } };

/** Capabilities of a server without a handshake that turns calls into tasks. */
const MODERN_SERVER = { hello: { protocolVersion: '2026-07-28', capabilities: { tools: {}, ...EXTENSION } } };

/** A task as the extension has it. */
function stateOf(taskId: string, status = 'working', members: Message = {}): Message {
  const times = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z' };
  return { resultType: 'complete', taskId, status, ...times, ttlMs: 60_000, ...members };
}

/** The ids of the server requests that the client no longer has to answer. */
function withdrawn(client: ScriptedClient): unknown[] {
  const cancelled = client.received.messages.filter(({ method }) => method === 'notifications/cancelled');
  return cancelled.map(({ params }) => params.requestId);
}

function ask(client: ScriptedClient, id: string, method: string, params: Message, capabilities: Message = DECLARED) {
  client.modernRequest(id, method, params, capabilities);
}

describe('a task of 2025-11-25 for a client of the extension', () => {
  /** Calls a tool that runs only as a task. Returns the client's name of the task. */
  async function calling(capabilities: Message = DECLARED) {
    const world = await tasking();
    const client = world.connect();
    ask(client, 'call', 'tools/call', { name: 'a__only' }, capabilities);
    world.child.answer(0, { task: { ...taskOf('t'), pollInterval: 500 }, _meta: { of: 'the answer' } });
    await flush();
    const taskId: string = client.answerTo('call')?.result.taskId;
    const get = async (id: string) => {
      ask(client, id, 'tasks/get', { taskId }, capabilities);
      await flush();
    };
    const elicit = (id: string) => {
      const params = { message: id, requestedSchema: {}, ...related('t') };
      world.child.say({ jsonrpc: '2.0', id, method: 'elicitation/create', params });
    };
    return { ...world, client, taskId, get, elicit };
  }

  it('is the answer of the call, with the names of the extension', async () => {
    const { client, child } = await calling();
    expect(child.calls[0]?.params).toMatchObject({ name: 'only', task: {} });
    expect(client.answerTo('call')?.result).toEqual({
      resultType: 'task',
      taskId: expect.stringMatching(/^a:/),
      status: 'working',
      createdAt: '2026-01-01T00:00:00Z',
      lastUpdatedAt: '2026-01-01T00:00:00Z',
      ttlMs: 60_000,
      pollIntervalMs: 500,
      _meta: { 'io.modelcontextprotocol/serverInfo': expect.anything() },
    });
    expect(child.asked('tasks/result')).toEqual([]);
  });

  it('has its result in its state', async () => {
    const { client, child, taskId, get } = await calling();
    await get('working');
    await replied(child, 'tasks/get', { ...taskOf('t'), more: 1 });
    expect(client.answerTo('working')?.result).toMatchObject({ taskId, status: 'working', ttlMs: 60_000, more: 1 });
    await get('done');
    await replied(child, 'tasks/get', taskOf('t', 'completed'));
    expect(client.answerTo('done')).toBeUndefined();
    child.say(`{"jsonrpc":"2.0","id":${child.asked('tasks/result')[0]?.id},"result":{"content":[],"n":1.0}}`);
    await flush();
    expect(client.answerTo('done')?.result).toMatchObject({ resultType: 'complete', taskId, status: 'completed' });
    expect(client.received.lines.at(-1)).toContain('"result":{"content":[],"n":1.0}');
    expect(client.answerTo('done')?.result).not.toHaveProperty('ttl');
  });

  it('is completed where a tool has failed, and failed where the server answers with an error', async () => {
    const { client, child, get } = await calling();
    await get('tool');
    await replied(child, 'tasks/get', taskOf('t', 'failed'));
    await replied(child, 'tasks/result', { content: [], isError: true });
    expect(client.answerTo('tool')?.result).toMatchObject({ status: 'completed', result: { isError: true } });
    await get('error');
    await replied(child, 'tasks/get', taskOf('t', 'failed'));
    await replied(child, 'tasks/result', { code: -32000, message: 'broken' });
    expect(client.answerTo('error')?.result).toMatchObject({ status: 'failed', error: { code: -32000 } });
  });

  it('asks its client in its state, and is answered by an update', async () => {
    const { client, child, clock, taskId, get, elicit } = await calling();
    await get('one');
    await replied(child, 'tasks/get', taskOf('t', 'input_required'));
    // The server sends its requests along the request for the result.
    expect(child.asked('tasks/result')).toHaveLength(1);
    elicit('q');
    clock.advance(GATHER_MS);
    await flush();
    const { result } = client.answerTo('one') ?? {};
    expect(result).toMatchObject({ status: 'input_required' });
    const [key = ''] = Object.keys(result.inputRequests);
    expect(result.inputRequests[key]).toMatchObject({
      method: 'elicitation/create',
      params: { message: 'Server "a" asks: q' },
    });
    await get('two');
    await replied(child, 'tasks/get', taskOf('t', 'input_required'));
    expect(client.answerTo('two')?.result.inputRequests).toEqual(result.inputRequests);
    expect(child.asked('tasks/result')).toHaveLength(1);
    const inputResponses = { [key]: { action: 'accept', content: { n: 1 } }, unknown: {} };
    for (const id of ['update', 'again']) ask(client, id, 'tasks/update', { taskId, inputResponses });
    expect(client.answerTo('update')?.result).toMatchObject({ resultType: 'complete' });
    expect(child.received.messages.filter(({ id }) => id === 'q').map((answer) => answer.result)).toEqual([
      { action: 'accept', content: { n: 1 } },
    ]);
    expect(child.asked('tasks/update')).toEqual([]);
  });

  it.each([
    { answer: { error: { code: -32602, message: 'no such task' } }, gets: { error: { code: -32602 } } },
    { answer: { result: taskOf('t') }, gets: { result: { resultType: 'complete' } } },
  ])('is asked about when it gets input in a later process of its server: $gets', async ({ answer, gets }) => {
    const { client, server, taskId } = await calling();
    server('a').crash();
    const child = await server('a').start();
    ask(client, 'update', 'tasks/update', { taskId, inputResponses: {} });
    expect(client.answerTo('update')).toBeUndefined();
    child.say({ jsonrpc: '2.0', id: child.asked('tasks/get')[0]?.id, ...answer });
    await flush();
    expect(client.answerTo('update')).toMatchObject(gets);
    expect(child.asked('tasks/update')).toEqual([]);
  });

  it('is working as long as it has asked nothing, whatever its server says', async () => {
    const { client, child, clock, get } = await calling();
    await get('one');
    await replied(child, 'tasks/get', taskOf('t', 'input_required'));
    clock.advance(1_000);
    await flush();
    expect(client.answerTo('one')?.result).toMatchObject({ status: 'working' });
    expect(client.answerTo('one')?.result).not.toHaveProperty('inputRequests');
  });

  it('asks nothing that its client did not declare', async () => {
    const { child, elicit } = await calling(EXTENSION);
    elicit('q');
    expect(child.received.messages.find(({ id }) => id === 'q')?.error.code).toBe(-32601);
  });

  it('asks for no more while 256 of its questions wait', async () => {
    const { child, elicit } = await calling();
    for (let count = 0; count <= 256; count += 1) elicit(`q${count}`);
    const refused = child.received.messages.filter(({ error }) => error !== undefined);
    expect(refused.map(({ id, error }) => [id, error.code])).toEqual([['q256', -32603]]);
  });

  it('asks nobody any more once it has ended', async () => {
    const { child, get, elicit } = await calling();
    elicit('q');
    await get('done');
    await replied(child, 'tasks/get', taskOf('t', 'cancelled'));
    expect(child.received.messages.find(({ id }) => id === 'q')?.result).toEqual({ action: 'cancel' });
  });

  it('is canceled without an answer of its own', async () => {
    const { client, child, taskId } = await calling();
    ask(client, 'cancel', 'tasks/cancel', { taskId });
    expect(child.asked('tasks/cancel')[0]?.params).toMatchObject({ taskId: 't' });
    await replied(child, 'tasks/cancel', taskOf('t', 'cancelled'));
    expect(client.answerTo('cancel')?.result).toEqual({
      resultType: 'complete',
      _meta: { 'io.modelcontextprotocol/serverInfo': expect.anything() },
    });
  });

  it('can be canceled in vain once it has ended, and not if its server does not know it', async () => {
    const { client, child, taskId } = await calling();
    for (const [id, answer] of [
      ['ended', taskOf('t', 'completed')],
      ['unknown', { code: -32602, message: 'Unknown' }],
    ] as const) {
      ask(client, id, 'tasks/cancel', { taskId });
      await replied(child, 'tasks/cancel', { code: -32602, message: 'No' });
      await replied(child, 'tasks/get', answer);
    }
    expect(client.answerTo('ended')?.result).toMatchObject({ resultType: 'complete' });
    expect(client.answerTo('unknown')?.error).toEqual({ code: -32602, message: 'No' });
  });

  it('is never named in the words of its server', async () => {
    const { client, child, get } = await calling();
    await get('done');
    await replied(child, 'tasks/get', taskOf('t', 'completed'));
    await replied(child, 'tasks/result', { content: [], _meta: { more: 1, ...related('t')._meta } });
    expect(client.answerTo('done')?.result.result).toEqual({ content: [], _meta: { more: 1 } });
  });

  it('stays with its principal when the client that made it has left', async () => {
    const { connect, child, taskId, get, client, clock, elicit } = await calling();
    await get('before');
    client.session.close();
    const other = connect();
    ask(other, 'get', 'tasks/get', { taskId });
    await replied(child, 'tasks/get', taskOf('t', 'input_required'));
    elicit('q');
    clock.advance(GATHER_MS);
    await flush();
    expect(Object.keys(other.answerTo('get')?.result.inputRequests)).toHaveLength(1);
  });
});

describe('a task of a server without a handshake, for a client of the extension', () => {
  async function calling() {
    const world = await tasking('all', MODERN_SERVER);
    const client = world.connect();
    ask(client, 'call', 'tools/call', { name: 'a__slow' });
    world.child.answer(0, { ...stateOf('t'), resultType: 'task' });
    return { ...world, client, taskId: client.answerTo('call')?.result.taskId as string };
  }

  it('F168: is known by another id, which its principal alone can use', async () => {
    const { client, child, connect, taskId } = await calling();
    expect(client.answerTo('call')?.result).toMatchObject({ resultType: 'task', status: 'working' });
    expect(taskId).toMatch(/^a:.*:t$/);
    ask(client, 'get', 'tasks/get', { taskId });
    expect(child.asked('tasks/get')[0]?.params.taskId).toBe('t');
    const inputRequests = { k: { method: 'elicitation/create', params: {} } };
    child.reply('tasks/get', stateOf('t', 'input_required', { inputRequests }));
    expect(client.answerTo('get')?.result).toMatchObject({ taskId, status: 'input_required', inputRequests });
    const stranger = connect({ principal: 'another' });
    for (const [at, name] of [taskId, `${taskId}x`, 't', 5].entries()) {
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        const id = `${method} ${at}`;
        ask(stranger, id, method, { taskId: name, inputResponses: {} });
        expect(stranger.answerTo(id)?.error.code).toBe(-32602);
      }
    }
    expect(['tasks/get', 'tasks/update', 'tasks/cancel'].map((method) => child.asked(method).length)).toEqual([
      1, 0, 0,
    ]);
  });

  it('gets its input and its cancellation as they are', async () => {
    const { client, child, taskId } = await calling();
    const inputResponses = { k: { action: 'decline' } };
    ask(client, 'update', 'tasks/update', { taskId, inputResponses });
    expect(child.asked('tasks/update')[0]?.params).toMatchObject({ taskId: 't', inputResponses });
    child.reply('tasks/update', { resultType: 'complete' });
    ask(client, 'cancel', 'tasks/cancel', { taskId });
    expect(child.asked('tasks/cancel')[0]?.params).toMatchObject({ taskId: 't' });
    await replied(child, 'tasks/cancel', { resultType: 'complete' });
    expect(['update', 'cancel'].map((id) => client.answerTo(id)?.result.resultType)).toEqual(['complete', 'complete']);
  });
});

describe('a task of a server without a handshake, for a client that knows no such tasks', () => {
  async function calling(revision = '2025-06-18') {
    const world = await tasking('all', MODERN_SERVER);
    const client = world.handshake({}, revision === '2025-11-25' ? EVERYTHING : { elicitation: {} }, revision);
    client.call('call', 'a__slow');
    world.child.answer(0, { ...stateOf('t'), resultType: 'task', pollIntervalMs: 2_000 });
    await flush();
    const poll = async (ms: number) => {
      world.clock.advance(ms);
      await flush();
      return world.child.asked('tasks/get').length;
    };
    return { ...world, client, poll };
  }

  it.each(['2025-06-18', '2025-11-25'])('is read until it is done, and answers the call (%s)', async (revision) => {
    const { client, child, poll } = await calling(revision);
    expect(child.calls[0]?.params).toEqual({ name: 'slow' });
    expect(await poll(1_999)).toBe(0);
    expect(await poll(1)).toBe(1);
    expect(child.asked('tasks/get')[0]?.params).toEqual({ taskId: 't' });
    await replied(child, 'tasks/get', stateOf('t', 'working', { pollIntervalMs: 5 }));
    expect(await poll(100)).toBe(2);
    const result = { resultType: 'complete', content: [], n: 1 };
    await replied(child, 'tasks/get', stateOf('t', 'completed', { result }));
    expect(client.received.messages).toEqual([{ jsonrpc: '2.0', id: 'call', result: { content: [], n: 1 } }]);
    expect(await poll(60_000)).toBe(2);
  });

  it('asks its client with requests, each once, and gets the answers by updates', async () => {
    const { client, child, poll } = await calling();
    const one = { method: 'elicitation/create', params: { message: '1', requestedSchema: {} } };
    const url = { method: 'elicitation/create', params: { mode: 'form', message: '2', requestedSchema: {} } };
    await poll(2_000);
    await replied(child, 'tasks/get', stateOf('t', 'input_required', { inputRequests: { one, url } }));
    await poll(1_000);
    await replied(child, 'tasks/get', stateOf('t', 'input_required', { inputRequests: { one, url } }));
    const asked = serverRequests(client);
    expect(asked.map(({ params }) => params.message)).toEqual(['Server "a" asks: 1', 'Server "a" asks: 2']);
    client.say({ jsonrpc: '2.0', id: asked[0]?.id, result: { action: 'accept', content: { n: 1 } } });
    client.say({ jsonrpc: '2.0', id: asked[1]?.id, error: { code: -32000, message: 'no' } });
    expect(child.asked('tasks/update').map(({ params }) => params)).toEqual([
      { taskId: 't', inputResponses: { one: { action: 'accept', content: { n: 1 } } } },
      { taskId: 't', inputResponses: { url: { action: 'cancel' } } },
    ]);
  });

  it('sends an answer again that its server did not confirm and asks for still', async () => {
    const { client, child, poll } = await calling();
    const one = { method: 'elicitation/create', params: { message: '1', requestedSchema: {} } };
    const waiting = stateOf('t', 'input_required', { inputRequests: { one } });
    await poll(2_000);
    await replied(child, 'tasks/get', waiting);
    client.say({ jsonrpc: '2.0', id: serverRequests(client)[0]?.id, result: { action: 'accept', content: { n: 1 } } });
    await poll(1_000);
    await replied(child, 'tasks/get', waiting);
    expect(child.asked('tasks/update')).toHaveLength(1);
    await poll(29_500);
    await replied(child, 'tasks/get', waiting);
    const answer = { taskId: 't', inputResponses: { one: { action: 'accept', content: { n: 1 } } } };
    expect(child.asked('tasks/update').map(({ params }) => params)).toEqual([answer, answer]);
    expect(serverRequests(client)).toHaveLength(1);
  });

  it('fails the tool when its client has no input to give', async () => {
    const { client, child, poll } = await calling();
    await poll(2_000);
    const inputRequests = { one: { method: 'sampling/createMessage', params: {} } };
    await replied(child, 'tasks/get', stateOf('t', 'input_required', { inputRequests }));
    expect(client.answerTo('call')?.result).toMatchObject({ isError: true });
    expect(child.asked('tasks/cancel').map(({ params }) => params)).toEqual([{ taskId: 't' }]);
  });

  it('asks for nothing more, and is not read again, once its client had no input to give', async () => {
    const { client, child, poll } = await calling();
    await poll(2_000);
    const elicitation = { method: 'elicitation/create', params: { message: '1', requestedSchema: {} } };
    const inputRequests = {
      before: elicitation,
      no: { method: 'sampling/createMessage', params: {} },
      after: elicitation,
    };
    await replied(child, 'tasks/get', stateOf('t', 'input_required', { inputRequests }));
    expect(client.answerTo('call')?.result).toMatchObject({ isError: true });
    const [asked, ...others] = serverRequests(client);
    expect(others).toEqual([]);
    expect(withdrawn(client)).toEqual([asked?.id]);
    expect(await poll(60_000)).toBe(1);
  });

  it('fails the tool when its server asks without end', async () => {
    const { client, child, poll } = await calling();
    const elicitation = { method: 'elicitation/create', params: { message: '1', requestedSchema: {} } };
    for (let round = 1; round <= 2; round += 1) {
      await poll(2_000);
      const keys = Array.from({ length: 129 }, (_, at) => `${round} ${at}`);
      const inputRequests = Object.fromEntries(keys.map((key) => [key, elicitation]));
      await replied(child, 'tasks/get', stateOf('t', 'input_required', { inputRequests }));
      for (const { id } of serverRequests(client).slice(-129))
        client.say({ jsonrpc: '2.0', id, result: { action: 'decline' } });
    }
    expect(serverRequests(client)).toHaveLength(256);
    expect(client.answerTo('call')?.result).toMatchObject({ isError: true });
    expect(child.asked('tasks/cancel').map(({ params }) => params)).toEqual([{ taskId: 't' }]);
    expect(await poll(60_000)).toBe(2);
  });

  /** A task that has requested one input from its client. */
  async function asking() {
    const world = await calling();
    await world.poll(2_000);
    const one = { method: 'elicitation/create', params: { message: '1', requestedSchema: {} } };
    await replied(world.child, 'tasks/get', stateOf('t', 'input_required', { inputRequests: { one } }));
    const [asked] = serverRequests(world.client);
    return { ...world, asked };
  }

  it.each(['completed', 'failed'])('asks its client no longer once it has %s', async (status) => {
    const { client, child, poll, asked } = await asking();
    expect(withdrawn(client)).toEqual([]);
    await poll(1_000);
    await replied(child, 'tasks/get', stateOf('t', status, { result: { content: [] } }));
    expect(client.answerTo('call')).toBeDefined();
    expect(withdrawn(client)).toEqual([asked?.id]);
  });

  it('F214: asks its client no longer once the call was canceled', async () => {
    const { client, asked } = await asking();
    client.cancel('call');
    await flush();
    expect(withdrawn(client)).toEqual([asked?.id]);
  });

  it.each<[string, Message, Message]>([
    ['error', { error: { code: -32000, message: 'broken', data: 1 } }, { error: { code: -32000, data: 1 } }],
    ['error', {}, { result: { isError: true } }],
  ])('ends with its %s', async (_, members, answer) => {
    const { client, child, poll } = await calling();
    await poll(2_000);
    await replied(child, 'tasks/get', stateOf('t', 'error' in members ? 'failed' : 'cancelled', members));
    expect(client.answerTo('call')).toMatchObject(answer);
  });

  it('is canceled with the call', async () => {
    const { client, child, server, poll } = await calling();
    client.cancel('call');
    await flush();
    expect(child.asked('tasks/cancel').map(({ params }) => params)).toEqual([{ taskId: 't' }]);
    expect(await poll(60_000)).toBe(0);
    expect(client.received.messages).toEqual([]);
    expect(server('a').backend.dispatcher.counters.cancelled).toBe(1);
  });

  it('F167: is canceled when it takes longer than a call may', async () => {
    const { client, child, poll } = await calling();
    for (let minute = 0; minute < 10; minute += 1) {
      await poll(60_000);
      await replied(child, 'tasks/get', stateOf('t', 'working', { pollIntervalMs: 30_000 }));
    }
    await poll(30_000);
    expect(client.answerTo('call')?.result._meta['trunkline/failure']).toMatchObject({ reason: 'timeout' });
    expect(child.asked('tasks/cancel')).toHaveLength(1);
  });

  it('F166: fails as a call does when the server ends, and does not wait for the next time to read it', async () => {
    const { client, server } = await calling();
    server('a').crash();
    await flush();
    expect(client.answerTo('call')?.result._meta['trunkline/failure']).toMatchObject({
      reason: 'child_exited',
      outcome: 'unknown',
    });
  });
});
