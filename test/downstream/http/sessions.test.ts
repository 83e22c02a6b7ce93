import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { ReplyChannel } from '../../../src/downstream/transport.js';
import { json } from './scripted-core.js';
import { initializeRequest, inSession, notification, OTHER_TOKEN, request, serving } from './serving.js';

const MINUTE_MS = 60_000;

describe('a session', () => {
  it('F50: is begun by initialize alone', async () => {
    const http = await serving();
    expect((await http.post(request(1))).status).toBe(400);
    expect((await http.post(notification('notifications/initialized'))).status).toBe(400);
    expect((await http.post('[]')).status).toBe(400);
    expect((await http.post('no json')).status).toBe(400);
    expect((await http.post(JSON.stringify([initializeRequest('2025-03-26')]))).status).toBe(400);
    expect(http.core.endpoints).toEqual([]);
    await http.initialize();
    expect(http.front.sessions).toBe(1);
  });

  it('is not begun by a method that does not exist, which tells a client to fall back', async () => {
    const http = await serving();
    const answer = await http.post({ jsonrpc: '2.0', id: 'probe', method: 'unheard/of' });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toEqual({
      jsonrpc: '2.0',
      id: 'probe',
      error: { code: -32601, message: 'unheard of' },
    });
    expect(http.core.sessions).toEqual([]);
  });

  it.each(['unknown', '', 'x'.repeat(43)])('F50: that nobody began is not found: "%s"', async (id) => {
    const http = await serving();
    await http.initialize();
    for (const body of [request(1), notification('n'), initializeRequest('2025-11-25')]) {
      expect((await http.post(body, { 'mcp-session-id': id })).status).toBe(404);
    }
    expect((await http.send('GET', '/mcp', { 'mcp-session-id': id })).status).toBe(404);
    expect((await http.send('DELETE', '/mcp', { 'mcp-session-id': id })).status).toBe(404);
    expect(http.front.sessions).toBe(1);
  });

  it('is not needed for POST only', async () => {
    const http = await serving();
    for (const method of ['GET', 'DELETE']) {
      const answer = await http.send(method, '/mcp');
      expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
    }
    expect((await http.send('PUT', '/mcp')).headers.allow).toBe('POST, GET, DELETE');
  });

  it('is unknown to any other token, which cannot end it either', async () => {
    const { http, session } = await inSession();
    const stolen = { ...session, authorization: `Bearer ${OTHER_TOKEN}` };
    expect((await http.post(request(1), stolen)).status).toBe(404);
    expect((await http.send('GET', '/mcp', stolen)).status).toBe(404);
    expect((await http.send('DELETE', '/mcp', stolen)).status).toBe(404);
    expect((await http.post(request(1), session)).status).toBe(200);
  });

  it('F50: is one more than allowed: 503, and nothing is opened for it', async () => {
    const http = await serving({ limits: { requestBurst: 200 } });
    const [first] = await Promise.all(Array.from({ length: 100 }, () => http.initialize()));
    const answer = await http.post(initializeRequest('2025-11-25'));
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '30']);
    expect(http.core.sessions).toHaveLength(100);
    expect((await http.send('DELETE', '/mcp', first)).status).toBe(204);
    await http.initialize();
    expect(http.front.sessions).toBe(100);
  });

  it('F213: is over as soon as it begins when its client has left before, which does not know its id', async () => {
    const http = await serving();
    const begun: { answer: () => void; reply: ReplyChannel }[] = [];
    http.core.onInitialize = (answer, reply) => begun.push({ answer, reply });
    const begin = async () => {
      const socket = await http.connect();
      const body = JSON.stringify(initializeRequest('2025-11-25'));
      socket.write(`${http.head('POST', { 'content-length': `${body.length}` })}${body}`);
      await expect.poll(() => begun).toHaveLength(1);
      return { socket, ...begun.pop() };
    };
    const impatient = await begin();
    impatient.socket.destroy();
    await expect.poll(() => impatient.reply?.isDisconnected).toBe(true);
    impatient.answer?.();
    expect([http.front.sessions, http.core.last.closed]).toEqual([0, 1]);

    const patient = await begin();
    http.clock.advance(10_000);
    const [head] = (await once(patient.socket, 'data')) as [Buffer];
    expect(head.toString()).toContain('mcp-session-id: ');
    patient.socket.destroy();
    patient.answer?.();
    expect([http.front.sessions, http.core.last.closed]).toEqual([1, 0]);
  });

  it('is over once its client deletes it', async () => {
    const { http, session } = await inSession();
    const listening = await http.listen(session);
    http.core.onRequest = () => {};
    const waiting = http.post(request(1), session);
    await expect.poll(() => http.core.last.bodies).toHaveLength(2);
    const answer = await http.send('DELETE', '/mcp', session);
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(await listening.rest()).toEqual([]);
    expect((await waiting).status).toBe(404);
    expect(http.core.last.closed).toBe(1);
    expect(http.core.last.attached).not.toContain(undefined);
    expect((await http.send('DELETE', '/mcp', session)).status).toBe(404);
    expect((await http.post(request(1), session)).status).toBe(404);
  });

  it('is put aside after 30 minutes without a request', async () => {
    const { http, session } = await inSession();
    http.clock.advance(20 * MINUTE_MS);
    await http.post(request(1), session);
    http.clock.advance(30 * MINUTE_MS - 1);
    expect(http.core.last.closed).toBe(0);
    http.clock.advance(1);
    expect([http.core.last.closed, http.front.sessions]).toEqual([1, 0]);
    expect(http.events).toContainEqual({ kind: 'http.session-ended', reason: 'expired', sessions: 0 });
  });

  it('lasts while something is asked or listened to, however long', async () => {
    const { http, session } = await inSession();
    http.core.onRequest = (_message, reply) => reply.send(json(notification('n')));
    const asked = await http.postForEvents(request(1), session);
    http.clock.advance(90 * MINUTE_MS);
    const listening = await http.listen(session);
    http.core.onRequest = (message, reply) => reply.answer(json({ jsonrpc: '2.0', id: message.id, result: {} }));
    asked.response.destroy();
    http.clock.advance(90 * MINUTE_MS);
    expect((await http.post(request(2), session)).status).toBe(200);
    expect(listening.response.destroyed).toBe(false);
  });

  it('belongs to the endpoint where it was begun', async () => {
    const http = await serving();
    const whole = await http.initialize();
    const files = await http.initialize('2025-11-25', {}, '/mcp/files');
    expect(http.core.endpoints).toEqual([undefined, 'files']);
    expect((await http.post(request(1), files, '/mcp/files')).status).toBe(200);
    expect((await http.post(request(1), files)).status).toBe(404);
    expect((await http.post(request(1), whole, '/mcp/files')).status).toBe(404);
  });

  it('is opened at the endpoint of a view, and belongs to it', async () => {
    const http = await serving();
    const work = await http.initialize('2025-11-25', {}, '/mcp/v/work');
    expect(http.core.endpoints).toEqual(['v/work']);
    expect((await http.post(request(1), work, '/mcp/v/work')).status).toBe(200);
    expect((await http.post(request(1), work)).status).toBe(404);
  });

  it.each(['/mcp/none', '/mcp/..%2f..', '/mcp/__proto__', '/mcp/%E0%A4%A', '/mcp/files/more', '/'])(
    'cannot be begun at %s',
    async (path) => {
      const http = await serving();
      const answer = await http.post(initializeRequest('2025-11-25'), {}, path);
      expect(answer.status).toBe(404);
      expect(http.front.sessions).toBe(0);
      expect(answer.text).not.toContain('none');
    },
  );

  it('is not opened when its first message is refused', async () => {
    const http = await serving();
    const openSession = http.core.openSession.bind(http.core);
    http.core.openSession = (endpoint, caller) => {
      const session = openSession(endpoint, caller);
      if (session !== undefined) session.receive = () => json('{"jsonrpc":"2.0","id":null,"error":{}}');
      return session;
    };
    expect((await http.post(initializeRequest('2025-11-25'))).status).toBe(400);
    expect([http.front.sessions, http.core.last.closed]).toEqual([0, 1]);
  });
});

describe('MCP-Protocol-Version', () => {
  it.each(['2025-11-26', '1', '', '2025-11-25, 2025-06-18'])('%s is refused', async (revision) => {
    const { http, session } = await inSession();
    const headers = { ...session, 'mcp-protocol-version': revision };
    expect((await http.post(request(1), headers)).status).toBe(400);
    expect((await http.send('GET', '/mcp', headers)).status).toBe(400);
    expect((await http.send('DELETE', '/mcp', headers)).status).toBe(400);
    expect(http.front.sessions).toBe(1);
  });

  it.each(['2025-11-25', '2025-06-18', '2025-03-26', undefined])('%s is served', async (revision) => {
    const { http, session } = await inSession();
    expect((await http.post(request(1), { ...session, 'mcp-protocol-version': revision })).status).toBe(200);
  });

  it('is of no interest before the handshake', async () => {
    const http = await serving();
    expect((await http.post(initializeRequest('2025-11-25'), { 'mcp-protocol-version': 'any' })).status).toBe(200);
  });
});
