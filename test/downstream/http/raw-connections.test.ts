import { once } from 'node:events';
import * as net from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { FairMemory } from '../../../src/wire/io/shared-limit.js';
import { json } from './scripted-core.js';
import {
  DEFAULT_LIMITS,
  type Headers,
  initializeRequest,
  inSession,
  notification,
  OTHER_TOKEN,
  readToEnd,
  request,
  type Serving,
  serving,
  TOKEN,
} from './serving.js';

const INITIALIZE = JSON.stringify(initializeRequest('2025-11-25'));

/** Short timeouts, so that the tests need not wait. Other tests check the defaults. */
const IMPATIENT = { headersTimeoutMs: 200, receiveTimeoutMs: 400, checkIntervalMs: 20 };
/** Longer ones, for requests that a busy machine has to read in time. */
const CALMER = { ...IMPATIENT, headersTimeoutMs: 2_000, receiveTimeoutMs: 2_000 };

describe('a connection', () => {
  it('F51: is closed when its headers come too slowly, a byte at a time', async () => {
    const http = await serving({ limits: IMPATIENT });
    const socket = await http.connect();
    const text = headOf(http, {}).repeat(10);
    let sent = 0;
    const drip = setInterval(() => {
      socket.write(text[sent] ?? 'x');
      sent += 1;
    }, 10);
    const answer = await readToEnd(socket);
    clearInterval(drip);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(http.core.endpoints).toEqual([]);
    const failure = { kind: 'http.connection-failed', code: 'ERR_HTTP_REQUEST_TIMEOUT', address: '127.0.0.1' };
    expect(http.events).toContainEqual(failure);
  });

  it('is closed when it says nothing at all', async () => {
    const http = await serving({ limits: IMPATIENT });
    expect(await readToEnd(await http.connect())).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('is closed when its body comes too slowly, while an answer may take as long as it likes', async () => {
    const { http, session } = await inSession(undefined, { limits: CALMER });
    http.core.onRequest = (_message, reply) => reply.send(json(notification('n')));
    const answered = await http.postForEvents(request(1), session);
    await answered.next();
    // This connection begins later and is closed as too slow. By then, the first one would have been closed too.
    const socket = await http.connect();
    socket.write(headOf(http, { 'content-length': '100' }));
    expect(await readToEnd(socket)).toMatch(/^HTTP\/1\.1 408 /);
    expect(answered.response.destroyed).toBe(false);
    http.clock.advance(15_000);
    expect(await answered.next()).toEqual({ comment: 'keep-alive' });
  });

  it('is closed when it has to wait for a slow body that was refused already', async () => {
    const http = await serving({ limits: CALMER });
    const socket = await http.connect();
    socket.write(headOf(http, { authorization: 'Bearer wrong', 'content-length': '100' }));
    const answer = await readToEnd(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer.match(/HTTP\/1\.1/g)?.length).toBeLessThanOrEqual(2);
  });

  it('can write the rest of a body that was refused already, though it asked to be closed then', async () => {
    const http = await serving({});
    const socket = await http.connect();
    const body = Buffer.alloc(DEFAULT_LIMITS.maxBodyBytes + 1, ' ');
    socket.write(headOf(http, { 'content-length': String(body.length) }).replace('keep-alive', 'close'));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 /);
    socket.write(body);
    // A reset connection would throw here.
    await readToEnd(socket);
  });

  it.each([
    ['garbage', 'garbage\r\n\r\n', '400'],
    ['headers over 16 KiB', `POST /mcp HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(16 * 1024)}\r\n\r\n`, '431'],
    ['no Host', 'POST /mcp HTTP/1.1\r\n\r\n', '400'],
    ['no Host in HTTP/1.0', 'POST /mcp HTTP/1.0\r\n\r\n', '403'],
    ['an empty Host', 'POST /mcp HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n', '403'],
    ['two lengths', 'POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', '400'],
    [
      'a length and chunks',
      'POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      '400',
    ],
    ['a bare line feed', 'POST /mcp HTTP/1.1\nHost: x\n\n', '400'],
  ])('is closed after %s', async (_what, bytes, status) => {
    const http = await serving();
    const socket = await http.connect();
    socket.write(bytes);
    expect((await readToEnd(socket)).split(' ')[1]).toBe(status);
    expect(http.core.endpoints).toEqual([]);
  });
});

describe('a body', () => {
  const FOUR_MIB = 4 * 1024 * 1024;

  it('F51: of 4 MiB is taken, and one of a byte more is not', async () => {
    const { http, session } = await inSession();
    const padded = (length: number) => Buffer.from(JSON.stringify(request(1)).padEnd(length));
    expect((await http.send('POST', '/mcp', session, padded(FOUR_MIB))).status).toBe(200);
    expect((await http.send('POST', '/mcp', session, padded(FOUR_MIB + 1))).status).toBe(413);
    expect(http.core.last.bodies.map(({ length }) => length)).toEqual([INITIALIZE.length, FOUR_MIB]);
  });

  it('over the limit is refused by its length alone', async () => {
    const http = await serving();
    const socket = await http.connect();
    socket.write(headOf(http, { 'content-length': String(FOUR_MIB + 1) }));
    const [head] = (await once(socket, 'data')) as [Buffer];
    expect(head.toString()).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('without a length is refused when it passes the limit', async () => {
    const http = await serving();
    const socket = await http.connect();
    socket.write(headOf(http, { 'transfer-encoding': 'chunked' }));
    const answered = once(socket, 'data') as Promise<[Buffer]>;
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    for (let count = 0; count < 65; count += 1) socket.write(chunk);
    expect((await answered)[0].toString()).toMatch(/^HTTP\/1\.1 413 /);
    expect(http.core.endpoints).toEqual([]);
  });

  describe('with pauses', () => {
    const LIMIT = FOUR_MIB;

    /** Sends all of a body but its last 10 bytes, and waits until they were read. */
    async function sendSlowly(http: Serving, bodies: FairMemory, bytes: number, headers: Headers = {}) {
      const socket = await http.connect();
      const before = bodies.used;
      socket.write(headOf(http, { ...headers, 'content-length': String(bytes + 10) }));
      socket.write('x'.repeat(bytes));
      await expect.poll(() => bodies.used).toBe(before + bytes);
      return socket;
    }

    /** A session, and the answer to a request in it. The body of the request has 1 MiB and comes in two pieces. */
    async function joining(http: Serving, token: string) {
      const authorization = `Bearer ${token}`;
      const session = await http.initialize('2025-06-18', { authorization });
      const body = Buffer.from(JSON.stringify(request(1)).padEnd(1024 * 1024));
      return () => http.send('POST', '/mcp', { ...session, authorization }, body);
    }

    it('F62: is refused when another token needs its memory, and the other body is read', async () => {
      const requestBodies = new FairMemory(0);
      const http = await serving({ requestBodies, limits: { maxPartialBytes: LIMIT } });
      const post = await joining(http, OTHER_TOKEN);
      const slow = [];
      for (let count = 0; count < 8; count += 1) slow.push(await sendSlowly(http, requestBodies, LIMIT / 8 - 10));
      const refused = readHead(slow[0]);
      expect((await post()).status).toBe(200);
      expect(await refused).toMatch(/^HTTP\/1\.1 503 .*\r\nretry-after: 1\r\n/is);
      expect(requestBodies.evictions).toBe(2);
      for (const socket of slow) socket.destroy();
      await expect.poll(() => requestBodies.used).toBe(0);
    });

    it('is refused when another session of the same token needs its memory', async () => {
      const requestBodies = new FairMemory(0);
      const http = await serving({ requestBodies, limits: { maxPartialBytes: LIMIT } });
      const post = await joining(http, TOKEN);
      const slow = [];
      // Invented sessions do not count as several sessions.
      for (let count = 0; count < 8; count += 1)
        slow.push(await sendSlowly(http, requestBodies, LIMIT / 8 - 10, { 'mcp-session-id': `invented-${count}` }));
      expect((await post()).status).toBe(200);
      expect(requestBodies.evictions).toBe(2);
    });

    it('is refused if it is the one that takes the most, and later it is not', async () => {
      const requestBodies = new FairMemory(0);
      const { http, session } = await inSession(undefined, { requestBodies, limits: { maxPartialBytes: LIMIT } });
      const slow = await sendSlowly(http, requestBodies, LIMIT / 4, { authorization: `Bearer ${OTHER_TOKEN}` });
      const body = Buffer.from(JSON.stringify(request(1)).padEnd(LIMIT));
      const refused = await http.send('POST', '/mcp', session, body);
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
      slow.destroy();
      await expect.poll(() => requestBodies.used).toBe(0);
      expect((await http.send('POST', '/mcp', session, body)).status).toBe(200);
      expect(requestBodies.used).toBe(0);
    });
  });

  it('in one piece takes nothing of the memory for slow ones', async () => {
    const requestBodies = new FairMemory(0);
    const { http, session } = await inSession(undefined, { requestBodies, limits: { maxPartialBytes: 0 } });
    expect((await http.post(request(1), session)).status).toBe(200);
    expect(requestBodies.evictions).toBe(0);
  });

  it.each(['gzip', 'br', 'deflate', 'identity, gzip', 'GZIP'])(
    'F51: in %s is refused, whatever it is',
    async (encoding) => {
      const http = await serving();
      expect((await http.post(INITIALIZE, { 'content-encoding': encoding })).status).toBe(415);
      expect(http.core.endpoints).toEqual([]);
    },
  );

  it('with line breaks between its tokens is one line for a server, to which each line is a message', async () => {
    const { http, session } = await inSession();
    const smuggled = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}';
    const body = `{"jsonrpc":"2.0","id":1,"method":"ping",\n"params":{"x":\r\n${smuggled}\n}}`;
    expect((await http.post(body, session)).status).toBe(200);
    expect(http.core.last.bodies.at(-1)).toBe(body.replace(/[\r\n]/g, ' '));
  });

  it('broken off reaches no server', async () => {
    const { http, session } = await inSession();
    const socket = await http.connect();
    socket.write(`${headOf(http, { ...session, 'content-length': '100' })}{"jsonrpc"`);
    socket.destroy();
    await http.post(request(2), session);
    expect(http.core.last.bodies).toHaveLength(2);
  });

  it('comes through one connection after the other', async () => {
    const http = await serving();
    const socket = await http.connect();
    const one = `${headOf(http, { 'content-length': String(INITIALIZE.length) })}${INITIALIZE}`;
    socket.write(one + one + one.replace('keep-alive', 'close'));
    const answers = await readToEnd(socket);
    expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(3);
    expect(http.core.sessions).toHaveLength(3);
  });

  it.each(['application/json', 'text/event-stream', 'application/json, text/event-stream;q=0.0'])(
    'whose answer could not be read gets 406: %s',
    async (accept) => {
      const http = await serving();
      expect((await http.post(INITIALIZE, { accept })).status).toBe(406);
      expect(http.core.endpoints).toEqual([]);
    },
  );

  it.each(['*/*', 'application/*, text/*', 'text/event-stream;q=0.5,application/json'])(
    'is taken with Accept %s',
    async (accept) => {
      const http = await serving();
      expect((await http.post(INITIALIZE, { accept })).status).toBe(200);
    },
  );
});

/** The beginning of the next response. */
async function readHead(socket: net.Socket | undefined): Promise<string> {
  if (socket === undefined) throw new Error('There is no connection');
  const [head] = (await once(socket, 'data')) as [Buffer];
  return head.toString();
}

/** The head of a POST. The body follows it. */
function headOf(http: Serving, more: Readonly<Record<string, string>>): string {
  return http.head('POST', { ...more, connection: 'keep-alive' });
}

/** Sends a request with the token and without a session on the connection. Resolves with the status. */
async function sendToken(http: Serving, socket: net.Socket): Promise<string | undefined> {
  return statusOf(socket, http.head('DELETE'));
}

async function statusOf(socket: net.Socket, request: string): Promise<string | undefined> {
  const answered = once(socket, 'data') as Promise<[Buffer]>;
  socket.write(request);
  return (await answered)[0].toString().split(' ')[1];
}

async function silent(http: Serving, count: number): Promise<net.Socket[]> {
  const sockets: net.Socket[] = [];
  for (let n = 0; n < count; n += 1) sockets.push((await http.connect()).resume());
  return sockets;
}

describe('connections that never send a token', () => {
  it('F73: do not keep a client out, however many they are: the oldest is closed for a new one', async () => {
    const http = await serving();
    const sockets = await silent(http, 300);
    const session = await http.initialize();
    await silent(http, 300);
    expect((await http.send('DELETE', '/mcp', session)).status).toBe(204);
    expect(http.events).toContainEqual({ kind: 'http.connection-evicted', address: '127.0.0.1' });
    expect(http.events.map(({ kind }) => kind)).not.toContain('http.connection-refused');
    await expect.poll(() => sockets[0]?.closed).toBe(true);
  });

  it('are as many as connections may be, so that clients can connect all at once', async () => {
    const http = await serving({ limits: { maxConnections: 8, requestsPerSecond: 100 } });
    const sockets = await silent(http, 8);
    for (const socket of sockets) expect(await sendToken(http, socket)).toBe('405');
    expect(http.events.map(({ kind }) => kind)).not.toContain('http.connection-evicted');
  });

  it.each([
    ['a wrong token', 'GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer wrong\r\n\r\n', '401'],
    ['a health check', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', '200'],
    ['a foreign Host', 'GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n', '403'],
  ])('make room although they have sent something: %s', async (_what, head, status) => {
    const http = await serving({ limits: { maxConnections: 2 } });
    const [socket] = await silent(http, 1);
    expect(await statusOf(socket as net.Socket, head.replace('PORT', String(http.front.port)))).toBe(status);
    await silent(http, 2);
    await expect.poll(() => socket?.closed).toBe(true);
    expect((await http.post(initializeRequest('2025-11-25'))).status).toBe(200);
  });

  it('are closed for each other first if they come from one address', async () => {
    const http = await serving({ bind: { host: 'localhost' }, limits: { maxConnections: 4 } });
    const addresses = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
    const hasOther = addresses.includes('::1');
    const other = net.connect(http.front.port, hasOther ? '::1' : '127.0.0.1').resume();
    await once(other, 'connect');
    const sockets = await silent(http, 6);
    await expect.poll(() => sockets.slice(0, 2).every(({ closed }) => closed)).toBe(true);
    // On a machine without IPv6, both names are one address.
    expect(other.closed).toBe(!hasOther);
    other.destroy();
  });
});

describe('a connection with an authenticated request', () => {
  it('F73: is never closed for another one', async () => {
    const http = await serving({ limits: { maxConnections: 4 } });
    const clients = await silent(http, 2);
    for (const client of clients) expect(await sendToken(http, client)).toBe('405');
    const strangers = await silent(http, 20);
    await expect.poll(() => strangers.filter(({ closed }) => closed)).toHaveLength(18);
    for (const client of clients) expect(await sendToken(http, client)).toBe('405');
    expect((await http.post(initializeRequest('2025-11-25'))).status).toBe(200);
  });

  it('is what a new one has to wait for if there is no other', async () => {
    const http = await serving({ limits: { maxConnections: 2 } });
    const clients = await silent(http, 2);
    for (const client of clients) expect(await sendToken(http, client)).toBe('405');
    expect(await readToEnd(await http.connect())).toBe('');
    expect(http.events).toContainEqual({ kind: 'http.connection-refused', address: '127.0.0.1' });
    clients[0]?.destroy();
    const retry = () =>
      http.post(initializeRequest('2025-11-25')).then(
        ({ status }) => status,
        (error: Error) => error.message,
      );
    await expect.poll(retry).toBe(200);
  });

  it('counts as such without authentication, once its Host was accepted', async () => {
    const http = await serving({ bind: { noAuth: true, tokens: [] }, limits: { maxConnections: 2 } });
    const [client] = (await silent(http, 1)) as [net.Socket];
    expect(await sendToken(http, client)).toBe('405');
    await silent(http, 5);
    expect(await sendToken(http, client)).toBe('405');
  });
});
