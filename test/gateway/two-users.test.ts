import { describe, expect, it } from 'vitest';
import type { ClientOrigin, User } from '../../src/downstream/port.js';
import type { Sharing } from '../../src/gateway/registry/server-instances.js';
import {
  OWN_ORIGIN,
  offering,
  type ScriptedClient,
  type ServerScript,
  scriptGateway,
  startGateway,
} from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';
import { EVERYTHING, made, related, statusOf, taskServer } from './tasks/tasking.js';

/*
 * Two users try to get what belongs to the other. Each probe returns the messages that the wrong side got; there must be
 * none. Most probes use a server with `sharing: all`, because other servers have a process for each user.
 */

const ANN = userOf('ann');
const BOB = userOf('bob');
const URI = 'x://ann/1';
const SECRET = 'word of ann';

function userOf(name: string): User {
  return { principal: `principal of ${name}`, name, kind: 'user', groups: [] };
}

/** A server that has everything: tasks, resources with subscriptions, and logs. */
const COMMON: ServerScript = {
  ...offering({ resources: [URI], templates: ['x://{+rest}'], prompts: ['p'] }),
  ...taskServer({
    hello: {
      capabilities: {
        ...{ tools: {}, prompts: {}, logging: {}, completions: {}, resources: { subscribe: true } },
        tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
      },
    },
  }),
  lists: offering({ resources: [URI], templates: ['x://{+rest}'], prompts: ['p'] }).lists ?? {},
};

/** Both users at one process. */
async function together() {
  const world = await startGateway({ servers: { a: COMMON } });
  const [ann, bob] = [ANN, BOB].map((user) => world.connect({ user }).greet('2025-11-25', EVERYTHING));
  if (ann === undefined || bob === undefined) throw new Error('Nobody has connected');
  return { ...world, ann, bob, child: world.server('a').child };
}

type Together = Awaited<ReturnType<typeof together>>;

/** What a client received, without the answers to its own requests. */
function heard({ received }: ScriptedClient): Message[] {
  return received.messages.filter(({ method }) => method !== undefined);
}

const LOG = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: SECRET } };
const VENDOR = { jsonrpc: '2.0', method: 'notifications/vendor', params: { data: SECRET } };
const SAMPLE = {
  ...{ jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage' },
  params: { messages: [], maxTokens: 1, systemPrompt: SECRET },
};
const ELICIT = { ...SAMPLE, method: 'elicitation/create', params: { message: SECRET, requestedSchema: {} } };
const CREATE_TASK = { ...SAMPLE, params: { ...SAMPLE.params, task: {} } };

/** Whether `bob` may do something with a task of `ann`: the messages that reached the server for it. */
function withTaskOfAnn(method: string, params: (taskId: string) => Message = (taskId) => ({ taskId })) {
  return async ({ ann, bob, child }: Together) => {
    const taskId = made(ann, child, 't');
    const before = child.received.lines.length;
    bob.request('probe', method, params(taskId));
    await flush();
    const reached = child.received.messages.slice(before).filter((message) => message.method === method);
    return [...reached, ...(bob.answerTo('probe')?.error === undefined ? [bob.answerTo('probe')] : [])];
  };
}

function withModernTaskOfAnn(method: string) {
  return async ({ ann, bob, child }: Together) => {
    const taskId = made(ann, child, 't');
    const before = child.received.lines.length;
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    bob.modernRequest('probe', method, { taskId, inputResponses: {} }, capabilities);
    await flush();
    const reached = child.received.messages.slice(before);
    return [...reached, ...(bob.answerTo('probe')?.error === undefined ? [bob.answerTo('probe')] : [])];
  };
}

/** What reaches `bob` of messages that the server sends during a call of `ann`. */
function duringCallOfAnn(...messages: Message[]) {
  return async ({ ann, bob, child }: Together) => {
    ann.call(1, 'a__quick');
    child.say(...messages);
    await flush();
    return heard(bob);
  };
}

/** What reaches anybody of messages that the server sends while both call it. */
function duringBothCalls(...messages: Message[]) {
  return async ({ ann, bob, child }: Together) => {
    ann.call(1, 'a__quick');
    bob.call(1, 'a__quick');
    child.say(...messages);
    await flush();
    return [...heard(ann), ...heard(bob)];
  };
}

describe('at a process for all users, nothing of ann reaches bob:', () => {
  it.each<[what: string, probe: (world: Together) => Promise<unknown[]>]>([
    // Tasks
    ['the state of her task', withTaskOfAnn('tasks/get')],
    ['the result of her task', withTaskOfAnn('tasks/result')],
    ['the end of her task', withTaskOfAnn('tasks/cancel')],
    ['the state of her task, in revision 2026-07-28', withModernTaskOfAnn('tasks/get')],
    ['the input of her task, in revision 2026-07-28', withModernTaskOfAnn('tasks/update')],
    ['the end of her task, in revision 2026-07-28', withModernTaskOfAnn('tasks/cancel')],
    [
      'her task by the id of the server',
      async ({ ann, bob, child }) => {
        made(ann, child, 't');
        bob.request('probe', 'tasks/get', { taskId: 't' });
        return [...child.asked('tasks/get'), ...(bob.answerTo('probe')?.result ? [bob.answerTo('probe')] : [])];
      },
    ],
    [
      'her task in the list of tasks',
      async ({ ann, bob, child }) => {
        made(ann, child, 't');
        bob.request('probe', 'tasks/list');
        child.reply('tasks/list', { tasks: [{ taskId: 't', status: 'working' }] });
        await flush();
        return bob.answerTo('probe')?.result.tasks;
      },
    ],
    [
      'changes of her task',
      async ({ ann, bob, child }) => {
        made(ann, child, 't');
        child.say(statusOf('t'));
        await flush();
        return heard(bob);
      },
    ],
    [
      'changes of her task after she has left',
      async ({ ann, bob, child }) => {
        made(ann, child, 't');
        ann.session.close();
        child.say(statusOf('t'));
        await flush();
        return heard(bob);
      },
    ],
    [
      'a request of the server about her task',
      async ({ ann, bob, child }) => {
        made(ann, child, 't');
        child.say({ ...SAMPLE, params: { ...SAMPLE.params, ...related('t') } });
        await flush();
        return heard(bob);
      },
    ],
    [
      'a request of the server about her task after she has left',
      async ({ ann, bob, child }) => {
        made(ann, child, 't');
        ann.session.close();
        child.say({ ...SAMPLE, params: { ...SAMPLE.params, ...related('t') } });
        await flush();
        return heard(bob);
      },
    ],
    [
      'a log message about her task',
      async ({ ann, bob, child }) => {
        made(ann, child, 't');
        child.say({ ...LOG, params: { ...LOG.params, ...related('t') } });
        await flush();
        return heard(bob);
      },
    ],
    [
      'her task through a call of his that names it',
      async ({ ann, bob, child }) => {
        const taskId = made(ann, child, 't');
        bob.call('probe', 'a__quick', related(taskId));
        const [sent] = child.calls.slice(-1);
        return sent?.params._meta?.['io.modelcontextprotocol/related-task']?.taskId === 't' ? [sent] : [];
      },
    ],
    [
      'her task through a subscription of revision 2026-07-28',
      async ({ ann, bob, child }) => {
        const taskId = made(ann, child, 't');
        const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
        bob.modernRequest('listen', 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, capabilities);
        await flush();
        return [...(heard(bob).at(-1)?.params.notifications.taskIds ?? []), ...child.asked('tasks/get')];
      },
    ],
    [
      'a task that her client runs for the server',
      async ({ ann, bob, child }) => {
        ann.call(1, 'a__quick');
        child.say(CREATE_TASK);
        await flush();
        const { id } = heard(ann).at(-1) ?? {};
        ann.say({ jsonrpc: '2.0', id, result: { task: { taskId: 'of-her-client', status: 'working' } } });
        await flush();
        const name = child.received.last.result.task.taskId;
        bob.say({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { taskId: name, status: 'failed' } });
        bob.say({
          jsonrpc: '2.0',
          method: 'notifications/tasks/status',
          params: { taskId: 'of-her-client', status: 'failed' },
        });
        child.say({ jsonrpc: '2.0', id: 'about', method: 'tasks/get', params: { taskId: name } });
        await flush();
        return [...heard(bob), ...child.asked('notifications/tasks/status')];
      },
    ],
    // Requests of the server
    ['a request for a text during her call', duringCallOfAnn(SAMPLE)],
    ['a question during her call', duringCallOfAnn(ELICIT)],
    ['a request for roots during her call', duringCallOfAnn({ ...SAMPLE, method: 'roots/list', params: {} })],
    ['a request of the server while both call it', duringBothCalls(SAMPLE)],
    ['a question of the server while both call it', duringBothCalls(ELICIT)],
    [
      'a request of the server while nobody calls it',
      async ({ ann, bob, child }) => {
        child.say(SAMPLE);
        await flush();
        return [...heard(ann), ...heard(bob)];
      },
    ],
    [
      'the end of a question that she was asked',
      async ({ ann, bob, child }) => {
        ann.call(1, 'a__quick');
        child.say({
          ...ELICIT,
          params: { mode: 'url', url: 'https://x.example', message: SECRET, elicitationId: 'e' },
        });
        child.say({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId: 'e' } });
        await flush();
        return heard(bob);
      },
    ],
    [
      'the end of a question that nobody knows',
      async ({ ann, bob, child }) => {
        child.say({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId: SECRET } });
        await flush();
        return [...heard(ann), ...heard(bob)];
      },
    ],
    [
      'an answer of his to the question that she was asked',
      async ({ ann, bob, child }) => {
        ann.call(1, 'a__quick');
        child.say(ELICIT);
        await flush();
        const { id } = heard(ann).at(-1) ?? {};
        bob.say({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } });
        await flush();
        return child.received.messages.filter((message) => message.id === 'q');
      },
    ],
    // Logs and notifications
    ['a log message during her call', duringCallOfAnn(LOG)],
    ['a notification outside of MCP during her call', duringCallOfAnn(VENDOR)],
    ['a log message while both call the server', duringBothCalls(LOG)],
    ['a notification outside of MCP while both call the server', duringBothCalls(VENDOR)],
    [
      'a log message after her call',
      async ({ ann, bob, child }) => {
        ann.call(1, 'a__quick');
        child.answer(0);
        child.say(LOG);
        await flush();
        return [...heard(ann), ...heard(bob)];
      },
    ],
    [
      'a log message of a level that only he has asked for',
      async ({ ann, bob, child }) => {
        bob.request('level', 'logging/setLevel', { level: 'debug' });
        ann.request('level', 'logging/setLevel', { level: 'error' });
        ann.call(1, 'a__quick');
        child.say({ ...LOG, params: { level: 'debug', data: SECRET } });
        await flush();
        return [...heard(ann), ...heard(bob)];
      },
    ],
    // Calls
    [
      'progress of her call under the same token',
      async ({ ann, bob, child }) => {
        for (const client of [bob, ann]) client.call(1, 'a__quick', { _meta: { progressToken: 'same' } });
        const [, hers] = child.calls;
        const progressToken = hers?.params._meta.progressToken;
        child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } });
        await flush();
        return heard(bob);
      },
    ],
    [
      'the answer to her call with the same id',
      async ({ ann, bob, child }) => {
        for (const client of [bob, ann]) client.call(1, 'a__quick');
        child.answer(1, { content: [{ type: 'text', text: SECRET }] });
        await flush();
        return bob.answerTo(1) === undefined ? [] : [bob.answerTo(1)];
      },
    ],
    [
      'a cancellation of her call with the same id',
      async ({ ann, bob, child }) => {
        ann.call(1, 'a__quick');
        bob.cancel(1);
        await flush();
        return child.cancellations;
      },
    ],
    [
      'progress that he claims for her call',
      async ({ ann, bob, child }) => {
        ann.call(1, 'a__quick', { _meta: { progressToken: 'hers' } });
        bob.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'hers', progress: 1 } });
        await flush();
        return child.asked('notifications/progress');
      },
    ],
    // Subscriptions
    [
      'an update of a resource that she follows',
      async ({ ann, bob, child }) => {
        ann.request('s', 'resources/subscribe', { uri: URI });
        child.reply('resources/subscribe');
        await flush();
        child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } });
        await flush();
        return heard(bob);
      },
    ],
    [
      'the end of her subscription',
      async ({ ann, bob, child }) => {
        ann.request('s', 'resources/subscribe', { uri: URI });
        child.reply('resources/subscribe');
        await flush();
        bob.request('u', 'resources/unsubscribe', { uri: URI });
        await flush();
        return child.asked('resources/unsubscribe');
      },
    ],
    [
      'the end of her subscription when he leaves',
      async ({ ann, bob, child }) => {
        for (const client of [ann, bob]) client.request('s', 'resources/subscribe', { uri: URI });
        child.reply('resources/subscribe');
        await flush();
        bob.session.close();
        await flush();
        return child.asked('resources/unsubscribe');
      },
    ],
    [
      'an update that she follows, in revision 2026-07-28',
      async ({ ann, bob, child }) => {
        ann.modernRequest('listen', 'subscriptions/listen', { notifications: { resourceSubscriptions: [URI] } });
        await flush();
        child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } });
        await flush();
        return heard(bob);
      },
    ],
  ])('%s', async (_, probe) => {
    expect(await probe(await together())).toEqual([]);
  });

  it('but a log message during her call reaches ann', async () => {
    const { ann, child } = await together();
    ann.call(1, 'a__quick');
    child.say(LOG);
    await flush();
    expect(heard(ann)).toEqual([LOG]);
  });
});

/** A server with this sharing; the process that serves each client is found by a call. */
function apart(sharing: Sharing, script: Partial<ServerScript> = {}) {
  const world = scriptGateway({ servers: { a: { tools: ['x'], sharing, ...script } } });
  const connect = (user: User, origin?: ClientOrigin, name = 't') => {
    return world.connect({ user, origin }).greet('2025-11-25', {}, name);
  };
  const idOf = async (client: ScriptedClient) => {
    for (const id of world.ids()) if (world.server(id).generation === 0) await world.server(id).start();
    const marker = Math.random();
    client.call('which', 'a__x', { arguments: { marker } });
    return world
      .ids()
      .find((id) => world.server(id).child.calls.some(({ params }) => params.arguments?.marker === marker));
  };
  return { ...world, connect, idOf };
}

const originOf = ({ principal }: User, value: string): ClientOrigin => ({
  ...OWN_ORIGIN,
  environment: { 'user:TOKEN': value },
  user: principal,
});

describe('each user has processes of his own', () => {
  it.each(['profile', 'user', 'isolated', 'folder', 'auto'] as const)('with `sharing: %s`', async (sharing) => {
    const { connect, idOf } = apart(sharing);
    const [ann, bob] = [await idOf(connect(ANN)), await idOf(connect(BOB))];
    expect([typeof ann, typeof bob, ann === bob]).toEqual(['string', 'string', false]);
  });

  it.each(['profile', 'user', 'isolated', 'folder', 'auto', 'all'] as const)(
    'with a variable of users, with `sharing: %s`, even if both have the same value',
    async (sharing) => {
      const { connect, idOf } = apart(sharing, { variables: ['user:TOKEN'] });
      const ids = [await idOf(connect(ANN, originOf(ANN, 'same'))), await idOf(connect(BOB, originOf(BOB, 'same')))];
      expect(new Set(ids).size).toBe(2);
      expect(ids).not.toContain(undefined);
    },
  );

  it('and gets none that another user has left', async () => {
    const { connect, idOf, clock } = apart('profile');
    const ann = connect(ANN);
    const hers = await idOf(ann);
    ann.session.close();
    clock.advance(1_000);
    expect(await idOf(connect(BOB))).not.toBe(hers);
    expect(await idOf(connect(ANN))).toBe(hers);
  });

  it('and with `sharing: user` one for all of his clients, which is told of all capabilities', async () => {
    const { connect, idOf, server } = apart('user');
    const ids = [await idOf(connect(ANN)), await idOf(connect(ANN, undefined, 'another program'))];
    expect(new Set(ids).size).toBe(1);
    expect((await server(ids[0] ?? '').profile).capabilities).toHaveProperty('sampling');
  });

  it('and with `sharing: user` it stays one when the server asks for roots', async () => {
    const { connect, idOf, server } = apart('user');
    const id = await idOf(connect(ANN));
    server(id ?? '').child.say({ jsonrpc: '2.0', id: 'r', method: 'roots/list' });
    expect(await idOf(connect(ANN, undefined, 'another program'))).toBe(id);
  });

  it('and with `sharing: user` it waits for his next client', async () => {
    const { connect, idOf, clock } = apart('user');
    const first = connect(ANN);
    const id = await idOf(first);
    first.session.close();
    clock.advance(1_000);
    expect(await idOf(connect(ANN))).toBe(id);
  });

  it('whose lists another user does not get, and no word of their changes', async () => {
    const tool = (name: string) => ({ tools: [{ name, inputSchema: { type: 'object' } }] });
    const lists: Record<string, Message> = { 'tools/list': tool('x') };
    const { connect, idOf, server, clock } = apart('profile', { lists });
    const [ann, bob] = [connect(ANN), connect(BOB)];
    const hers = server((await idOf(ann)) ?? '');
    await idOf(bob);
    bob.received.take();
    lists['tools/list'] = tool('of-ann');
    hers.child.say({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    clock.advance(1_000);
    await flush();
    for (const client of [ann, bob]) client.request('l', 'tools/list');
    await flush();
    expect(heard(bob)).toEqual([]);
    const names = [ann, bob].map((client) => client.answerTo('l')?.result.tools.map(({ name }: Message) => name));
    expect(names).toEqual([['a__of-ann'], ['a__x']]);
  });

  it('whose instructions another user does not get', async () => {
    const hello = { instructions: SECRET, serverInfo: { name: 'a', version: '1', description: SECRET } };
    const { connect, idOf } = apart('profile', { hello });
    await idOf(connect(ANN));
    const bob = connect(BOB);
    bob.modernRequest('d', 'server/discover');
    await flush();
    expect(JSON.stringify(bob.received.messages)).not.toContain(SECRET);
  });

  it('and a list that no other user may find in a cache', async () => {
    const lists = { 'tools/list': { tools: [], ttlMs: 60_000, cacheScope: 'public' } };
    const script = { lists, hasBridge: true, isModern: true, hello: { protocolVersion: '2026-07-28' } };
    const scopeFor = async (user?: User) => {
      const { connect } = await startGateway({ servers: { a: script } });
      const client = connect({ user });
      client.modernRequest('l', 'tools/list');
      await flush();
      return client.answerTo('l')?.result.cacheScope;
    };
    expect([await scopeFor(), await scopeFor(ANN)]).toEqual(['public', 'private']);
  });

  it('and a profile that names him, so that his lists are cached for him alone', async () => {
    const { connect, idOf, server } = apart('profile');
    const id = await idOf(connect(ANN));
    expect((await server(id ?? '').profile).principal).toBe(ANN.principal);
  });
});

/** Messages that a server could take for another one, such as a call of a hidden tool or the cancellation of a request of the other user. */
describe('a message of a user that a server could take for another one', () => {
  const params = { name: 'hidden', requestId: 2, id: 2, uri: URI };

  it.each([
    ...['tools/call', 'resources/read', 'initialize', 'server/discover', 'tools/list', 'tasks/cancel'],
    ...['notifications/Cancelled', ' notifications/cancelled', 'notifications/cancelled\u200b', '$/cancelRequest'],
    ...['Tools/Call', 'tools/call ', '$/x', ' $/x', 'notifications/cancelled\0x', 'notifications.cancelled'],
  ])('reaches no server as the notification %j', async (method) => {
    const { bob, child } = await together();
    const before = child.received.messages.length;
    bob.say({ jsonrpc: '2.0', method, params });
    expect(child.received.messages.slice(before)).toEqual([]);
  });

  it.each([
    ...['notifications/cancelled', 'notifications/progress', 'notifications/roots/list_changed', '$/cancelRequest'],
    ...['Tools/Call', ' tools/call', 'tools/call\n', 'Tools/Li\u017ft', 'tas\u212as/cancel', 'Notifications/Cancelled'],
    ...['tools/call\0', 'tools/call\0x', 'tools_call', 'tools.call', 'toolsCall', '/tools/call'],
  ])('reaches no server as the request %j, also of a client that sees one server alone', async (method) => {
    const { bob, child, connect } = await together();
    const only = connect({ user: BOB, server: 'a' }).greet('2025-11-25', EVERYTHING);
    await flush();
    const before = child.received.messages.length;
    for (const client of [bob, only]) {
      client.request(90, method, params);
      await flush();
      expect(client.answerTo(90)?.error?.code).toBe(-32601);
    }
    expect(child.received.messages.slice(before)).toEqual([]);
  });

  it.each(['foo/bar', 'notifications/vendor', 'x'])('is none of MCP, so that %j reaches it', async (method) => {
    const { bob, child } = await together();
    const before = child.received.messages.length;
    bob.say({ jsonrpc: '2.0', method, params });
    bob.request(90, method, params);
    await flush();
    expect(child.received.messages.slice(before).map(({ method }) => method)).toEqual([method, method]);
  });
});
