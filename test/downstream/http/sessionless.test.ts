import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { ReplyChannel } from '../../../src/downstream/transport.js';
import { RpcError, rpcErrorMessage } from '../../../src/wire/jsonrpc/message.js';
import { until } from '../../support/processes.js';
import { bytesOf, type Message } from '../../support/wire.js';
import { EventReader } from './event-reader.js';
import { json } from './scripted-core.js';
import {
  DEFAULT_LIMITS,
  type Headers,
  initializeRequest,
  inSession,
  OTHER_TOKEN,
  type Serving,
  serving,
} from './serving.js';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const META = { [VERSION]: '2026-07-28', [CAPABILITIES]: {} };

function modern(id: number | string, method: string, params: Message = {}): Message {
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta: META } };
}

/** Headers that a client sends with such a message. */
function headersFor({ method, params }: Message, more: Headers = {}): Headers {
  const name = params.name ?? params.uri ?? params.taskId;
  return { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': name, ...more };
}

function post(http: Serving, message: Message, more: Headers = {}, path = '/mcp') {
  return http.post(message, headersFor(message, more), path);
}

describe('a request without a session', () => {
  it('is served, opens no session, and the answer names none', async () => {
    const http = await serving();
    const answer = await post(http, modern(1, 'tools/list'));
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json']);
    expect(JSON.parse(answer.text)).toEqual({ jsonrpc: '2.0', id: 1, result: { echo: { _meta: META } } });
    expect(answer.headers['mcp-session-id']).toBeUndefined();
    expect(http.front.sessions).toBe(0);
  });

  it('has the same client as others of its token at its endpoint, and no other', async () => {
    const http = await serving();
    await post(http, modern(1, 'tools/list'));
    await post(http, modern(2, 'tools/list'));
    expect(http.core.endpoints).toEqual([undefined]);
    await post(http, modern(3, 'tools/list'), {}, '/mcp/files');
    await post(http, modern(4, 'tools/list'), {}, '/mcp/v/work');
    await post(http, modern(5, 'tools/list'), { authorization: `Bearer ${OTHER_TOKEN}` });
    expect(http.core.endpoints).toEqual([undefined, 'files', 'v/work', undefined]);
  });

  it.each([
    ['/mcp/unknown', 'There is no such server'],
    ['/mcp/v/unknown', 'There is no such view; the configuration names the views below `views:`'],
  ])('is not served at %s', async (path, message) => {
    const http = await serving();
    const answer = await post(http, modern(1, 'tools/list'), {}, path);
    expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([404, message]);
  });

  it.each(['unknown', 'of another client'])('ignores a session id and a last event: %s', async (id) => {
    const { http, session } = await inSession();
    const headers = { ...(id === 'unknown' ? { 'mcp-session-id': id } : session), 'last-event-id': http.eventId(0, 0) };
    const answer = await post(http, modern(1, 'tools/list'), headers);
    expect([answer.status, answer.headers['mcp-session-id']]).toEqual([200, undefined]);
    expect(http.core.sessions).toHaveLength(2);
  });

  it('is answered by its own POST while others with its id are in flight', async () => {
    const http = await serving();
    const replies = http.core.hold();
    const answers = [post(http, modern(1, 'tools/list')), post(http, modern(1, 'tools/list'))];
    await until('both are in flight', () => replies.length === 2);
    expect(replies.map(({ isShared }) => isShared)).toEqual([false, false]);
    replies[1]?.answer(json('{"answer":"second"}'));
    replies[0]?.answer(json('{"answer":"first"}'));
    const texts = (await Promise.all(answers)).map(({ text }) => text);
    expect(texts.sort()).toEqual(['{"answer":"first"}', '{"answer":"second"}']);
  });

  it('is answered on an event stream after progress, without ids to resume from', async () => {
    const http = await serving();
    http.core.onRequest = (_, reply) => {
      reply.send(json('{"progress":1}'));
      reply.answer(json('{"answer":1}'));
    };
    const message = modern(1, 'tools/call', { name: 'a' });
    const response = await http.begin('POST', '/mcp', headersFor(message), JSON.stringify(message));
    expect(response.headers['content-type']).toBe('text/event-stream');
    expect(response.headers['x-accel-buffering']).toBe('no');
    let text = '';
    for await (const chunk of response) text += chunk;
    expect(text).toBe('data: {"progress":1}\n\ndata: {"answer":1}\n\n');
  });
});

describe('closing the connection of a request without a session', () => {
  const call = modern(1, 'tools/call', { name: 'a' });

  it.each(['before an answer', 'of an event stream'])('cancels the request: %s', async (when) => {
    const http = await serving();
    const replies: ReplyChannel[] = [];
    let abandoned = 0;
    http.core.onRequest = (_, reply) => {
      replies.push(reply);
      reply.onAbandoned(() => {
        abandoned += 1;
        reply.withdraw();
      });
    };
    const socket = await http.connect();
    socket.write(rawPost(http, call));
    await until('the request is in flight', () => replies.length === 1);
    if (when === 'of an event stream') {
      replies[0]?.send(json('{"progress":1}'));
      await once(socket, 'data');
    }
    socket.destroy();
    await until('it was cancelled', () => abandoned === 1);
    expect(replies[0]?.isDisconnected).toBe(true);
    http.clock.advance(DEFAULT_LIMITS.sessionIdleMs);
    expect(http.core.last.closed).toBe(1);
  });

  it('F211: cancels the requests whose responses wait for that of another one, too', async () => {
    const http = await serving();
    const replies: ReplyChannel[] = [];
    const abandoned: number[] = [];
    http.core.onRequest = ({ id }, reply) => {
      replies.push(reply);
      reply.onAbandoned(() => {
        abandoned.push(id);
        reply.withdraw();
      });
    };
    const socket = await http.connect();
    socket.write([1, 2, 3].map((id) => rawPost(http, modern(id, 'tools/call', { name: 'a' }))).join(''));
    await until('the requests are in flight', () => replies.length === 3);
    replies[1]?.send(json('{"progress":1}'));
    socket.destroy();
    await until('the client is known to have left', () => abandoned.length === 3);
    http.clock.advance(DEFAULT_LIMITS.sessionIdleMs);
    expect([abandoned.sort(), http.core.last.closed, http.clock.pending]).toEqual([[1, 2, 3], 1, 0]);
  });

  it('says nothing about a request that was answered', async () => {
    const http = await serving();
    let abandoned = 0;
    http.core.onRequest = (_, reply) => {
      reply.onAbandoned(() => {
        abandoned += 1;
      });
      reply.answer(json('{"answer":1}'));
    };
    const socket = await http.connect();
    socket.write(rawPost(http, call));
    await once(socket, 'data');
    socket.destroy();
    await post(http, call);
    expect(abandoned).toBe(0);
  });
});

describe('a client without a session', () => {
  const IDLE_MS = DEFAULT_LIMITS.sessionIdleMs;

  it('is forgotten after some idle time, and known again with the next request', async () => {
    const http = await serving();
    await post(http, modern(1, 'tools/list'));
    http.clock.advance(IDLE_MS - 1);
    await post(http, modern(2, 'tools/list'));
    http.clock.advance(IDLE_MS - 1);
    expect(http.core.last.closed).toBe(0);
    http.clock.advance(1);
    expect(http.core.last.closed).toBe(1);
    await post(http, modern(3, 'tools/list'));
    expect(http.core.sessions.map(({ closed }) => closed)).toEqual([1, 0]);
  });

  it('is not forgotten while a request is in flight', async () => {
    const http = await serving({ limits: { streamAfterMs: 10 * IDLE_MS } });
    const replies = http.core.hold();
    const answer = post(http, modern(1, 'tools/list'));
    await until('it is in flight', () => replies.length === 1);
    http.clock.advance(2 * IDLE_MS);
    expect(http.core.last.closed).toBe(0);
    replies[0]?.answer(json('{}'));
    expect((await answer).status).toBe(200);
  });

  it('F160: makes room for others when there are too many, unless all are busy', async () => {
    const http = await serving({ limits: { maxSessions: 2 } });
    for (const key of ['a', 'b', 'c']) http.core.servers.add(key);
    await post(http, modern(1, 'tools/list'), {}, '/mcp/a');
    await post(http, modern(1, 'tools/list'), {}, '/mcp/b');
    await post(http, modern(1, 'tools/list'), {}, '/mcp/a');
    await post(http, modern(1, 'tools/list'), {}, '/mcp/c');
    expect(http.core.sessions.map(({ closed }) => closed)).toEqual([0, 1, 0]);
    http.core.onRequest = () => {};
    const unanswered = ['a', 'c'].map((key) => post(http, modern(1, 'tools/list'), {}, `/mcp/${key}`));
    await until('both are busy', () => http.core.sessions.every(({ bodies }, at) => at === 1 || bodies.length > 1));
    const answer = await post(http, modern(1, 'tools/list'), {}, '/mcp/b');
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '30']);
    await http.front.close();
    expect((await Promise.all(unanswered)).map(({ status }) => status)).toEqual([503, 503]);
  });

  it('can send the last message on a stream when the gateway ends', async () => {
    const http = await serving();
    const replies = http.core.hold(json('{"progress":1}'));
    const message = modern(1, 'subscriptions/listen');
    const events = new EventReader(await http.begin('POST', '/mcp', headersFor(message), JSON.stringify(message)));
    await events.next();
    http.core.last.onClose = () => replies[0]?.answer(json('{"answer":1}'));
    await http.front.close();
    expect(await events.rest()).toEqual([{ data: '{"answer":1}' }]);
  });
});

function rawPost(http: Serving, message: Message): string {
  const body = JSON.stringify(message);
  return `${http.head('POST', { ...headersFor(message), 'content-length': `${body.length}` })}${body}`;
}

describe('the request limit', () => {
  it('keeps what floods without sessions from who begins one', async () => {
    const http = await serving({ limits: { requestsPerSecond: 1, requestBurst: 4 } });
    let status = 200;
    for (let id = 0; status === 200; id += 1) ({ status } = await post(http, modern(id, 'tools/list')));
    expect(status).toBe(429);
    expect((await http.post(initializeRequest('2025-11-25'))).status).toBe(200);
  });
});

describe('a POST without a session', () => {
  it.each([
    [-32601, 404],
    [-32020, 400],
    [-32021, 400],
    [-32022, 400],
    [-32602, 200],
    [-32603, 200],
    [-32002, 200],
  ])('answered with the error %i has the status %i', async (code, status) => {
    const http = await serving();
    http.core.onRequest = (_, reply) => reply.answer(rpcErrorMessage(bytesOf('1'), new RpcError(code, 'no')));
    const answer = await post(http, modern(1, 'tools/list'));
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code]);
  });

  it('with a request that cannot be served has the status 400 and the error of its revision', async () => {
    const http = await serving();
    http.core.refusal = new RpcError(-32022, 'Unsupported', { supported: ['2026-07-28'] });
    const answer = await post(http, modern('a', 'tools/list'));
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toEqual({
      jsonrpc: '2.0',
      id: 'a',
      error: { code: -32022, message: 'Unsupported', data: { supported: ['2026-07-28'] } },
    });
    expect(http.core.sessions).toEqual([]);
  });

  it('with such a revision in its header only is refused', async () => {
    const http = await serving();
    const bodies = [
      { jsonrpc: '2.0', id: 7, method: 'tools/list' },
      { jsonrpc: '2.0', id: 7, method: 'tools/list', params: { _meta: { [CAPABILITIES]: {} } } },
    ];
    for (const body of bodies) {
      const answer = await http.post(body, headersFor({ ...body, params: {} }));
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, { id: 7, error: { code: -32602 } }]);
    }
  });

  it('may begin a session, whatever revision the header names', async () => {
    const http = await serving();
    const answer = await http.post(initializeRequest('2025-11-25'), { 'mcp-protocol-version': '2026-07-28' });
    expect([answer.status, typeof answer.headers['mcp-session-id']]).toEqual([200, 'string']);
  });

  it('with a notification is accepted without a body', async () => {
    const http = await serving();
    const headers = { 'mcp-protocol-version': '2026-07-28' };
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    for (const message of [cancelled, { ...cancelled, params: { requestId: 1, _meta: META } }]) {
      const answer = await http.post(message, headers);
      expect([answer.status, answer.text]).toEqual([202, '']);
    }
    // The id may belong to a request of another program.
    expect(http.core.sessions).toEqual([]);
  });

  it('with a notification passes it on only if it states its client', async () => {
    const http = await serving();
    const headers = { 'mcp-protocol-version': '2026-07-28' };
    const event = { jsonrpc: '2.0', method: 'x/event', params: { n: 1 } };
    const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, _meta: META } };
    for (const dropped of [event, progress]) expect((await http.post(dropped, headers)).status).toBe(202);
    expect(http.core.sessions).toEqual([]);
    const stated = { ...event, params: { ...event.params, _meta: META } };
    expect((await http.post(stated, headers)).status).toBe(202);
    expect(http.core.sessions.map(({ bodies }) => bodies)).toEqual([[JSON.stringify(stated)]]);
  });

  it.each([
    ['no JSON', 'no json', -32700],
    ['a batch', `[${JSON.stringify(modern(1, 'tools/list'))}]`, -32600],
    ['an answer', '{"jsonrpc":"2.0","id":1,"result":{}}', -32600],
  ])('with %s is refused', async (_, body, code) => {
    const http = await serving();
    const answer = await http.post(body, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' });
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, code]);
    expect(http.core.sessions).toEqual([]);
  });

  it('without JSON gets a parse error, also if it names no revision', async () => {
    const http = await serving();
    const answer = await http.post('no json');
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, -32700]);
  });

  it.each(['GET', 'DELETE'])('is the only way: %s is not allowed, with or without a session id', async (method) => {
    const { http, session } = await inSession();
    for (const headers of [{}, session]) {
      const answer = await http.send(method, '/mcp', { ...headers, 'mcp-protocol-version': '2026-07-28' });
      expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
    }
    expect(http.front.sessions).toBe(1);
  });
});
