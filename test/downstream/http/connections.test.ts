import { once } from 'node:events';
import * as net from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { initializeRequest, readToEnd, type Serving, serving } from './serving.js';

const INITIALIZE = initializeRequest('2025-11-25');

/** Sends a request with the token, and without a session, on the connection; resolves with the status. */
async function sendToken(http: Serving, socket: net.Socket): Promise<string | undefined> {
  const headers = Object.entries(http.headers()).map(([name, value]) => `${name}: ${value}\r\n`);
  return statusOf(socket, `DELETE /mcp HTTP/1.1\r\n${headers.join('')}\r\n`);
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
    expect((await http.post(INITIALIZE)).status).toBe(200);
  });

  it('are closed for each other first if they come from one address', async () => {
    const http = await serving({ bind: { host: 'localhost' }, limits: { maxConnections: 4 } });
    const addresses = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
    const hasOther = addresses.includes('::1');
    const other = net.connect(http.front.port, hasOther ? '::1' : '127.0.0.1').resume();
    await once(other, 'connect');
    const sockets = await silent(http, 6);
    await expect.poll(() => sockets.slice(0, 2).every(({ closed }) => closed)).toBe(true);
    // Where there is no IPv6, one address is both.
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
    expect((await http.post(INITIALIZE)).status).toBe(200);
  });

  it('is what a new one has to wait for if there is no other', async () => {
    const http = await serving({ limits: { maxConnections: 2 } });
    const clients = await silent(http, 2);
    for (const client of clients) expect(await sendToken(http, client)).toBe('405');
    expect(await readToEnd(await http.connect())).toBe('');
    expect(http.events).toContainEqual({ kind: 'http.connection-refused', address: '127.0.0.1' });
    clients[0]?.destroy();
    const retry = () =>
      http.post(INITIALIZE).then(
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
