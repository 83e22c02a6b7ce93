import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AgentOptions, createAgent } from '../../../src/host/http/agents.js';
import { sendRequest } from '../../../src/host/http/send-request.js';
import type { Clock } from '../../../src/wire/timing/clock.js';
import { certify } from '../../support/certificate.js';
import { FakeClock } from '../../support/fake-clock.js';
import { until } from '../../support/processes.js';

const PROXY_VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
let folder = '';
const cleanups: (() => void)[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'agents-'));
  const [ca, other] = ['ca', 'other'].map((name) => certify({ name }));
  const { cert, key } = certify({ name: 'localhost', host: 'localhost', ...(ca && { authority: ca }) });
  for (const [name, text = ''] of Object.entries({ 'ca.pem': ca?.cert, 'other.pem': other?.cert, cert, key }))
    writeFileSync(join(folder, name), text);
});

afterAll(() => rmSync(folder, { recursive: true }));

beforeEach(() => {
  for (const name of PROXY_VARIABLES) {
    vi.stubEnv(name, '');
    vi.stubEnv(name.toLowerCase(), '');
  }
});

afterEach(() => {
  vi.unstubAllEnvs();
  for (const cleanup of cleanups.splice(0)) cleanup();
});

function pem(name: string): string {
  return readFileSync(join(folder, name), 'utf8');
}

async function listen(server: Server | TcpServer): Promise<number> {
  server.listen(0, 'localhost');
  // Rejects where the name means no address of the machine.
  await once(server, 'listening');
  server.on('error', () => {});
  cleanups.push(() => {
    server.close();
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** A server that says which method it was asked with. */
async function startServer(isSecure: boolean): Promise<URL> {
  const answer = ({ method }: IncomingMessage, response: { end(text: string): void }) => response.end(`got ${method}`);
  const options = { key: pem('key'), cert: pem('cert') };
  const port = await listen(isSecure ? createTlsServer(options, answer) : createServer(answer));
  return new URL(`${isSecure ? 'https' : 'http'}://localhost:${port}/mcp`);
}

/** A proxy that opens tunnels, or refuses them with a status. Each tunnel, with what went through before it. */
async function startProxy(status = 200) {
  const tunnels: { readonly target: string | undefined; readonly headers: string[] }[] = [];
  const server = createServer((_, response) => response.writeHead(500).end('no tunnel'));
  server.on('connect', ({ url, headers }, socket) => {
    tunnels.push({ target: url, headers: Object.keys(headers) });
    socket.on('error', () => {});
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const [host, port] = (url ?? '').split(':');
    const onward = connect(Number(port), host, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
    socket.pipe(onward).pipe(socket);
  });
  return { url: `http://localhost:${await listen(server)}`, tunnels };
}

const REAL: Clock = {
  now: () => performance.now(),
  schedule: (ms, task) => {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
};

/** Posts a body, and resolves with the body of the answer. */
async function post(url: URL, options: AgentOptions = {}, clock: Clock = REAL): Promise<string> {
  const agent = createAgent(url, options);
  cleanups.push(() => agent.destroy());
  const { signal } = new AbortController();
  const headers = { authorization: 'Bearer secret' };
  return await text(await sendRequest(clock, { url, method: 'POST', headers, body: Buffer.from('{}'), agent, signal }));
}

describe('a proxy', () => {
  it.each([
    ['https', 'HTTPS_PROXY', true],
    ['http', 'HTTP_PROXY', false],
  ])('of the environment opens a tunnel to an %s server, and sees no header for it', async (_, variable, isSecure) => {
    const url = await startServer(isSecure);
    const proxy = await startProxy();
    vi.stubEnv(variable, proxy.url);
    expect(await post(url, isSecure ? { ca: pem('ca.pem') } : {})).toBe('got POST');
    expect(proxy.tunnels).toEqual([{ target: url.host, headers: ['host', 'proxy-connection'] }]);
  });

  it('of the environment is not used for hosts in NO_PROXY', async () => {
    const url = await startServer(false);
    const proxy = await startProxy();
    vi.stubEnv('HTTP_PROXY', proxy.url);
    vi.stubEnv('NO_PROXY', 'example.com,localhost');
    expect(await post(url)).toBe('got POST');
    expect(proxy.tunnels).toEqual([]);
  });

  it('of the configuration is used whatever the environment says, with its password', async () => {
    const url = await startServer(false);
    const proxy = await startProxy();
    vi.stubEnv('HTTP_PROXY', 'http://localhost:1');
    vi.stubEnv('NO_PROXY', '*');
    expect(await post(url, { proxy: proxy.url.replace('//', '//user:password@') })).toBe('got POST');
    expect(proxy.tunnels[0]?.headers).toContain('proxy-authorization');
  });

  it('that opens no tunnel is named, and the request was not sent', async () => {
    const url = await startServer(false);
    const proxy = await startProxy(407);
    const posted = post(url, { proxy: proxy.url });
    await expect(posted).rejects.toMatchObject({ message: 'the proxy answers HTTP 407', sent: false });
  });
});

describe('the certificate of a private authority', () => {
  it('is not accepted by itself', async () => {
    await expect(post(await startServer(true))).rejects.toMatchObject({
      message: expect.stringMatching(/certificate.*UNABLE_TO_VERIFY_LEAF_SIGNATURE/),
      sent: false,
    });
  });

  it('is accepted if the configuration has that of the authority', async () => {
    expect(await post(await startServer(true), { ca: pem('ca.pem') })).toBe('got POST');
  });

  it('is accepted if NODE_EXTRA_CA_CERTS has that of the authority, also beside another one of the configuration', async () => {
    vi.stubEnv('NODE_EXTRA_CA_CERTS', join(folder, 'ca.pem'));
    const url = await startServer(true);
    expect(await post(url, { ca: pem('other.pem') })).toBe('got POST');
    vi.stubEnv('NODE_EXTRA_CA_CERTS', join(folder, 'missing.pem'));
    await expect(post(url, { ca: pem('other.pem') })).rejects.toThrow('certificate');
  });
});

describe('a server that does not answer', () => {
  it.each([
    ['at all', 'https', 10_000, false],
    ['but connects', 'http', 300_000, true],
  ])('%s is given up after its time, and the request is sent only over a connection', async (_, scheme, ms, sent) => {
    let received = 0;
    const port = await listen(
      createTcpServer((socket) => {
        socket.on('error', () => {});
        socket.on('data', ({ length }) => {
          received += length;
        });
        cleanups.push(() => socket.destroy());
      }),
    );
    const clock = new FakeClock();
    const posted = post(new URL(`${scheme}://localhost:${port}`), {}, clock);
    let error: unknown;
    posted.catch((caught) => {
      error = caught;
    });
    await until('the first bytes', () => received > 0);
    clock.advance(ms - 1);
    await new Promise(setImmediate);
    expect(error).toBeUndefined();
    clock.advance(1);
    await until('the end', () => error !== undefined);
    expect(error).toMatchObject({ message: `no ${sent ? 'answer' : 'connection'} within ${ms / 1_000} s`, sent });
  });
});

describe('a connection that is kept', () => {
  /** A server whose connections and requests are counted, with an agent that keeps connections. */
  async function keeping(onRequest: (count: number, request: IncomingMessage) => boolean) {
    const counts = { connections: 0, requests: 0 };
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        counts.requests += 1;
        if (onRequest(counts.requests, request)) response.end('ok');
      });
    });
    server.on('connection', () => {
      counts.connections += 1;
    });
    const url = new URL(`http://localhost:${await listen(server)}`);
    const agent = createAgent(url, {});
    cleanups.push(() => agent.destroy());
    const { signal } = new AbortController();
    const body = Buffer.from('{}');
    const ask = async () =>
      await text(await sendRequest(REAL, { url, method: 'POST', headers: {}, body, agent, signal }));
    return { counts, server, ask };
  }

  it('serves the next request', async () => {
    const { counts, ask } = await keeping(() => true);
    expect([await ask(), await ask()]).toEqual(['ok', 'ok']);
    expect(counts).toEqual({ connections: 1, requests: 2 });
  });

  it('F263: is not used if the server has closed it, even at that moment', async () => {
    const { counts, server, ask } = await keeping(() => true);
    await ask();
    await new Promise(setImmediate);
    server.closeAllConnections();
    expect(await ask()).toBe('ok');
    expect(counts).toEqual({ connections: 2, requests: 2 });
  });

  it('F263: is lost with a request that the server has got, which is not sent again', async () => {
    const { counts, ask } = await keeping((count, { socket }) => {
      if (count > 1) socket.destroy();
      return count === 1;
    });
    await ask();
    await expect(ask()).rejects.toMatchObject({ sent: true });
    expect(counts).toEqual({ connections: 1, requests: 2 });
  });
});
