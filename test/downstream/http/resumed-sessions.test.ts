// Sessions that go on at another process with the same key, as after a restart or behind a load balancer.
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../support/fake-clock.js';
import { json } from './scripted-core.js';
import {
  idsOf,
  initializeRequest,
  inSession,
  notification,
  OTHER_TOKEN,
  request,
  type Serving,
  SharedRecords,
  serving,
  TOKEN,
} from './serving.js';

const DAY_MS = 86_400_000;
const LOST = { reason: 'instance_lost', code: 'TL-CALL-INSTANCE-LOST', sent: true, outcome: 'unknown' };

/** Two processes with the same key and the same time. */
async function two(limits: NonNullable<Parameters<typeof serving>[0]>['limits'] = {}) {
  const clock = new FakeClock();
  const now = () => clock.now();
  const first = await serving({ clock, limits, ids: idsOf('aaaaaaaaaa', { now }) });
  const second = await serving({ clock, limits, ids: idsOf('bbbbbbbbbb', { now }) });
  return { first, second };
}

const statusOf = async (http: Serving, headers: object) => (await http.post(request(1), { ...headers })).status;

describe('a session at another process', () => {
  it('F310: goes on with the same id, after the handshake was repeated once', async () => {
    const { first, second } = await two();
    const session = await first.initialize('2025-06-18');
    expect(await statusOf(second, session)).toBe(200);
    expect(await statusOf(second, session)).toBe(200);
    expect(second.core.sessions).toHaveLength(1);
    expect(second.core.last).toMatchObject({ isResumed: true, revision: '2025-06-18' });
    expect(second.core.last.restored).toEqual([initializeRequest('2025-06-18').params]);
    expect(second.events).toContainEqual({ kind: 'http.session-resumed', sessions: 1 });
    // Both processes have it, and either one serves it.
    expect(await statusOf(first, session)).toBe(200);
    expect(first.core.last.restored).toEqual([]);
  });

  it('speaks the revision that the client was offered, whatever it asked for', async () => {
    const { first, second } = await two();
    const session = await first.initialize('2099-01-01');
    await second.post(request(1), session);
    expect(second.core.last.restored).toMatchObject([{ protocolVersion: '2025-11-25' }]);
  });

  it('is resumed once for requests that come together, which wait for the handshake', async () => {
    const { first, second } = await two();
    const session = await first.initialize('2025-06-18', {}, '/mcp/files');
    let restored = (_isRestored: boolean) => {};
    second.core.onRestore = () =>
      new Promise((resolve) => {
        restored = resolve;
      });
    const answers = Array.from({ length: 5 }, (_, id) => second.post(request(id), session, '/mcp/files'));
    await expect.poll(() => second.core.last.restored).toHaveLength(1);
    expect(second.core.last.bodies).toEqual([]);
    restored(true);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(second.core.sessions).toHaveLength(1);
  });

  it('gets 503 and not 404 when its server does not run, and is resumed when it does', async () => {
    const { first, second } = await two();
    const session = await first.initialize('2025-06-18', {}, '/mcp/files');
    second.core.onRestore = () => Promise.resolve(false);
    const refused = await second.post(request(1), session, '/mcp/files');
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5']);
    expect([second.front.sessions, second.core.last.closed]).toEqual([0, 1]);
    second.core.onRestore = () => Promise.resolve(true);
    expect((await second.post(request(1), session, '/mcp/files')).status).toBe(200);
  });

  it('gets 500 when the handshake fails because of a bug, and is forgotten', async () => {
    const { first, second } = await two();
    const session = await first.initialize();
    second.core.onRestore = () => Promise.reject(new Error('a bug'));
    expect(await statusOf(second, session)).toBe(500);
    expect([second.front.sessions, second.core.last.closed]).toEqual([0, 1]);
    second.core.onRestore = () => Promise.resolve(true);
    expect(await statusOf(second, session)).toBe(200);
  });

  it('counts toward the limit, and gets 503 and not 404 beyond it', async () => {
    const { first, second } = await two({ maxSessions: 2 });
    await second.initialize();
    const session = await first.initialize();
    expect(await statusOf(second, session)).toBe(200);
    const other = await first.initialize();
    expect(await statusOf(second, other)).toBe(503);
    expect((await second.post(initializeRequest('2025-11-25'))).status).toBe(503);
    expect((await second.send('DELETE', '/mcp', session)).status).toBe(204);
    expect(await statusOf(second, other)).toBe(200);
  });

  it('F311: is unknown to any other token, at any other endpoint, and to a process with another key', async () => {
    const { first, second } = await two();
    const session = await first.initialize();
    expect(await statusOf(second, { ...session, authorization: `Bearer ${OTHER_TOKEN}` })).toBe(404);
    expect((await second.post(request(1), session, '/mcp/files')).status).toBe(404);
    expect((await second.send('DELETE', '/mcp', { ...session, authorization: `Bearer ${OTHER_TOKEN}` })).status).toBe(
      404,
    );
    const stranger = await serving({ ids: idsOf('cccccccccc', { key: 2 }) });
    expect(await statusOf(stranger, session)).toBe(404);
    expect([second.front.sessions, stranger.front.sessions]).toEqual([0, 0]);
  });

  it('F311: is not resumed under other ids', async () => {
    const { second, first } = await two({ requestBurst: 100_000 });
    const { 'mcp-session-id': id } = await first.initialize();
    const socket = await second.connect();
    // One connection, because the ids are the point.
    let answers = '';
    socket.on('data', (chunk: Buffer) => {
      answers += chunk.toString('latin1');
    });
    const count = 500;
    for (let n = 0; n < count; n += 1) {
      const at = 3 + (n % (id.length - 3));
      const put = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[n % 57] ?? '';
      const mutation = `${id.slice(0, at)}${put === id[at] ? '_' : put}${id.slice(at + 1)}`;
      socket.write(second.head('DELETE', { 'mcp-session-id': mutation }));
    }
    await expect.poll(() => answers.split('HTTP/1.1 404').length - 1).toBe(count);
    expect(answers.split('HTTP/1.1 ').length - 1).toBe(count);
    expect(second.core.sessions).toEqual([]);
  });

  it('is not resumed after seven days, and goes on where it is', async () => {
    const { first, second } = await two();
    const session = await first.initialize();
    await first.listen(session);
    first.clock.advance(7 * DAY_MS - 1_000);
    expect(await statusOf(second, session)).toBe(200);
    const other = await serving({ clock: first.clock, ids: idsOf('cccccccccc', { now: () => first.clock.now() }) });
    first.clock.advance(2_000);
    expect(await statusOf(other, session)).toBe(404);
    expect(await statusOf(first, session)).toBe(200);
  });

  it('that was deleted stays deleted at the process that deleted it, also before it was resumed there', async () => {
    const { first, second } = await two();
    const session = await first.initialize();
    expect((await second.send('DELETE', '/mcp', session)).status).toBe(204);
    expect((await second.send('DELETE', '/mcp', session)).status).toBe(404);
    expect(await statusOf(second, session)).toBe(404);
    expect(second.core.sessions).toEqual([]);
  });

  it('that is deleted during the handshake is not resumed', async () => {
    const { first, second } = await two();
    const session = await first.initialize();
    let restored = (_isRestored: boolean) => {};
    second.core.onRestore = () =>
      new Promise((resolve) => {
        restored = resolve;
      });
    const waiting = second.post(request(1), session);
    await expect.poll(() => second.core.sessions).toHaveLength(1);
    expect((await second.send('DELETE', '/mcp', session)).status).toBe(204);
    restored(true);
    expect((await waiting).status).toBe(404);
    expect([second.front.sessions, second.core.last.closed]).toEqual([0, 1]);
  });

  it('has its own share of the requests of the token from the first request on', async () => {
    const { first, second } = await two();
    const sessions = await Promise.all(Array.from({ length: 20 }, () => first.initialize()));
    // Requests with unknown ids have used up what all of them share.
    await Promise.all(
      Array.from({ length: 150 }, (_, n) => second.post(request(n), { 'mcp-session-id': `unknown ${n}` })),
    );
    const answers = await Promise.all(sessions.map((session) => statusOf(second, session)));
    expect(answers).toEqual(Array(20).fill(200));
  });

  it('is resumed at the same process after it was idle', async () => {
    const { http, session } = await inSession();
    http.clock.advance(30 * 60_000);
    expect(http.front.sessions).toBe(0);
    expect(await statusOf(http, session)).toBe(200);
    expect(http.core.last.isResumed).toBe(true);
  });

  it('has a GET stream, and resumes that of the other process with all that it missed here', async () => {
    const { first, second } = await two();
    const session = await first.initialize('2025-11-25');
    const lost = await first.listen(session);
    first.core.last.stream?.send(json(notification('one')));
    await lost.next();
    const { lastEventId } = (await lost.next()) ?? {};
    const listening = await second.listen({ ...session, 'last-event-id': lastEventId });
    second.core.last.stream?.send(json(notification('two')));
    expect((await listening.next())?.data).toContain('two');
  });
});

describe('the record of a session', () => {
  /** Two processes of a cluster. */
  async function clustered() {
    const clock = new FakeClock();
    const now = () => clock.now();
    const records = new SharedRecords();
    const first = await serving({ clock, records, ids: idsOf('aaaaaaaaaa', { now }) });
    const second = await serving({ clock, records, ids: idsOf('bbbbbbbbbb', { now }) });
    return { first, second, records };
  }
  const subscribe = (uri: string) => request(1, 'resources/subscribe', { uri });

  it('F350: makes a deleted session unknown at every process', async () => {
    const { first, second } = await clustered();
    const session = await first.initialize();
    expect((await first.send('DELETE', '/mcp', session)).status).toBe(204);
    expect(await statusOf(second, session)).toBe(404);
    expect((await second.send('DELETE', '/mcp', session)).status).toBe(404);
    expect(second.core.sessions).toEqual([]);
  });

  it('F351: has the last log level and the subscriptions, also of a client that has moved twice', async () => {
    const { first, second, records } = await clustered();
    const session = await first.initialize();
    await first.post(request(1, 'logging/setLevel', { level: 'debug' }), session);
    await first.post(request(1, 'logging/setLevel', { level: 'error' }), session);
    for (const uri of ['x://1', 'x://2', 'x://3']) await first.post(subscribe(uri), session);
    await first.post(request(1, 'resources/unsubscribe', { uri: 'x://2' }), session);
    await second.post(subscribe('x://4'), session);
    expect(second.core.last.state).toEqual({ level: 'error', uris: ['x://1', 'x://3'] });
    const now = () => first.clock.now();
    const third = await serving({ clock: first.clock, records, ids: idsOf('cccccccccc', { now }) });
    await third.post(request(1), session);
    expect(third.core.last.state).toEqual({ level: 'error', uris: ['x://1', 'x://3', 'x://4'] });
  });

  it('has the subscriptions of a batch', async () => {
    const { first, second } = await clustered();
    const session = await first.initialize('2025-03-26');
    await first.post(JSON.stringify([subscribe('x://1'), { ...subscribe('x://2'), id: 2 }]), session);
    await second.post(request(1), session);
    expect(second.core.last.state).toEqual({ uris: ['x://1', 'x://2'] });
  });

  it('is written when the state changes, and again by use after a tenth of the idle time', async () => {
    const { first, records } = await clustered();
    const session = await first.initialize();
    await first.post(request(1), session);
    await first.post(request(1, 'logging/setLevel', { level: 'loud' }), session);
    await first.post(request(1, 'resources/unsubscribe', { uri: 'x://1' }), session);
    expect(records.writes).toBe(0);
    await first.post(subscribe('x://1'), session);
    await first.post(subscribe('x://1'), session);
    await first.post(request(1), session);
    expect(records.writes).toBe(1);
    first.clock.advance(3 * 60_000);
    await first.post(request(1), session);
    expect(records.writes).toBe(2);
  });

  it('does not keep more URIs than a record can have', async () => {
    const { first, records } = await clustered();
    const session = await first.initialize();
    for (const n of [1, 2, 3, 4, 5]) await first.post(subscribe(`x://${n}/${'a'.repeat(5_000)}`), session);
    const [state] = [...records.states.values()];
    expect(state !== 'deleted' && state?.uris.map((uri) => uri[4])).toEqual(['3', '4', '5']);
  });
});

describe('a stream of another process', () => {
  async function lostStream(message: object, revision = '2025-11-25') {
    const { first, second } = await two();
    const session = await first.initialize(revision);
    first.core.hold(json(notification('notifications/progress')));
    const broken = await first.postForEvents({ ...message }, session);
    const { lastEventId } = (await broken.next()) ?? {};
    broken.response.destroy();
    return { second, session: { ...session, 'last-event-id': lastEventId } };
  }

  it('F312: ends with an answer that says that the fate of the call is unknown', async () => {
    const { second, session } = await lostStream({ ...request('x'), method: 'tools/call' });
    const [event, ...others] = await (await second.listen(session)).rest();
    expect(others).toEqual([]);
    expect(JSON.parse(event?.data ?? '')).toEqual({
      jsonrpc: '2.0',
      id: 'x',
      result: {
        content: [{ type: 'text', text: expect.stringContaining('Whether the call took effect is unknown') }],
        isError: true,
        _meta: { 'trunkline/failure': LOST },
      },
    });
  });

  it.each([
    ['another method', request('9007199254740993', 'resources/read')],
    ['a call that was to become a task', request('9007199254740993', 'tools/call', { task: {} })],
  ])('ends with an error for %s, under the id as the client wrote it', async (_what, message) => {
    const { second, session } = await lostStream(message, '2025-06-18');
    const [event] = await (await second.listen(session)).rest();
    expect(JSON.parse(event?.data ?? '')).toEqual({
      jsonrpc: '2.0',
      id: '9007199254740993',
      error: { code: -32603, message: expect.any(String), data: LOST },
    });
  });

  it('ends at no other session, and with no changed id', async () => {
    const { second, session } = await lostStream(request(1));
    const other = await second.initialize();
    const { 'last-event-id': lastEventId = '' } = session;
    expect((await second.send('GET', '/mcp', { ...session, ...other })).status).toBe(400);
    const changed = { ...session, 'last-event-id': lastEventId.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')) };
    expect((await second.send('GET', '/mcp', changed)).status).toBe(400);
  });
});

describe('a request that a proxy sends again, because another process did not answer', () => {
  const AGAIN = { 'trunkline-lost': '1' };

  it('F313: is not served, and its client learns that its fate is unknown', async () => {
    const { first, second } = await two();
    const session = await first.initialize();
    const answer = await second.post('{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call"}', {
      ...session,
      ...AGAIN,
    });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json']);
    expect(answer.text).toContain('"id":9007199254740993,"result":');
    expect(JSON.parse(answer.text).result._meta).toEqual({ 'trunkline/failure': LOST });
    expect(second.core.sessions).toEqual([]);
  });

  it('has `resultType` in the revision that requires it', async () => {
    const http = await serving();
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'x' };
    const answer = await http.post(request(1, 'tools/call', { name: 'x', _meta }), { ...headers, ...AGAIN });
    expect(JSON.parse(answer.text).result).toMatchObject({ resultType: 'complete', isError: true });
    expect(http.core.sessions).toEqual([]);
  });

  it.each(['tools/list', 'resources/read', 'ping'])('is served if it only reads: %s', async (method) => {
    const { first, second } = await two();
    const session = await first.initialize();
    const answer = await second.post(request(1, method, { a: 1 }), { ...session, ...AGAIN });
    expect(JSON.parse(answer.text).result).toEqual({ echo: { a: 1 } });
  });

  it('opens a session, because the answer to the first `initialize` is lost', async () => {
    const http = await serving();
    expect(await http.initialize('2025-11-25', AGAIN)).toHaveProperty('mcp-session-id');
  });

  it('is dropped if it is about a request that the other process has lost', async () => {
    const { first, second } = await two();
    const session = await first.initialize();
    for (const message of [
      notification('notifications/cancelled', { requestId: 1 }),
      { jsonrpc: '2.0', id: 1, result: {} },
    ])
      expect((await second.post(message, { ...session, ...AGAIN })).status).toBe(202);
    expect(second.core.sessions).toEqual([]);
    expect((await second.post(notification('notifications/initialized'), { ...session, ...AGAIN })).status).toBe(202);
    expect(second.core.last.bodies).toHaveLength(1);
  });

  it('is answered as a batch if it is one', async () => {
    const { http, session } = await inSession('2025-03-26');
    const batch = JSON.stringify([request(1), request(2, 'tools/list'), notification('n')]);
    const answer = await http.post(batch, { ...session, ...AGAIN });
    expect(JSON.parse(answer.text).map(({ id }: { id: number }) => id)).toEqual([1, 2]);
  });

  it('needs the token', async () => {
    const http = await serving();
    const answer = await http.post(request(1), { ...AGAIN, authorization: `Bearer ${TOKEN}x` });
    expect(answer.status).toBe(401);
  });
});
