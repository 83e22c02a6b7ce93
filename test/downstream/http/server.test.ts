import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { METHODS } from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import * as tls from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allowedNames, checkBind, type HttpBind, HttpBindError } from '../../../src/downstream/http/bind.js';
import { createCertificate } from '../../support/certificate.js';
import { json } from './scripted-core.js';
import {
  initializeRequest,
  inSession,
  notification,
  readAnswer,
  readToEnd,
  request,
  serving,
  TOKEN,
} from './serving.js';

describe('the probes', () => {
  it('answer every client, under every host name', async () => {
    const http = await serving();
    const stranger = { authorization: undefined, host: '10.0.0.7:8080', origin: undefined };
    expect((await http.send('GET', '/healthz', stranger)).status).toBe(200);
    expect((await http.send('GET', '/readyz', stranger)).status).toBe(200);
    http.core.ready = false;
    expect((await http.send('GET', '/healthz', stranger)).status).toBe(200);
    expect((await http.send('GET', '/readyz', stranger)).status).toBe(503);
  });
});

describe('a method that the endpoint does not serve', () => {
  // Node closes the connection of a CONNECT request, because it asks for a tunnel.
  const served = ['POST', 'GET', 'DELETE', 'CONNECT'];

  it.each(METHODS.filter((method) => !served.includes(method)))(
    'is refused with the methods that it serves: %s',
    async (method) => {
      const http = await serving();
      for (const path of ['/mcp', '/mcp/files']) {
        const { status, headers } = await http.send(method, path);
        expect([status, headers.allow]).toEqual([405, 'POST, GET, DELETE']);
      }
    },
  );

  it('is refused only with the token and an allowed Host', async () => {
    const http = await serving();
    expect((await http.send('PROPFIND', '/mcp', { authorization: undefined })).status).toBe(401);
    expect((await http.send('PROPFIND', '/mcp', { host: 'evil.example' })).status).toBe(403);
  });
});

describe('the HTTP transport', () => {
  it('refuses to open where strangers would get in', async () => {
    await expect(serving({ bind: { host: '0.0.0.0' } })).rejects.toThrow(HttpBindError);
    await expect(serving({ bind: { host: '0.0.0.0', noAuth: true } })).rejects.toThrow(/whole network/);
  });

  it('serves others only under the names that are allowed', async () => {
    const http = await serving({ bind: { host: '0.0.0.0', allowedHosts: ['gateway.example:8080'] } });
    const statusAs = async (host: string) => (await http.post(initializeRequest('2025-11-25'), { host })).status;
    expect(await statusAs('Gateway.example:8080')).toBe(200);
    expect(await statusAs('gateway.example')).toBe(403);
    expect(await statusAs(`127.0.0.1:${http.front.port}`)).toBe(403);
  });

  it('fails with the reason when its port is taken', async () => {
    const http = await serving();
    await expect(serving({ bind: { port: http.front.port } })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  it('is on both loopback addresses as localhost, with one limit for both', async () => {
    const http = await serving({ bind: { host: 'localhost' }, limits: { maxConnections: 2 } });
    const { port } = http.front;
    expect(http.front.url).toBe(`http://localhost:${port}`);
    // On a machine without IPv6, both names are one address.
    const addresses = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
    const other = addresses.includes('::1') ? '::1' : '127.0.0.1';
    const socket = net.connect(port, other);
    await once(socket, 'connect');
    for (const client of [socket, await http.connect()]) {
      client.write(http.head('DELETE'));
      expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1\.1 405 /);
    }
    expect(await readToEnd(await http.connect())).toBe('');
    socket.write('garbage\r\n\r\n');
    expect(await readToEnd(socket)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('ends what is open when it closes, and is gone', async () => {
    const { http, session } = await inSession();
    const listening = await http.listen(session);
    http.core.onRequest = () => {};
    const waiting = http.post(request(1), session);
    await expect.poll(() => http.core.last.bodies).toHaveLength(2);
    const idle = await http.connect();
    await Promise.all([http.front.close(), http.front.close()]);
    // The call may have taken effect, so the client must not take this for a refusal.
    expect(JSON.parse((await waiting).text).result._meta['trunkline/failure']).toMatchObject({ outcome: 'unknown' });
    expect(await listening.rest()).toEqual([]);
    expect(http.core.last.closed).toBe(1);
    if (!idle.closed) await once(idle, 'close');
    expect(http.clock.pending).toBe(0);
    const refused = net.connect(http.front.port, '127.0.0.1');
    expect(((await once(refused, 'error')) as [NodeJS.ErrnoException])[0].code).toBe('ECONNREFUSED');
  });

  it('does not wait for a client that does not read', async () => {
    const http = await serving();
    const stalled = await http.listen(await http.initialize());
    stalled.response.pause();
    const sink = http.core.last.stream;
    const chunk = json(notification('n', { text: 'x'.repeat(64 * 1024) }));
    while ((sink?.unwrittenBytes ?? 0) < 1_000_000) sink?.send(chunk);
    let isClosed = false;
    const closed = http.front.close().then(() => {
      isClosed = true;
    });
    const late = net.connect(http.front.port, '127.0.0.1');
    await once(late, 'error');
    expect(isClosed).toBe(false);
    http.clock.advance(500);
    await closed;
  });
});

describe('TLS', () => {
  let folder: string;
  let pems: { cert: Buffer; key: Buffer };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trunkline-tls-'));
    const { certFile, keyFile } = createCertificate(folder);
    pems = { cert: await readFile(certFile), key: await readFile(keyFile) };
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('carries everything that plain HTTP does', async () => {
    const http = await serving({ bind: { https: pems } });
    expect(http.front.url).toBe(`https://127.0.0.1:${http.front.port}`);
    const ca = pems.cert;
    const send = async (headers: Record<string, string>, message: unknown) => {
      const { port } = http.front;
      const sent = https.request({
        host: '127.0.0.1',
        servername: 'localhost',
        port,
        ca,
        agent: false,
        method: 'POST',
        path: '/mcp',
      });
      for (const [name, value] of Object.entries(http.headers(headers))) sent.setHeader(name, value as string);
      sent.end(JSON.stringify(message));
      return readAnswer(((await once(sent, 'response')) as [Parameters<typeof readAnswer>[0]])[0]);
    };
    const answer = await send({ origin: `https://localhost:${http.front.port}` }, initializeRequest('2025-11-25'));
    expect(answer.status).toBe(200);
    expect((await send({ origin: `http://localhost:${http.front.port}` }, {})).status).toBe(403);
    http.core.onRequest = (message, reply) => {
      reply.send(json(notification('n')));
      reply.answer(json({ jsonrpc: '2.0', id: message.id, result: {} }));
    };
    const streamed = await send({ 'mcp-session-id': String(answer.headers['mcp-session-id']) }, request(1));
    expect(streamed.text.match(/^data: /gm)).toHaveLength(3);
  });

  it('is not spoken to in plain text', async () => {
    const http = await serving({ bind: { https: pems } });
    const socket = await http.connect();
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'close');
    await expect.poll(() => http.events.map(({ kind }) => kind)).toContain('http.connection-failed');
  });

  it('closes connections on which nothing comes for others, and none that has sent a token', async () => {
    const http = await serving({ bind: { https: pems }, limits: { maxConnections: 2 } });
    const ca = pems.cert;
    const connect = async () => {
      const socket = tls.connect({ host: '127.0.0.1', servername: 'localhost', port: http.front.port, ca });
      socket.on('error', () => {});
      await once(socket, 'secureConnect');
      return socket;
    };
    const sendToken = async (socket: net.Socket) => {
      socket.write(http.head('DELETE'));
      return String(await once(socket, 'data')).split(' ')[1];
    };
    const client = await connect();
    expect(await sendToken(client)).toBe('405');
    // A client without a handshake, and a client that sends only the handshake.
    for (const next of [() => http.connect(), connect]) {
      const stranger = (await next()).resume();
      const later = await connect();
      await expect.poll(() => stranger.closed).toBe(true);
      later.destroy();
      expect(await sendToken(client)).toBe('405');
    }
    client.destroy();
  });

  it('closes a connection on which no handshake comes', async () => {
    const http = await serving({ bind: { https: pems }, limits: { headersTimeoutMs: 100, checkIntervalMs: 20 } });
    await once(await http.connect(), 'close');
  });
});

const LOCAL: HttpBind = {
  host: 'localhost',
  port: 8080,
  tokens: [TOKEN],
  noAuth: false,
  allowedHosts: [],
  allowedOrigins: [],
};

describe('a bind', () => {
  it.each<[string, Partial<HttpBind>]>([
    ['on loopback with a token', {}],
    ['on loopback without authentication', { noAuth: true, tokens: [] }],
    ['on an address of 127.0.0.0/8', { host: '127.1.2.3' }],
    ['on ::1', { host: '::1', noAuth: true, tokens: [] }],
    ['for others with a token and a list of hosts', { host: '0.0.0.0', allowedHosts: ['gateway.example'] }],
    ['with names, addresses and ports', { allowedHosts: ['a.example:8080', '10.0.0.1', '[fd00::1]:80'] }],
    ['with origins as browsers send them', { allowedOrigins: ['https://a.example', 'http://localhost:6274'] }],
  ])('%s is fine', (_what, changes) => {
    expect(checkBind({ ...LOCAL, ...changes })).toBeUndefined();
  });

  it.each<[string, Partial<HttpBind>]>([
    ['would let the whole network in', { host: '0.0.0.0', noAuth: true, allowedHosts: ['a.example'] }],
    ['would let the whole network in', { host: '::', noAuth: true, allowedHosts: ['a.example'] }],
    ['would let the whole network in', { host: '', noAuth: true, allowedHosts: ['a.example'] }],
    ['would let the whole network in', { host: 'localhost.evil.example', noAuth: true, allowedHosts: ['a.example'] }],
    ['would let the whole network in', { host: '127.0.0.1.evil.example', noAuth: true, allowedHosts: ['a.example'] }],
    ['needs a token', { tokens: [] }],
    ['needs a token', { host: '0.0.0.0', tokens: [], allowedHosts: ['a.example'] }],
    ['A token must have', { tokens: ['secret'] }],
    ['A token must have', { tokens: [TOKEN, ''] }],
    ['A token must have', { tokens: [`${TOKEN}\n`] }],
    ['needs a list of allowed hosts', { host: '0.0.0.0' }],
    ['needs a list of allowed hosts', { host: '192.168.1.5' }],
    ['Allowed host', { allowedHosts: ['https://a.example'] }],
    ['Allowed host', { allowedHosts: ['*'] }],
    ['Allowed host', { allowedHosts: ['fd00::1'] }],
    ['Allowed origin', { allowedOrigins: ['a.example'] }],
    ['Allowed origin', { allowedOrigins: ['https://a.example/'] }],
    ['Allowed origin', { allowedOrigins: ['https://a.example:443'] }],
    ['Allowed origin', { allowedOrigins: ['null'] }],
    ['Allowed origin', { allowedOrigins: ['*'] }],
  ])('is refused, because %s: %j', (words, changes) => {
    const problem = checkBind({ ...LOCAL, ...changes });
    expect(problem?.message).toContain(words);
    expect(problem?.message).not.toContain(TOKEN);
  });
});

describe('the names that are let in', () => {
  it('are those of loopback, with the port and under our own scheme', () => {
    const { hosts, origins } = allowedNames({ ...LOCAL, allowedHosts: ['A.example'] }, 8080);
    expect([...hosts]).toEqual(['localhost:8080', '127.0.0.1:8080', '[::1]:8080', 'a.example']);
    expect(origins).toContain('http://localhost:8080');
    expect(origins).toContain('http://a.example');
  });

  it('go without the port where clients leave it out', () => {
    const https = { cert: Buffer.from('c'), key: Buffer.from('k') };
    expect(allowedNames({ ...LOCAL, https }, 443).hosts).toContain('localhost');
    expect(allowedNames({ ...LOCAL, https }, 80).hosts).not.toContain('localhost');
    expect(allowedNames(LOCAL, 80).origins).toContain('http://localhost');
  });

  it('are only the listed ones where others can reach us', () => {
    const bind = { ...LOCAL, host: '0.0.0.0', allowedHosts: ['a.example'], allowedOrigins: ['https://b.example'] };
    const { hosts, origins } = allowedNames(bind, 8080);
    expect([[...hosts], [...origins]]).toEqual([['a.example'], ['http://a.example', 'https://b.example']]);
  });
});
