import { describe, expect, it } from 'vitest';
import { HttpBindError } from '../../../src/downstream/http/bind.js';
import { endpointFor } from '../../../src/downstream/users/user-check.js';
import { FakeClock } from '../../support/fake-clock.js';
import { until } from '../../support/processes.js';
import { json, ScriptedCore } from './scripted-core.js';
import { ScriptedUsers, tokenOf } from './scripted-users.js';
import { initializeRequest, notification, request, type Serving, serving } from './serving.js';

const ANN = tokenOf('ann');
const BOB = tokenOf('bob');
const VIEWS = [
  { name: 'work', groups: ['eng'] },
  { name: 'other', groups: ['ops'] },
];

async function servingUsers(more: Parameters<typeof serving>[0] = {}) {
  const users = new ScriptedUsers();
  const http = await serving({ users, bind: { tokens: [] }, ...more });
  return { http, users };
}

/** A session of ann, with a call whose stream has events, and its headers for any user. */
async function sessionOfAnn() {
  const { http, users } = await servingUsers();
  const session = await http.initialize('2025-11-25', ANN);
  const by = (user: object, more: object = {}) => ({ ...session, ...user, ...more });
  return { http, users, session, by };
}

/** A core whose views have groups. */
function grouped(): ScriptedCore {
  const core = new ScriptedCore();
  core.servers.add('v/other');
  core.endpointFor = (asked, { groups }) => endpointFor(asked, groups, VIEWS);
  return core;
}

describe('the session of another user', () => {
  const post = (message: object) => (http: Serving, headers: object) => http.post(message, { ...headers });
  const get =
    (more: object = {}) =>
    (http: Serving, headers: object) =>
      http.send('GET', '/mcp', { ...headers, accept: 'text/event-stream', ...more });

  it.each<[what: string, ask: (http: Serving, headers: object) => Promise<{ status: number; text: string }>]>([
    ['a list', post(request(1, 'tools/list'))],
    ['a call', post(request(1, 'tools/call', { name: 'x' }))],
    ['a ping', post(request(1, 'ping'))],
    ['a log level', post(request(1, 'logging/setLevel', { level: 'debug' }))],
    ['a subscription', post(request(1, 'resources/subscribe', { uri: 'x://1' }))],
    ['the end of a subscription', post(request(1, 'resources/unsubscribe', { uri: 'x://1' }))],
    ['a task', post(request(1, 'tasks/get', { taskId: 't' }))],
    ['a notification', post(notification('notifications/initialized'))],
    ['a cancellation', post(notification('notifications/cancelled', { requestId: 1 }))],
    ['a change of roots', post(notification('notifications/roots/list_changed'))],
    ['an answer to a server', post({ jsonrpc: '2.0', id: 1, result: { action: 'accept' } })],
    ['a second initialize', post(initializeRequest('2025-11-25'))],
    ['a batch', (http, headers) => http.post('[]', { ...headers })],
    ['its stream', get()],
    ['a part of its stream', get({ 'last-event-id': '0-0' })],
    ['a part of a call', get({ 'last-event-id': '1-0' })],
    ['its end', (http, headers) => http.send('DELETE', '/mcp', { ...headers })],
  ])('does not exist for %s', async (_, ask) => {
    const { http, by } = await sessionOfAnn();
    const before = http.core.last.bodies.length;
    const answer = await ask(http, by(BOB));
    expect(answer.status).toBe(404);
    expect(answer.text).toBe((await ask(http, { ...BOB, 'mcp-session-id': 'unknown' })).text);
    expect(http.core.last.bodies).toHaveLength(before);
    expect((await http.post(request(2, 'tools/list'), by(ANN))).status).toBe(200);
  });

  it('does not exist for the user at other endpoints either', async () => {
    const { http, by } = await sessionOfAnn();
    for (const path of ['/mcp/files', '/mcp/v/work'])
      for (const user of [ANN, BOB]) expect((await http.post(request(1), by(user), path)).status).toBe(404);
  });

  it('is not reached by a request of revision 2026-07-28 that names it', async () => {
    const { http, by } = await sessionOfAnn();
    const { last } = http.core;
    const meta = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
    expect((await http.post(request(1, 'tools/list', meta), by(BOB, headers))).status).toBe(200);
    expect(http.core.last).not.toBe(last);
    expect(http.core.callers.map(({ user }) => user?.name)).toEqual(['ann', 'bob']);
  });

  it('has events that the own session of a user cannot resume', async () => {
    const { http, by } = await sessionOfAnn();
    const replies = http.core.hold();
    const pending = http.begin('POST', '/mcp', by(ANN), JSON.stringify(request(1)));
    await until('her call has arrived', () => replies.length === 1);
    http.clock.advance(10_000);
    await pending;
    const own = await http.initialize('2025-11-25', BOB);
    const headers = { ...own, ...BOB, accept: 'text/event-stream', 'last-event-id': '1-0' };
    expect((await http.send('GET', '/mcp', headers)).status).toBe(400);
  });
});

describe('the session of a user', () => {
  it('goes on with another token of the same user', async () => {
    const { http, by } = await sessionOfAnn();
    expect((await http.post(request(1), by(tokenOf('ann', 'renewed')))).status).toBe(200);
  });

  it('is not held by a stream whose client left during the check of its token', async () => {
    const { http, users, by } = await sessionOfAnn();
    const { endpoints } = users;
    let check = () => {};
    users.pause = new Promise((resolve) => {
      check = resolve;
    });
    const asked = endpoints.length;
    const socket = await http.connect();
    socket.write(http.head('GET', by(ANN, { accept: 'text/event-stream' })));
    await until('the check has begun', () => endpoints.length > asked);
    socket.destroy();
    // By the answer to a later request, the server has noticed the end of the connection.
    await http.send('GET', '/healthz');
    check();
    users.pause = undefined;
    const stream = await http.begin('GET', '/mcp', by(ANN, { accept: 'text/event-stream' }));
    expect(stream.statusCode).toBe(200);
    stream.destroy();
  });

  it('has the user, not the token', async () => {
    const { http } = await sessionOfAnn();
    expect(http.core.callers).toEqual([
      { principal: 'principal of ann', user: expect.objectContaining({ name: 'ann', kind: 'user' }) },
    ]);
  });

  it('of revision 2026-07-28 is another client once a variable has changed, and nothing of it is in flight', async () => {
    const { http } = await servingUsers();
    const meta = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };
    const headers = { ...ANN, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
    const list = () => http.post(request(1, 'tools/list', meta), headers);
    await list();
    await list();
    expect(http.core.sessions).toHaveLength(1);
    const { onRequest } = http.core;
    const replies = http.core.hold();
    const inFlight = list();
    await until('a request is in flight', () => replies.length === 1);
    http.core.last.isOutdated = true;
    http.core.onRequest = onRequest;
    await list();
    expect(http.core.sessions).toHaveLength(1);
    replies[0]?.withdraw();
    await inFlight;
    await list();
    expect(http.core.sessions.map(({ closed }) => closed)).toEqual([1, 0]);
  });

  it('makes room for a user who has fewer, and can be continued while there is room', async () => {
    const clock = new FakeClock();
    const { http } = await servingUsers({ clock, limits: { maxSessions: 3 } });
    const open = async (user: object) => {
      clock.advance(1_000);
      return { ...user, ...(await http.initialize('2025-06-18', { ...user })) };
    };
    const [first, second] = [await open(ANN), await open(ANN), await open(ANN)];
    clock.advance(1_000);
    await http.post(request(1, 'ping'), first);
    const bobs = await open(BOB);
    expect(http.core.sessions.map(({ closed }) => closed)).toEqual([0, 1, 0, 0]);
    // Neither user has two sessions more than the other one.
    expect((await http.post(initializeRequest('2025-06-18'), { ...BOB })).status).toBe(503);
    expect((await http.post(request(1, 'ping'), second)).status).toBe(503);
    await http.send('DELETE', '/mcp', bobs);
    expect((await http.post(request(1, 'ping'), second)).status).toBe(200);
  });

  it('with a call in flight makes no room', async () => {
    const { http } = await servingUsers({ limits: { maxSessions: 2 } });
    const replies = http.core.hold();
    const calls = [];
    for (let count = 1; count <= 2; count += 1) {
      const session = await http.initialize('2025-06-18', { ...ANN });
      calls.push(http.post(request(1), { ...ANN, ...session }));
      await until('the call is in flight', () => replies.length === count);
    }
    expect((await http.post(initializeRequest('2025-06-18'), { ...BOB })).status).toBe(503);
    for (const reply of replies) reply.withdraw();
    await Promise.all(calls);
  });

  it('does not count toward the rate of another user', async () => {
    const { http } = await servingUsers({ limits: { requestsPerSecond: 1, requestBurst: 1 } });
    const ask = async (user: object) => (await http.send('DELETE', '/mcp', { ...user })).status;
    const statuses = [];
    for (let count = 0; count < 5; count += 1) statuses.push(await ask(ANN));
    expect(statuses).toContain(429);
    expect(await ask(BOB)).toBe(405);
  });
});

describe('what stays open after the end of its token', () => {
  const openUntil = async (tokenEndsAt: number) => {
    const clock = new FakeClock();
    const { http, users } = await servingUsers({ clock });
    users.tokenEndsAt = tokenEndsAt;
    return { http, clock };
  };

  it('is no stream of a session, which goes on with a new token', async () => {
    const { http, clock } = await openUntil(60_000);
    const session = { ...ANN, ...(await http.initialize('2025-11-25', ANN)) };
    const stream = await http.listen(session);
    clock.advance(60_000);
    await stream.rest();
    expect(stream.response.complete).toBe(true);
    expect((await http.post(request(1, 'ping'), session)).status).toBe(200);
  });

  it('is no subscription', async () => {
    const { http, clock } = await openUntil(60_000);
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    const headers = { ...ANN, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' };
    const replies = http.core.hold();
    const answer = http.post(request(1, 'subscriptions/listen', { _meta }), headers);
    await until('the subscription is open', () => replies.length === 1);
    clock.advance(60_000);
    expect((await answer).text).not.toContain('"result"');
  });

  it('is a call in flight', async () => {
    const { http, clock } = await openUntil(60_000);
    const session = { ...ANN, ...(await http.initialize('2025-11-25', ANN)) };
    const replies = http.core.hold();
    const answer = http.post(request(1), session);
    await until('the call is in flight', () => replies.length === 1);
    clock.advance(120_000);
    replies[0]?.answer(json({ jsonrpc: '2.0', id: 1, result: {} }));
    expect((await answer).text).toContain('"result"');
  });
});

describe('a request of a stranger', () => {
  it.each([
    ['/mcp', undefined],
    ['/mcp/files', 'files'],
    ['/mcp/none', 'none'],
    ['/mcp/v/work', 'v/work'],
  ])('for %s is refused with what the users say about that endpoint', async (path, endpoint) => {
    const { http, users } = await servingUsers();
    const answer = await http.post(request(1), { authorization: undefined }, path);
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Bearer x']);
    expect(users.endpoints).toEqual([endpoint]);
  });

  it('is not admitted with `noAuth`', async () => {
    await expect(servingUsers({ bind: { noAuth: true } })).rejects.toThrow(HttpBindError);
  });
});

describe('the metadata of an endpoint', () => {
  it.each([
    ['', ''],
    ['/mcp', '/mcp'],
    ['/mcp/files', '/mcp/files'],
    ['/mcp/none', '/mcp/none'],
    ['/mcp/a%22b', '/mcp/a%22b'],
    ['/mcp/v/work', '/mcp/v/work'],
  ])('at %j needs no token and no allowed host, and is open to every page', async (path, resource) => {
    const { http } = await servingUsers();
    const answer = await http.send('GET', `/.well-known/oauth-protected-resource${path}`, {
      ...{ authorization: undefined, host: 'proxy.example', origin: 'https://page.example' },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    expect(JSON.parse(answer.text)).toEqual({ resource: `https://mcp.example.com${resource}` });
  });

  it('allows the request that a browser sends before', async () => {
    const { http } = await servingUsers();
    const { status, headers } = await http.send('OPTIONS', '/.well-known/oauth-protected-resource/mcp', {
      ...{ authorization: undefined, origin: 'https://page.example', 'access-control-request-method': 'GET' },
    });
    expect([status, headers['access-control-allow-origin'], headers['access-control-allow-headers']]).toEqual([
      204,
      '*',
      '*',
    ]);
  });

  it('does not exist without users', async () => {
    const http = await serving();
    expect((await http.send('GET', '/.well-known/oauth-protected-resource/mcp')).status).toBe(404);
  });
});

describe('with groups at the views', () => {
  it('each user gets the view of the own group, and the view is part of the session', async () => {
    const { http, users } = await servingUsers({ core: grouped() });
    const session = await http.initialize('2025-11-25', ANN);
    await http.initialize('2025-11-25', BOB);
    expect(http.core.endpoints).toEqual(['v/work', 'v/other']);
    expect((await http.post(request(1), { ...session, ...ANN })).status).toBe(200);
    users.groups.set('ann', ['ops']);
    expect((await http.post(request(1), { ...session, ...ANN })).status).toBe(404);
  });

  it('a closed view looks like one that does not exist', async () => {
    const { http } = await servingUsers({ core: grouped() });
    const [closed, none] = await Promise.all(
      ['/mcp/v/other', '/mcp/v/none'].map((path) => http.post(initializeRequest('2025-11-25'), ANN, path)),
    );
    expect([closed?.status, closed?.text]).toEqual([404, none?.text]);
    expect(http.core.endpoints).toEqual([]);
  });

  it('a closed server looks like one that does not exist', async () => {
    const core = grouped();
    core.endpointFor = (asked, { groups }) =>
      endpointFor(asked, groups, [{ name: 'work', groups: ['eng'], servers: [] }]);
    const { http } = await servingUsers({ core });
    const [closed, none] = await Promise.all(
      ['/mcp/files', '/mcp/none'].map((path) => http.post(initializeRequest('2025-11-25'), ANN, path)),
    );
    expect([closed?.status, closed?.text]).toEqual([404, none?.text]);
  });

  it('a user of no group is refused, also in a session that was opened before', async () => {
    const { http, users } = await servingUsers({ core: grouped() });
    const session = await http.initialize('2025-11-25', ANN);
    users.groups.set('ann', []);
    for (const headers of [ANN, { ...session, ...ANN }])
      expect((await http.post(initializeRequest('2025-11-25'), headers)).status).toBe(403);
  });
});

describe('the metrics', () => {
  it.each([
    ['ann', 403],
    ['ci', 200],
    ['nobody', 401],
  ])('answer %s with %i, because they are about all users', async (name, status) => {
    const { http } = await servingUsers({ readMetrics: async () => 'metrics' });
    expect((await http.send('GET', '/metrics', tokenOf(name))).status).toBe(status);
  });
});

describe('a refusal', () => {
  it('names the user in its event', async () => {
    const { http } = await servingUsers();
    await http.post(request(1), { ...ANN, 'mcp-session-id': 'unknown' });
    await http.post(request(1), { ...tokenOf('ci'), 'mcp-session-id': 'unknown' });
    const refused = http.events.filter(({ kind }) => kind === 'http.refused');
    expect(refused).toMatchObject([{ user: 'ann' }, { machine: 'ci' }]);
  });
});
