import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { MirroredParam } from '../../../src/wire/mcp/mirrored-params.js';
import { FakeClock } from '../../support/fake-clock.js';
import { until } from '../../support/processes.js';
import { bytesOf, flush } from '../../support/wire.js';
import { progressOf } from '../stdio/bridging.js';
import { connect, dial, endAll, events, type Got, INITIALIZED, json, serve, status } from './remote-server.js';

afterEach(endAll);

const resultOf = ({ message }: Got, result: object = { n: 1 }) => ({ jsonrpc: '2.0', id: message.id, result });

/** A server that treats tool calls as the test says. */
function serveCalls(onCall: (got: Got, count: number) => unknown, ...rest: ['modern'] | []) {
  let count = 0;
  return serve(
    (got) => {
      if (got.message.method !== 'tools/call') return undefined;
      count += 1;
      return onCall(got, count) ?? true;
    },
    ...rest,
  );
}

describe('a call over HTTP', () => {
  it('is answered with JSON, which may have several lines', async () => {
    const { origin, of } = await serveCalls((got) => json(got.response, JSON.stringify(resultOf(got), null, 2)));
    const { call, connection } = await connect(origin);
    expect(await call().done.then((told) => JSON.parse(told))).toEqual({ n: 1 });
    expect(of('tools/call')[0]?.headers).toMatchObject({
      'mcp-session-id': 'session-1',
      'mcp-protocol-version': '2025-11-25',
      'content-type': 'application/json',
    });
    expect(connection.revision).toBe('2025-11-25');
  });

  it('is answered with a stream of progress, a request of the server and the answer', async () => {
    const { origin, got: all } = await serveCalls((got) => {
      const { id } = got.message;
      events(got.response, progressOf(id, 1), { jsonrpc: '2.0', id: 's-1', method: 'roots/list' });
      void until('the answer to the server', () => all.some(({ message }) => message.id === 's-1')).then(() => {
        events(got.response, resultOf(got));
        got.response.end();
      });
    });
    const { call, requests } = await connect(origin);
    const { done, listener } = call();
    await until('the request', () => requests.length === 1);
    expect(requests[0]?.cause).toBe(listener);
    requests[0]?.succeed(bytesOf('{"roots":[]}'));
    expect(await done).toBe('{"n":1}');
    expect(listener.reports).toHaveLength(1);
    const posted = all.find(({ message }) => message.id === 's-1');
    expect(posted?.message).toEqual({ jsonrpc: '2.0', id: 's-1', result: { roots: [] } });
  });

  it('goes on where its stream broke off', async () => {
    const { origin, of } = await serve((got) => {
      const { message, method, headers, response } = got;
      if (message.method === 'tools/call') {
        events(response, 'id: e-1\nretry: 1\ndata:\n\n');
        response.end();
        return true;
      }
      if (method !== 'GET' || headers['last-event-id'] === undefined) return undefined;
      return events(response, resultOf(of('tools/call')[0] ?? got));
    });
    const { call } = await connect(origin);
    expect(await call().done).toBe('{"n":1}');
    expect(of('GET').map(({ headers }) => headers['last-event-id'])).toContain('e-1');
  });

  it('may have run if its stream cannot be resumed, because the credentials expired meanwhile', async () => {
    const { origin } = await serve(({ message, method, headers, response }) => {
      if (message.method === 'tools/call') {
        events(response, 'id: e-1\nretry: 1\ndata:\n\n');
        response.end();
        return true;
      }
      return method === 'GET' && headers['last-event-id'] !== undefined ? status(response, 401) : undefined;
    });
    const { call } = await connect(origin);
    expect(await call().done).toMatch(/^login_required(?! unsent)/);
  });

  /** A server that forgets a session once it has served a call, and refuses everything in it from then on. */
  async function serveForgetful(refuse: (got: Got) => unknown) {
    const sessions: { calls: number }[] = [];
    const served = await serve((got) => {
      const { message, headers, response } = got;
      if (message.method === 'initialize') {
        sessions.push({ calls: 0 });
        return json(response, resultOf(got, INITIALIZED), { 'mcp-session-id': String(sessions.length) });
      }
      const session = sessions[Number(headers['mcp-session-id']) - 1];
      if (session === undefined || message.id === undefined) return undefined;
      if (session.calls > 0) return refuse(got);
      if (message.method !== 'tools/call') return undefined;
      session.calls += 1;
      return json(response, resultOf(got, { session: sessions.length }));
    });
    return { ...served, sessions };
  }

  const errorOf = ({ message: { id } }: Got, code: number, message: string) => ({
    ...{ jsonrpc: '2.0', id },
    error: { code, message },
  });

  it.each<[string, (got: Got) => unknown]>([
    ['404', ({ response }) => status(response, 404)],
    ['401 to accepted credentials', ({ response }) => status(response, 401)],
    ['403', ({ response }) => status(response, 403)],
    ['422', ({ response }) => status(response, 422)],
    ['503', ({ response }) => status(response, 503)],
    ['an error about the session', (got) => json(got.response, errorOf(got, -32_001, 'Session not found'))],
    ['an error in a stream', (got) => events(got.response, errorOf(got, -32_600, 'no')) && got.response.end()],
  ])('F232: is sent again in a new session if the server has forgotten the old one: %s', async (_, refuse) => {
    const { origin, sessions } = await serveForgetful(refuse);
    const { call, told, connection } = await connect(origin, { headers: { authorization: 'Bearer good' } });
    const ends = [await call().done, await call().done, await call().done];
    expect(ends).toEqual(['{"session":1}', '{"session":2}', '{"session":3}']);
    expect([told, sessions.length, connection.counters.forgottenSessions]).toEqual([[], 3, 2]);
  });

  it('F232: may have run if the server answers 500 to all in the session, and the next one is served in another', async () => {
    const { origin } = await serveForgetful(({ response }) => status(response, 500));
    const { call } = await connect(origin);
    expect([await call().done, await call().done, await call().done]).toEqual([
      ...['{"session":1}', 'connection_lost sent', '{"session":2}'],
    ]);
  });

  it.each([
    [-32_000, 'Connection closed'],
    [-32_001, 'Request timed out'],
  ])('F232: is not sent again after an error that a server gives during a call, such as %s', async (code, message) => {
    const { origin, sessions, of } = await serveForgetful((got) => json(got.response, errorOf(got, code, message)));
    const { call } = await connect(origin);
    const ends = [await call().done, await call().done, await call().done];
    expect(ends).toEqual(['{"session":1}', expect.stringContaining(message), '{"session":2}']);
    expect([sessions.length, of('tools/call').length]).toEqual([2, 3]);
  });

  it.each([400, 403, 404, 500])('is refused alone with %s if the session serves other requests', async (code) => {
    const { origin, of } = await serveCalls(({ response }) =>
      response.writeHead(code).end('{"detail":"no such folder"}'),
    );
    const { call, told } = await connect(origin);
    expect(await call().done).toMatch(code === 500 ? 'unavailable sent' : 'refused unsent');
    expect(told).toEqual([]);
    expect(of('initialize')).toHaveLength(code === 404 ? 2 : 1);
    expect(of('tools/call')).toHaveLength(code === 404 ? 2 : 1);
  });

  it('F232: is unsent and ends the connection if the server opens no other session', async () => {
    let opened = 0;
    const { origin } = await serve(({ message, response }) => {
      if (message.method === 'initialize') opened += 1;
      return message.method === 'tools/call' || opened > 1 ? status(response, 404) : undefined;
    });
    const { call, told } = await connect(origin);
    expect(await call().done).toBe('exited unsent');
    await until('the end', () => told.length > 0);
    expect(told).toEqual(['lost: it does not know the session anymore (server)']);
  });

  it('F236: is not authorized after 401, and the connection is blocked', async () => {
    const { origin } = await serve(({ message, response }) =>
      message.method === 'tools/call' || message.method === 'ping' ? status(response, 401) : undefined,
    );
    const { call, told } = await connect(origin, { headers: { authorization: 'Bearer old' } });
    expect(await call().done).toBe('login_required unsent');
    await until('the end', () => told.length > 0);
    expect(told).toEqual(['lost: it answers HTTP 401 to the headers of the configuration (blocked)']);
  });

  it.each([429, 503])('F233: is sent again after %s, once the server wants it again', async (code) => {
    const { origin, of } = await serveCalls((got, count) =>
      count === 1 ? status(got.response, code, { 'retry-after': '0' }) : json(got.response, resultOf(got)),
    );
    const { call } = await connect(origin);
    expect(await call().done).toBe('{"n":1}');
    expect(of('tools/call')).toHaveLength(2);
  });

  it('F233: is unsent if the connection ends while the server wants a pause', async () => {
    const { origin, of } = await serveCalls(({ response }) => status(response, 503, { 'retry-after': '5' }));
    const { call, connection } = await connect(origin);
    const { done } = call();
    await until(
      'the refusal',
      () => of('tools/call').length === 1 && of('tools/call')[0]?.response.writableFinished === true,
    );
    await flush();
    connection.close('stopped');
    expect(await done).toBe('stopped unsent');
  });

  it('fails as unsent if the server wants a pause that is too long', async () => {
    const { origin, of } = await serveCalls(({ response }) => status(response, 503, { 'retry-after': '60' }));
    const { call, connection } = await connect(origin);
    expect(await call().done).toBe('unavailable unsent');
    expect(await call().done).toBe('unavailable unsent');
    expect([of('tools/call').length, connection.isClosed]).toEqual([1, false]);
  });

  it('may have been processed if the server answers 500', async () => {
    const { origin } = await serveCalls(({ response }) => status(response, 500));
    const { call, connection } = await connect(origin);
    expect(await call().done).toBe('unavailable sent');
    expect(connection.isClosed).toBe(false);
  });

  it.each([
    ['before', () => {}],
    ['during', (got: Got) => events(got.response, ': begun\n\n')],
  ])('F235: is lost when the connection breaks %s its answer, and the next one is served', async (_, begin) => {
    const { origin } = await serveCalls((got, count) => {
      if (count > 1) return json(got.response, resultOf(got));
      begin(got);
      setImmediate(() => got.response.socket?.resetAndDestroy());
      return true;
    });
    const { call } = await connect(origin);
    expect(await call().done).toBe('connection_lost sent');
    expect(await call().done).toBe('{"n":1}');
  });

  it('F235: is lost when its answer stops for five minutes', async () => {
    const { origin, of } = await serveCalls((got) => events(got.response, progressOf(got.message.id, 1)));
    const clock = new FakeClock();
    const { call } = await connect(origin, { clock });
    const { done, listener } = call();
    await until('the beginning of the answer', () => listener.reports.length === 1);
    clock.advance(299_999);
    events(of('tools/call')[0]?.response as Got['response'], progressOf(of('tools/call')[0]?.message.id, 2));
    await until('more of the answer', () => listener.reports.length === 2);
    clock.advance(299_999);
    await flush();
    expect(listener.told).toEqual([]);
    clock.advance(1);
    expect(await done).toBe('connection_lost sent');
  });

  it('F231: is unreachable and unsent when the server is gone', async () => {
    const { origin, server, of } = await serve(() => undefined);
    const { call, told } = await connect(origin);
    await until('the end of the handshake', () => of('GET').length === 1);
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    expect(await call().done).toBe('unreachable unsent');
    await until('the end', () => told.length > 0);
    expect(told).toEqual(['lost: the connection is refused (ECONNREFUSED) (network)']);
  });

  const mismatch = (got: Got) => {
    const error = { code: -32020, message: 'Header mismatch: Mcp-Param-Region' };
    got.response.writeHead(400, { 'content-type': 'application/json' });
    return got.response.end(JSON.stringify({ jsonrpc: '2.0', id: got.message.id, error }));
  };

  it('F260: is sent again with the headers that the server wants, once the tools are read again', async () => {
    const { origin, of } = await serveCalls(
      (got) => (got.headers['mcp-param-name'] === 'x' ? json(got.response, resultOf(got)) : mismatch(got)),
      'modern',
    );
    let params: MirroredParam[] = [];
    const rereadTools = async () => {
      params = [{ header: 'Name', path: ['of'] }];
    };
    const { call } = await connect(origin, { era: 'modern', paramsOf: () => params, rereadTools });
    expect(await call({ of: 'x' }).done).toBe('{"n":1}');
    expect(of('tools/call')).toHaveLength(2);
  });

  it('is refused if the server wants other headers again', async () => {
    let reads = 0;
    const rereadTools = async () => {
      reads += 1;
    };
    const { origin, of } = await serveCalls(mismatch, 'modern');
    const { call } = await connect(origin, { era: 'modern', rereadTools });
    expect(await call().done).toBe('refused unsent');
    expect([of('tools/call').length, reads]).toEqual([2, 1]);
  });

  it('brings 10 MiB', async () => {
    const text = 'x'.repeat(10 * 1024 * 1024);
    const { origin } = await serveCalls((got) => json(got.response, resultOf(got, { text })));
    const { call } = await connect(origin, { maxFrameBytes: 16 * 1024 * 1024 });
    expect((await call().done).length).toBe(text.length + '{"text":""}'.length);
  });

  it.each([
    ['JSON', (got: Got, text: string) => json(got.response, resultOf(got, { text }))],
    ['an event', (got: Got, text: string) => events(got.response, resultOf(got, { text }))],
  ])('fails if its answer as %s is larger than the limit', async (_, answer) => {
    const { origin } = await serveCalls((got) => answer(got, 'x'.repeat(100_000)));
    const { call } = await connect(origin);
    expect(await call().done).toBe('response_too_large sent');
  });
});

describe('a redirect', () => {
  it('is followed within the origin, with the credentials', async () => {
    const { origin, of } = await serve(({ url, response }) =>
      url === '/old' ? status(response, 307, { location: '/new' }) : undefined,
    );
    await connect(`${origin}/old`, { headers: { authorization: 'Bearer s' } });
    expect(of('initialize').map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/old', 'Bearer s'],
      ['/new', 'Bearer s'],
    ]);
  });

  it('F234: is not followed to another origin', async () => {
    const other = await serve(() => undefined);
    const { origin } = await serve(({ response }) => status(response, 307, { location: other.origin }));
    const { outcome, log } = await dial(origin, { headers: { authorization: 'Bearer s' } });
    expect(outcome.kind).toBe('failed');
    expect(other.got).toEqual([]);
    expect(log[0]).toContain(`The server redirects to ${other.origin}.`);
  });
});

describe('a cancellation', () => {
  it.each([
    ['legacy', ['notifications/cancelled']],
    ['modern', []],
  ] as const)('ends the answer, and a %s server gets no other notice than its era has', async (era, notices) => {
    let isEnded = false;
    const { origin, of, got } = await serve((one) => {
      if (one.message.method !== 'tools/call') return undefined;
      one.response.on('close', () => {
        isEnded = true;
      });
      return events(one.response, ': begun\n\n');
    }, era);
    const { call } = await connect(origin, { era });
    const { sent, listener } = call();
    await until('the call', () => of('tools/call').length === 1);
    sent?.cancel();
    await until('the end of the answer', () => isEnded);
    expect(listener.told).toEqual(['cancelled sent']);
    await until('the notices', () => of('notifications/cancelled').length === notices.length);
    expect(got.some(({ headers }) => headers['mcp-method'] === 'tools/call')).toBe(era === 'modern');
  });
});

describe('a session', () => {
  it('F265: gets no call before the server has taken `initialized` and answered the GET, also with 404', async () => {
    const held: Got[] = [];
    const { origin, server, of } = await serve((got) => {
      if (got.message.method === 'tools/call') return json(got.response, resultOf(got));
      return got.message.method === 'notifications/initialized' || got.method === 'GET' ? held.push(got) : undefined;
    });
    const { call, told } = await connect(origin, { inMemory: server });
    const { done } = call();
    for (const code of [202, 404]) {
      await flush();
      expect([held.length, of('tools/call').length]).toEqual([1, 0]);
      held.pop()?.response.writeHead(code).end();
    }
    expect([await done, told]).toEqual(['{"n":1}', []]);
  });

  it('gets calls soon if the answer to the GET is held back', async () => {
    const { origin } = await serve((got) => {
      if (got.method === 'GET') return true;
      return got.message.method === 'tools/call' ? json(got.response, resultOf(got)) : undefined;
    });
    const { call } = await connect(origin);
    expect(await call().done).toBe('{"n":1}');
  });

  it('is deleted at its end', async () => {
    const { origin, of } = await serve(() => undefined);
    const { launched } = await connect(origin);
    await launched.end({ termAfterMs: 0, killAfterMs: 0 });
    expect(of('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['session-1']);
  });

  it.each([
    ['HTTP 500', ({ response }: Got) => status(response, 500), { retryAfterMs: 0, reason: /HTTP 500/ }],
    ['a reset', ({ response }: Got) => response.socket?.resetAndDestroy(), { retryAfterMs: 0, reason: /ECONNRESET/ }],
    [
      'a pause that it wants',
      ({ response }: Got) => status(response, 429, { 'retry-after': '60' }),
      { retryAfterMs: expect.closeTo(60_000, -4), reason: /wants no request/ },
    ],
  ])('F261: is not begun with a server that answers with %s, which decides no era', async (_, answer, expected) => {
    const { origin, of } = await serve((got) => answer(got) ?? true);
    const { outcome, era } = await dial(origin, { era: 'auto' });
    const { reason, retryAfterMs } = expected;
    expect(outcome).toMatchObject({
      kind: 'failed',
      fault: 'trouble',
      retryAfterMs,
      reason: expect.stringMatching(reason),
    });
    expect([era.begin(), of('server/discover').length]).toEqual([undefined, 1]);
  });

  it('is begun with a server that answers HTTP 500 to methods that it does not know', async () => {
    const { origin } = await serve(({ message, response }) =>
      message.method === 'server/discover' ? status(response, 500) : undefined,
    );
    const { connection, era } = await connect(origin, { era: 'auto' });
    expect([connection.revision, era.begin()]).toEqual(['2025-11-25', undefined]);
  });

  it('is not begun with a server that takes no connection', async () => {
    const { outcome } = await dial('http://127.0.0.1:1/', { era: 'auto' });
    expect(outcome).toMatchObject({
      kind: 'failed',
      fault: 'network',
      reason: expect.stringContaining('ECONNREFUSED'),
    });
  });
});

describe('the stream for messages that answer no request', () => {
  it('is opened again although the server refuses it for a while, and the lists count as changed', async () => {
    let opened = 0;
    const { origin, of } = await serve(({ method, response }) => {
      if (method !== 'GET') return undefined;
      opened += 1;
      if (opened === 2) return status(response, 400);
      events(response, ': open\nretry: 1\n\n');
      if (opened === 1) response.end();
      return true;
    });
    const { notified, told } = await connect(origin);
    await until('the stream is open again', () => of('GET').length === 3 && notified.length > 0);
    expect(notified).toEqual(['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`));
    expect(told).toEqual([]);
  });

  it('leaves nothing behind however often it is opened again', async () => {
    const warnings: string[] = [];
    const warned = ({ name, message }: Error) => void (name.startsWith('MaxListeners') && warnings.push(message));
    process.on('warning', warned);
    onTestFinished(() => void process.off('warning', warned));
    const { origin, of } = await serve(({ method, response }) => {
      if (method !== 'GET') return undefined;
      events(response, ': open\nretry: 1\n\n');
      response.end();
      return true;
    });
    await connect(origin);
    await until('the stream was opened often', () => of('GET').length > 20);
    expect(warnings).toEqual([]);
  });
});

describe('a server of revision 2024-11-05', () => {
  /** Answers on one stream, and names the endpoint that the test says. */
  async function serveSse(endpoint: (origin: string) => string, path = '/messages', isKnown = () => true) {
    let stream: Got['response'] | undefined;
    const served = await serve((got) => {
      const { method, url, message, response } = got;
      if (method === 'GET') {
        stream = response;
        return events(response, `event: endpoint\ndata: ${endpoint(served.origin)}\n\n`);
      }
      if (url !== path) return status(response, 405);
      if (!isKnown()) return status(response, 404);
      response.writeHead(202).end();
      const hello = { protocolVersion: '2024-11-05', capabilities: {}, serverInfo: { name: 's', version: '1' } };
      if (message.id !== undefined && stream !== undefined)
        events(stream, resultOf(got, message.method === 'initialize' ? hello : { n: 1 }));
      return true;
    });
    return served;
  }

  it.each(['sse', 'auto'] as const)('answers on its stream, with transport %s', async (transport) => {
    const { origin, got, of } = await serveSse(() => '/messages');
    const { call, connection, era } = await connect(origin, { transport, era: 'auto' });
    expect([connection.revision, era.source.kind]).toEqual(['2024-11-05', transport === 'sse' ? 'transport' : 'asked']);
    expect(await call().done).toBe('{"n":1}');
    if (transport === 'sse') expect(got[0]?.method).toBe('GET');
    expect(of('GET')).toHaveLength(1);
  });

  it('gets its messages below the folder of its URL if a proxy keeps that from it, and the log says where', async () => {
    const { origin } = await serveSse(() => '/messages', '/prefix/messages');
    const { call, log } = await connect(`${origin}/prefix/sse`, { transport: 'sse' });
    expect(await call().done).toBe('{"n":1}');
    expect(log).toEqual([
      'The server does not answer at /messages, which it names for messages. Trunkline tries /prefix/messages.',
    ]);
  });

  it('F232: that has forgotten the stream gets no call, and the connection ends', async () => {
    let isKnown = true;
    const { origin } = await serveSse(
      () => '/messages',
      '/messages',
      () => isKnown,
    );
    const { call, told } = await connect(origin, { transport: 'sse' });
    isKnown = false;
    expect(await call().done).toBe('exited unsent');
    await until('the end', () => told.length > 0);
    expect(told).toEqual(['lost: it does not know the session anymore (server)']);
  });

  it('gets no message at an endpoint of another origin', async () => {
    const other = await serve(() => undefined);
    const { origin } = await serveSse(() => `${other.origin}/messages`);
    const { outcome, log } = await dial(origin, { transport: 'sse' });
    expect(outcome.kind).toBe('failed');
    expect(other.got).toEqual([]);
    expect(log).toEqual([
      `The server wants its messages at ${other.origin}, which is another origin. Trunkline sends none.`,
    ]);
  });
});

describe('headersCommand', () => {
  it('runs once for requests that are refused at the same time, and both are sent again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headers-'));
    const runs = join(folder, 'runs');
    writeFileSync(runs, '');
    const script = join(folder, 'headers.cjs');
    writeFileSync(
      script,
      `const fs = require('node:fs'); fs.appendFileSync(${JSON.stringify(runs)}, 'x');
      console.log(JSON.stringify({ Authorization: 'Bearer ' + fs.readFileSync(${JSON.stringify(runs)}).length }));`,
    );
    try {
      const { origin } = await serveCalls((got) =>
        got.headers.authorization === 'Bearer 1' ? status(got.response, 401) : json(got.response, resultOf(got)),
      );
      const headersCommand = { line: `"${process.execPath}" "${script}"`, env: {} };
      const { call, secrets } = await connect(origin, { headersCommand });
      expect(await Promise.all([call().done, call().done])).toEqual(['{"n":1}', '{"n":1}']);
      expect(readFileSync(runs, 'utf8')).toBe('xx');
      expect(secrets).toEqual(['Bearer 1', 'Bearer 2']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('blocks the server if it fails', async () => {
    const { origin, got } = await serve(() => undefined);
    const { outcome } = await dial(origin, { headersCommand: { line: 'exit 3', env: {} } });
    const reason = '`headersCommand` ended with exit code 3';
    expect(outcome).toMatchObject({ kind: 'failed', fault: 'blocked', reason });
    expect(got).toEqual([]);
  });

  it('blocks the server if it gives the headers again that were refused', async () => {
    const { origin, got } = await serve(({ response }) => status(response, 401));
    const { outcome } = await dial(origin, { headersCommand: { line: 'echo {}', env: {} } });
    expect(outcome).toMatchObject({ kind: 'failed', fault: 'blocked', reason: expect.stringContaining('HTTP 401') });
    expect(got).toHaveLength(1);
  });
});
