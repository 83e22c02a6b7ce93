import dns from 'node:dns';
import { createServer, type RequestListener, type Server } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createFetch } from '../../../src/host/http/fetch.js';
import { systemClock } from '../../../src/host/observe/system-clock.js';

const servers: Server[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  vi.useRealTimers();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const fetchFor = (server: string, options: { proxy?: string } = {}) =>
  createFetch({ clock: systemClock, server: new URL(server), ...options });

/** Names of the test, by the addresses to which they resolve. */
function resolveNames(names: Readonly<Record<string, string>>): void {
  const addressesOf = (host: string) => [
    { address: names[host] ?? '127.0.0.1', family: names[host]?.includes(':') ? 6 : 4 },
  ];
  vi.spyOn(dns, 'lookup').mockImplementation(((host: string, _: object, done: (error: null, found: object) => void) =>
    done(null, addressesOf(host))) as never);
  syncBuiltinESMExports();
}

const PUBLIC = 'https://203.0.113.7/mcp';

describe('a request for a document of an authorization server', () => {
  it.each([
    ['http://203.0.113.8/', 'not encrypted'],
    ['http://localhost.example.com/', 'not encrypted'],
    ['ftp://203.0.113.8/', 'not encrypted'],
    ['http://127.0.0.1:1/', 'this machine'],
    ['https://localhost/', 'this machine'],
    ['https://[::1]/', 'this machine'],
    ['https://2130706433/', 'this machine'],
    ['https://169.254.169.254/latest', 'link-local'],
    ['https://[fe80::1]/', 'link-local'],
    ['https://[fd00:ec2::254]/', 'link-local'],
    ['https://[::ffff:169.254.169.254]/', 'link-local'],
    ['https://10.1.2.3/', 'private'],
    ['https://172.31.0.1/', 'private'],
    ['https://192.168.0.1/', 'private'],
    ['https://100.100.100.200/', 'private'],
    ['https://0.0.0.0/', 'private'],
    ['https://[fd12::1]/', 'private'],
    ['https://[::ffff:10.0.0.1]/', 'private'],
    ['https://[::]/', 'private'],
    ['https://[64:ff9b::10.0.0.1]/', 'private'],
    ['https://[64:ff9b::127.0.0.1]/', 'private'],
    ['https://[64:ff9b::169.254.169.254]/', 'link-local'],
    ['https://[64:ff9b:1::1]/', 'private'],
    ['https://192.0.0.8/', 'private'],
    ['https://198.19.0.1/', 'private'],
    ['https://240.0.0.1/', 'private'],
    ['https://255.255.255.255/', 'private'],
    ['https://[2002:a00:1::]/', 'private'],
    ['https://[::10.0.0.1]/', 'private'],
    ['https://[64:ff9b::198.18.0.1]/', 'private'],
  ])('is not sent to %s for a public server, because it is %s', async (url, reason) => {
    await expect(fetchFor(PUBLIC)(url)).rejects.toThrow(reason);
  });

  it.each([
    ['127.0.0.1', 'private'],
    ['::1', 'private'],
    ['10.0.0.1', 'private'],
    ['::ffff:192.168.1.1', 'private'],
    ['169.254.169.254', 'link-local'],
  ])('F245: is not sent to a name that resolves to %s, because it is %s', async (address, reason) => {
    resolveNames({ 'as.example': address, 'mcp.example': '203.0.113.7' });
    await expect(fetchFor('https://mcp.example/mcp')('https://as.example/token')).rejects.toThrow(reason);
  });

  it.each([
    ['https://127.0.0.1/', 'it is this machine'],
    ['http://localhost:1/', 'it is this machine'],
    ['https://10.1.2.3/', 'it has no public name'],
    ['https://169.254.169.254/', 'it has no public name'],
    ['https://203.0.113.8/', 'it has no public name'],
    ['https://[fd12::1]/', 'it has no public name'],
    ['https://intranet/', 'it has no public name'],
    ['https://intranet./', 'it has no public name'],
    ['https://metadata.google.internal/', 'it has no public name'],
    ['https://printer.LOCAL./', 'it has no public name'],
    ['https://router.home.arpa/', 'it has no public name'],
    ['https://app.localhost/', 'it has no public name'],
    ['https://inside.example/', 'its address 192.168.1.1 is private'],
  ])('is not sent to %s for a stranger, because %s', async (url, reason) => {
    resolveNames({ 'inside.example': '192.168.1.1' });
    for (const proxy of [undefined, 'http://127.0.0.1:1'])
      await expect(createFetch({ clock: systemClock, server: undefined, proxy })(url)).rejects.toThrow(reason);
  });

  it('may be sent to a private address for a server with one, and never to a link-local one', async () => {
    const { port } = new URL(await serve((_, response) => response.end()));
    resolveNames({ 'mcp.corp': '127.0.0.1', 'as.corp': '127.0.0.1', 'cloud.corp': '169.254.169.254' });
    const fetch = fetchFor(`http://mcp.corp:${port}/mcp`);
    await expect(fetch('https://as.corp:1/')).rejects.toThrow('the connection is refused');
    await expect(fetch('https://cloud.corp/')).rejects.toThrow('link-local');
    await expect(fetch('https://169.254.169.254/')).rejects.toThrow('link-local');
  });

  it('is not sent to a private address because the DNS of the server says that the server has one, too', async () => {
    const { port } = new URL(await serve((_, response) => response.end('a service of this machine')));
    resolveNames({ 'mcp.example': '127.0.0.1', 'as.example': '127.0.0.1' });
    // What listens there has no certificate of the server.
    const fetch = fetchFor(`https://mcp.example:${port}/mcp`);
    await expect(fetch('https://as.example:1/')).rejects.toThrow(
      'mcp.example does not prove to be in a private network',
    );
  });

  it.each(['http://localhost:1/', 'https://localhost.:1/'])(
    'is not sent to %s when DNS says that another machine has this name',
    async (url) => {
      resolveNames({ localhost: '203.0.113.9', 'localhost.': '203.0.113.9' });
      await expect(fetchFor('http://127.0.0.1:1/mcp')(url)).rejects.toThrow('203.0.113.9 is not on this machine');
    },
  );

  it('has the method, headers and form of its caller, and no redirect is followed', async () => {
    const got: unknown[] = [];
    const origin = await serve((request, response) => {
      request.on('data', (chunk) => got.push(request.method, request.headers['x-a'], String(chunk)));
      request.on('end', () =>
        response.writeHead(302, { location: 'http://127.0.0.1:1/', 'x-b': ['1', '2'] }).end('moved'),
      );
    });
    const response = await fetchFor(origin)(`${origin}/token`, {
      method: 'POST',
      headers: { 'X-A': 'b' },
      body: new URLSearchParams({ a: 'b c' }),
    });
    expect(got).toEqual(['POST', 'b', 'a=b+c']);
    expect([response.status, response.headers.get('x-b'), await response.text()]).toEqual([302, '1, 2', 'moved']);
  });

  it('reads 64 KiB and no more', async () => {
    const origin = await serve((request, response) => {
      response.write('x'.repeat(64 * 1024));
      if (request.url === '/more') setImmediate(() => response.end('y'));
      else response.end();
    });
    expect((await (await fetchFor(origin)(`${origin}/all`)).text()).length).toBe(64 * 1024);
    await expect(fetchFor(origin)(`${origin}/more`)).rejects.toThrow('answers more than 64 KiB');
  });

  it('ends if the body never ends', async () => {
    const origin = await serve((_, response) => {
      response.write('{');
    });
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
      const abort = new AbortController();
      // The headers have come by then, because the server sends them with the first bytes.
      setTimeout(() => abort.abort(), 100);
      return abort.signal;
    });
    await expect(fetchFor(origin)(origin)).rejects.toThrow('does not answer within 5 s');
    await expect(fetchFor(origin)(origin, { method: 'POST' })).rejects.toThrow('does not answer within 30 s');
    expect(timeout.mock.calls).toEqual([[5_000], [30_000]]);
  });

  it.each([
    ['an incomplete body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx', 'cannot be read'],
    ['a status that is none', 'HTTP/1.1 999 No\r\ncontent-length: 1\r\n\r\nx', 'cannot be read'],
    ['a body where there is none', 'HTTP/1.1 205 Reset\r\ncontent-length: 1\r\n\r\nx', 'cannot be read'],
    ['no HTTP', 'hello\r\n\r\n', 'Parse Error'],
  ])('fails for %s as for a server that cannot be reached', async (_, answer, reason) => {
    const origin = await serve((request) => request.socket.end(answer));
    await expect(fetchFor(origin)(origin)).rejects.toMatchObject({
      name: 'RequestError',
      message: expect.stringContaining(reason),
    });
  });

  it('goes through a proxy, which resolves names, and no literal gets around the rules there', async () => {
    const asked: unknown[] = [];
    const proxy = createServer();
    servers.push(proxy);
    const target = await serve((_, response) => response.end('through'));
    proxy.on('connect', ({ url }, socket) => {
      asked.push(url);
      const { hostname, port } = new URL(target);
      const far = connect(Number(port), hostname, () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        far.pipe(socket).pipe(far);
      });
    });
    await new Promise<void>((resolve) => {
      proxy.listen(0, '127.0.0.1', resolve);
    });
    const via = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const local = fetchFor('http://localhost:1/mcp', { proxy: via });
    expect(await (await local('http://localhost:4711/')).text()).toBe('through');
    expect(asked).toEqual(['localhost:4711']);
    await expect(fetchFor(PUBLIC, { proxy: via })('https://10.0.0.1/')).rejects.toThrow('private');
    expect(asked).toHaveLength(1);
  });
});
