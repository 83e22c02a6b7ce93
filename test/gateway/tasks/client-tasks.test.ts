import { describe, expect, it } from 'vitest';
import type { ScriptedClient } from '../../support/scripted-gateway.js';
import type { ScriptedPeer } from '../../support/scripted-peer.js';
import type { Message } from '../../support/wire.js';
import {
  EVERYTHING,
  notificationsOf,
  progressOf,
  related,
  serverRequests,
  statusOf,
  tasking,
  taskOf,
  withClient,
} from './tasking.js';

/** Lets the server send a request to the only client with a call in flight, which answers. Returns the answer at the server. */
function asked(child: ScriptedPeer, client: ScriptedClient, input: Message, answer: Message): Message {
  child.say({ jsonrpc: '2.0', id: 'q', ...input });
  const id = serverRequests(client).at(-1)?.id;
  client.say({ jsonrpc: '2.0', id, ...('code' in answer ? { error: answer } : { result: answer }) });
  return child.received.last;
}

/** Lets the client make a task for the server, with the id `original`. Returns the id at the server. */
function made(child: ScriptedPeer, client: ScriptedClient, original: string, members: Message = {}): string {
  client.call(`for ${original}`, 'a__slow');
  const params = { messages: [], task: { ttl: 1 }, ...members };
  const { result } = asked(child, client, { method: 'sampling/createMessage', params }, { task: taskOf(original) });
  child.answer(child.calls.length - 1);
  return result.task.taskId;
}

/** A server with several clients. The first client has made a task for it. */
async function withTask(members: Message = {}) {
  const world = await tasking();
  const client = world.handshake();
  const other = world.handshake();
  const name = made(world.child, client, 't', members);
  return { ...world, client, other, name };
}

describe('a task that a client makes for a server', () => {
  it('is asked for as the server asks, and known to it under an id of ours, all else untouched', async () => {
    const { client, child } = await withClient();
    client.call('c', 'a__slow');
    child.say(
      '{"params":{"task":{"ttl":1e3},"messages":[]},"id":"q","method":"sampling/createMessage","jsonrpc":"2.0"}',
    );
    expect(client.received.lines.at(-1)).toBe(
      '{"params":{"task":{"ttl":1e3},"messages":[]},"id":1,"method":"sampling/createMessage","jsonrpc":"2.0"}',
    );
    client.say('{"result":{"task":{ "x":1.0,"taskId":"t"}},"id":1,"jsonrpc":"2.0"}');
    const name = child.received.last.result.task.taskId;
    expect(name).toMatch(/^~\d+:aaaaaaaaaa:[0-9a-f]{64}:t$/);
    expect(child.received.lines.at(-1)).toBe(
      `{"result":{"task":{ "x":1.0,"taskId":"${name}"}},"id":"q","jsonrpc":"2.0"}`,
    );
  });

  it('is what its answer says only if a task was asked for', async () => {
    const { handshake, child } = await tasking();
    const answer = { task: taskOf('t') };
    const client = handshake();
    client.call('c', 'a__slow');
    const told = asked(child, client, { method: 'sampling/createMessage', params: {} }, answer);
    expect(told.result).toEqual(answer);
  });

  it.each(['tasks/get', 'tasks/cancel'])(
    'is asked about with %s under the id that the client gave it',
    async (method) => {
      const { child, client, other, name } = await withTask();
      const told = asked(child, client, { method, params: { taskId: name } }, taskOf('t'));
      expect(serverRequests(client).at(-1)).toMatchObject({ method, params: { taskId: 't' } });
      expect(told).toEqual({ jsonrpc: '2.0', id: 'q', result: taskOf(name) });
      expect(serverRequests(other)).toEqual([]);
    },
  );

  it('yields its result, whose metadata names it as the server does', async () => {
    const { child, client, name } = await withTask();
    const result = { role: 'assistant', taskId: 't', ...related('t') };
    const told = asked(child, client, { method: 'tasks/result', params: { taskId: name } }, result);
    expect(told.result).toEqual({ ...result, ...related(name) });
  });

  it('yields the error that the client gives', async () => {
    const { child, client, name } = await withTask();
    const error = { code: -1, message: 'The person said no' };
    expect(asked(child, client, { method: 'tasks/result', params: { taskId: name } }, error).error).toEqual(error);
  });

  it('goes to its maker even when another client has a call in flight', async () => {
    const { child, client, other, name } = await withTask();
    other.call(1, 'a__slow');
    child.say({ jsonrpc: '2.0', id: 'q', method: 'tasks/get', params: { taskId: name } });
    expect([client, other].map((each) => serverRequests(each).at(-1)?.method)).toEqual(['tasks/get', undefined]);
  });

  it('is named by its own id in whatever else the server says of it', async () => {
    const { child, client, other, name } = await withTask();
    other.call(1, 'a__slow');
    child.say({ jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: related(name) });
    child.say({ jsonrpc: '2.0', method: 'notifications/vendor', params: related(name) });
    expect(serverRequests(client).at(-1)?.params).toEqual(related('t'));
    expect(notificationsOf(client, 'notifications/vendor').map(({ params }) => params)).toEqual([related('t')]);
    expect(other.received.lines).toEqual([]);
  });

  it('is named by our id in whatever else its client says of it', async () => {
    const { child, client, server, name } = await withTask();
    client.say({ jsonrpc: '2.0', method: 'notifications/vendor', params: related('t') });
    expect(child.received.last.params).toEqual(related(name));
    expect(server('b').child.asked('notifications/vendor')).toEqual([]);
  });
});

describe('an id that is no task of a client', () => {
  it.each(['tasks/get', 'tasks/result', 'tasks/cancel'])(
    'is refused for %s, and no client is asked',
    async (method) => {
      const { child, client, other, name, server } = await withTask();
      const before = serverRequests(client).length;
      for (const taskId of ['t', '', 7, undefined, name.replace('~1', '~2'), name.replace(':t', ':u'), `${name}x`]) {
        child.say({ jsonrpc: '2.0', id: 'q', method, params: { taskId } });
        expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32602, message: 'Unknown task' } });
      }
      const { child: stranger } = server('b');
      stranger.say({ jsonrpc: '2.0', id: 'q', method, params: { taskId: name } });
      expect(stranger.received.last).toMatchObject({ id: 'q', error: { code: -32602 } });
      expect([serverRequests(client).length, serverRequests(other).length]).toEqual([before, 0]);
    },
  );

  it('is one whose client has left', async () => {
    const { child, client, name } = await withTask();
    client.session.close();
    child.say({ jsonrpc: '2.0', id: 'q', method: 'tasks/get', params: { taskId: name } });
    expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32602 } });
  });

  it('is one that was made for a process that has ended', async () => {
    const { client, name, server } = await withTask();
    server('a').crash();
    const child = await server('a').start();
    child.say({ jsonrpc: '2.0', id: 'q', method: 'tasks/get', params: { taskId: name } });
    expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32602 } });
    client.say(statusOf('t', 'completed'));
    expect(child.asked('notifications/tasks/status')).toEqual([]);
  });
});

describe('a client that did not declare', () => {
  it.each([
    ['tasks', { sampling: {} }, ['tasks/get', 'tasks/result', 'tasks/cancel']],
    ['tasks that can be cancelled', { sampling: {}, tasks: { list: {} } }, ['tasks/cancel']],
    ['tasks that can be listed', { sampling: {}, tasks: { cancel: {} } }, ['tasks/list']],
    ['tasks that can be listed, but said no', { sampling: {}, tasks: { list: false } }, ['tasks/list']],
  ])('%s is not asked for them', async (_, capabilities, methods) => {
    const { handshake, child } = await tasking('isolated');
    const client = handshake({}, capabilities);
    const name = made(child, client, 't');
    client.received.take();
    for (const method of methods) {
      child.say({ jsonrpc: '2.0', id: 'q', method, params: { taskId: name } });
      expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32601 } });
    }
    expect(client.received.lines).toEqual([]);
  });
});

describe("the list of a client's tasks", () => {
  it('is told to its only server, without the tasks of others, each as the client wrote it', async () => {
    const { handshake, child, server } = await tasking('isolated');
    const client = handshake();
    const name = made(child, client, 't');
    client.call('b', 'b__slow');
    const { child: b } = server('b');
    asked(b, client, { method: 'sampling/createMessage', params: { task: {} } }, { task: taskOf('for b') });
    child.say({ jsonrpc: '2.0', id: 'list', method: 'tasks/list', params: { cursor: 'c' } });
    const { id, params } = serverRequests(client).at(-1) ?? {};
    expect(params).toEqual({ cursor: 'c' });
    const own = '{ "n":1e400,"taskId":"t" }';
    client.say(
      `{"result":{"tasks":[${own},{"taskId":"for b"},{"taskId":"nobody's"},{},7,null],"nextCursor":"d"},"jsonrpc":"2.0","id":${id}}`,
    );
    expect(child.received.lines.at(-1)).toBe(
      `{"result":{"tasks":[${own.replace('"t"', JSON.stringify(name))}],"nextCursor":"d"},"jsonrpc":"2.0","id":"list"}`,
    );
  });

  it('is empty when the client answers something else than a list', async () => {
    const { handshake, child } = await tasking('isolated');
    const told = asked(child, handshake(), { method: 'tasks/list' }, { tasks: 'none' });
    expect(told.result).toEqual({ tasks: [] });
  });

  it('is not told to a server that several clients share', async () => {
    const { child, client, other } = await withTask();
    for (const each of [client, other]) each.received.take();
    child.say({ jsonrpc: '2.0', id: 'q', method: 'tasks/list' });
    expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32601 } });
    expect([...serverRequests(client), ...serverRequests(other)]).toEqual([]);
  });
});

describe("the news of a client's task", () => {
  it('go to the server that the task is for, under our id, all else untouched', async () => {
    const { child, client, server, name } = await withTask();
    client.say(
      '{"params":{"status":"working","taskId":"t","n":1.0},"jsonrpc":"2.0","method":"notifications/tasks/status"}',
    );
    expect(child.received.lines.at(-1)).toBe(
      `{"params":{"status":"working","taskId":"${name}","n":1.0},"jsonrpc":"2.0","method":"notifications/tasks/status"}`,
    );
    expect(server('b').child.asked('notifications/tasks/status')).toEqual([]);
  });

  it.each([['unknown'], [7], [undefined]])(
    'of a task that no server waits for, such as %j, reach none',
    async (taskId) => {
      const { child, client, other } = await withTask();
      client.say({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { taskId } });
      other.say(statusOf('t'));
      expect(child.asked('notifications/tasks/status')).toEqual([]);
    },
  );
});

describe("the progress of a client's task", () => {
  const TOKEN = { _meta: { progressToken: 'theirs' } };
  const reports = (child: ScriptedPeer) => child.asked('notifications/progress').map(({ params }) => params);

  it('goes on after the answer, under the token and the id of its server', async () => {
    const { child, client, name } = await withTask(TOKEN);
    const { progressToken } = serverRequests(client)[0]?.params._meta ?? {};
    client.say(progressOf(progressToken, 1), progressOf(progressToken, 2, related('t')));
    expect(reports(child)).toEqual([
      { progressToken: 'theirs', progress: 1 },
      { progressToken: 'theirs', progress: 2, ...related(name) },
    ]);
  });

  it.each([
    ['the client says so', (client: ScriptedClient) => client.say(statusOf('t', 'completed'))],
    ['tasks/get tells', tells('tasks/get', taskOf('t', 'failed'))],
    ['it is cancelled', tells('tasks/cancel', taskOf('t', 'cancelled'))],
    ['its result is there', tells('tasks/result', { role: 'assistant' })],
  ])('ends when %s', async (_, end) => {
    const { child, client, name } = await withTask(TOKEN);
    const { progressToken } = serverRequests(client)[0]?.params._meta ?? {};
    tells('tasks/get', taskOf('t', 'working'))(client, child, name);
    client.say(progressOf(progressToken, 1));
    end(client, child, name);
    client.say(progressOf(progressToken, 2));
    expect(reports(child)).toHaveLength(1);
  });

  it('reaches no process any more once its own is about to end', async () => {
    const { child: last, client, server } = await withTask(TOKEN);
    const { progressToken } = serverRequests(client)[0]?.params._meta ?? {};
    server('a').moved('stopping');
    client.say(progressOf(progressToken, 1));
    server('a').crash();
    const child = await server('a').start();
    client.say(progressOf(progressToken, 2));
    expect([last, child].map(reports)).toEqual([[], []]);
  });
});

function tells(method: string, result: Message) {
  return (client: ScriptedClient, child: ScriptedPeer, taskId: string) => {
    asked(child, client, { method, params: { taskId } }, result);
  };
}

describe('with many tasks of a client', () => {
  it('the oldest are forgotten', async () => {
    const { handshake, child } = await tasking();
    const client = handshake({}, EVERYTHING);
    const names = Array.from({ length: 1_025 }, (_, index) => {
      // Without this, each call reads all earlier lines again.
      child.received.lines.length = 0;
      client.received.lines.length = 0;
      return made(child, client, `t-${index}`);
    });
    const [first, second] = names;
    child.say({ jsonrpc: '2.0', id: 'first', method: 'tasks/get', params: { taskId: first } });
    expect(child.received.last).toMatchObject({ id: 'first', error: { code: -32602 } });
    child.say({ jsonrpc: '2.0', id: 'second', method: 'tasks/get', params: { taskId: second } });
    expect(serverRequests(client).at(-1)?.params).toEqual({ taskId: 't-1' });
  });

  it('one with a long id is forgotten at once', async () => {
    const { handshake, child } = await tasking();
    const client = handshake({}, EVERYTHING);
    const taskId = made(child, client, 't'.repeat(1_025));
    child.say({ jsonrpc: '2.0', id: 'long', method: 'tasks/get', params: { taskId } });
    expect(child.received.last).toMatchObject({ id: 'long', error: { code: -32602 } });
  });
});
