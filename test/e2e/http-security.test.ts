import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import * as net from 'node:net';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Headers, INITIALIZE, PING, Place, type Running } from '../support/http-place.js';
import { until } from '../support/processes.js';

const WITNESS = fileURLToPath(new URL('../fixtures/servers/witness.mjs', import.meta.url));
const FOUR_MIB = 4 * 1024 * 1024;
const HELLO = JSON.stringify(INITIALIZE);

/** One gateway for all who are turned away: none of them may leave a trace in it. */
const guarded = new Place();
let gateway: Running;
/** What becomes of slow clients. They wait for the same ten seconds, beside one another and all other tests. */
const slowClients = new Map<string, Promise<Outcome>>();
beforeAll(async () => {
  gateway = await guarded.serve({ gateway: { http: { receiveTimeout: '10s' } }, args: ['-v'] });
  const head = headOf(gateway, guarded.headers({ 'content-length': String(HELLO.length) }));
  slowClients.set('sends a byte of its headers each second', drip(gateway, head));
  slowClients.set('says nothing', drip(gateway, ''));
  slowClients.set('sends a byte of its body each second', drip(gateway, HELLO, head));
});
afterAll(() => guarded.dispose());

/** For tests with a gateway of their own. */
let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

const serve = (options: Parameters<Place['serve']>[0] = {}) =>
  place.serve({ ...options, args: ['-v', ...(options.args ?? [])] });

/** Sessions that this test began itself. */
const begun = new Map<Running, number>();

/** Begins a session, and fails when the log tells of any but those that were begun here. */
async function expectNobodyIn(host = guarded, running = gateway, headers: Headers = {}): Promise<void> {
  const count = (begun.get(running) ?? 0) + 1;
  begun.set(running, count);
  expect(await host.statusOf(running, headers)).toBe(200);
  const opened = () => running.stderr.match(/http session-opened/g)?.length ?? 0;
  await until('the session is in the log', () => opened() >= count);
  expect(opened()).toBe(count);
}

describe('DNS rebinding: a web page whose own name points at this machine', () => {
  it.each([
    'evil.test:PORT',
    'evil.test',
    '127.0.0.1.evil.test:PORT',
    'localhost.evil.test:PORT',
    '0.0.0.0:PORT',
    '127.0.0.1',
    'localhost:1',
    '2130706433:PORT',
  ])('is turned away by its Host, %s, even with the right token', async (host) => {
    const session = { 'mcp-session-id': 'x'.repeat(43) };
    const headers = { host: host.replace('PORT', String(gateway.port)), accept: '*/*' };
    for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS']) {
      const body = method === 'POST' ? { body: HELLO } : {};
      expect((await guarded.send(gateway, { method, headers, ...body })).status).toBe(403);
      expect((await guarded.send(gateway, { method, headers: { ...headers, ...session }, ...body })).status).toBe(403);
    }
    expect((await guarded.send(gateway, { path: '/mcp/lab', headers, body: HELLO })).status).toBe(403);
    await expectNobodyIn();
  });

  it('F192: is counted in the status and told by the doctor, who also sees a second gateway of the same configuration', async () => {
    const [running, other] = await Promise.all([serve(), serve()]);
    const client = await place.connect(running);
    for (const host of ['evil.test', 'gateway.test:7411']) expect(await place.statusOf(running, { host })).toBe(403);
    const status = await client.callTool({ name: 'trunkline__status', arguments: {} });
    const named = { header: 'Host', count: 2, last: 'gateway.test:7411', code: 'TL-HTTP-HOST-REFUSED' };
    expect(status.structuredContent).toMatchObject({ refusedNames: [named] });
    const files = join(dirname(place.tokenFile), 'http');
    const written = () =>
      readdirSync(files).flatMap((name) => (name.endsWith('.json') ? [readFileSync(join(files, name), 'utf8')] : []));
    await until('the doctor can know', () => written().join().includes('gateway.test:7411'));
    const examine = async () => {
      const args = ['doctor', '--no-start', '--offline', '--json', '--config', place.file('trunkline.yaml')];
      return JSON.parse((await place.run(args)).stdout).findings as { code: string; sentence: string }[];
    };
    const [twice, ...rest] = (await examine()).filter(({ code }) => /^TL-(?:RUN|HTTP)/.test(code));
    expect(twice).toMatchObject({ code: 'TL-RUN-TWICE', evidence: ['~/trunkline.yaml'] });
    const pids = [running, other].map(({ process: { pid } }) => `Trunkline ${pid} `);
    for (const pid of pids) expect(twice?.sentence).toContain(pid);
    expect(rest).toMatchObject([{ code: 'TL-HTTP-HOST-REFUSED', sentence: expect.stringContaining(pids[0] ?? '') }]);
    other.process.kill('SIGTERM');
    await other.finished;
    expect((await examine()).map(({ code }) => code)).not.toContain('TL-RUN-TWICE');
  });

  it('cannot get at the port under an address that is no loopback, as nothing listens there', async () => {
    const running = await serve({ address: ['--http', '0'] });
    const others = Object.values(networkInterfaces()).flatMap((addresses = []) =>
      addresses.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address),
    );
    expect(await connects('127.0.0.1', running.port)).toBe(true);
    // Where 0.0.0.0 was listened on, all of 127.0.0.0/8 would be, too.
    for (const address of ['127.0.0.2', ...others]) expect(await connects(address, running.port)).toBe(false);
  });
});

describe('cross-site requests: a web page of another origin', () => {
  it.each([
    'null',
    'http://127.0.0.1.evil.test',
    'http://127.0.0.1.evil.test:PORT',
    'http://127.0.0.1:PORT.evil.test',
    'http://evil.test',
    'https://127.0.0.1:PORT',
    'http://127.0.0.1',
    'file://',
  ])('is turned away by its Origin, %s, even with the right token', async (origin) => {
    const headers = { origin: origin.replace('PORT', String(gateway.port)), accept: '*/*' };
    for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS']) {
      const body = method === 'POST' ? { body: HELLO } : {};
      expect((await guarded.send(gateway, { method, headers, ...body })).status).toBe(403);
    }
    await expectNobodyIn();
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', undefined])(
    'cannot post without a preflight request: a body of type %s gets 415, even with the right token',
    async (type) => {
      expect((await guarded.send(gateway, { headers: { 'content-type': type }, body: HELLO })).status).toBe(415);
      await expectNobodyIn();
    },
  );

  it('gets no permission from a preflight request', async () => {
    const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
    const own = `http://127.0.0.1:${gateway.port}`;
    for (const origin of ['http://evil.test', own]) {
      const { headers, status } = await guarded.send(gateway, { method: 'OPTIONS', headers: { ...preflight, origin } });
      expect(status).toBe(origin === own ? 405 : 403);
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  it('cannot make the browser send the token by itself: a token in a cookie or in the address is ignored', async () => {
    const { token } = guarded;
    const headers = { authorization: undefined, cookie: `token=${token}; authorization=Bearer%20${token}` };
    const path = `/mcp?token=${token}&access_token=${token}`;
    expect((await guarded.send(gateway, { path, headers, body: HELLO })).status).toBe(401);
    await expectNobodyIn();
  });
});

describe('another user or program of this machine', () => {
  it('gets the same answer for no token, a wrong one and nearly the right one', async () => {
    const running = await serve();
    const { token } = place;
    const guesses = [undefined, 'Bearer', 'Bearer x', `Bearer ${token.slice(0, -1)}`, `Bearer ${token}x`, token];
    const answers = [];
    for (const authorization of guesses) {
      const { status, text, headers } = await place.send(running, { headers: { authorization }, body: HELLO });
      answers.push(JSON.stringify([status, text, headers['www-authenticate'], headers['content-length']]));
    }
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toMatch(/^\[401,/);
    await expectNobodyIn(place, running);
  });

  it('has ten guesses a minute, and by the eleventh has not locked the user out', async () => {
    const running = await serve();
    const guess = (attempt: number) =>
      place.send(running, { headers: { authorization: `Bearer guess-${attempt}` }, body: HELLO });
    for (let attempt = 1; attempt <= 10; attempt += 1) expect((await guess(attempt)).status).toBe(401);
    const { status, headers } = await guess(11);
    expect(status).toBe(429);
    // A minute, without the seconds that the guesses took.
    expect(Number(headers['retry-after'])).toBeGreaterThan(40);
    await expectNobodyIn(place, running);
  });

  it('cannot read the token in its file, the list of processes or the log', async () => {
    const running = await serve({ args: ['-v', '--log-file', place.file('log')] });
    await place.initialize(running);
    await place.send(running, { headers: { authorization: `Bearer ${place.token}x` }, body: HELLO });
    expect(statSync(place.tokenFile).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(place.tokenFile)).mode & 0o777).toBe(0o700);
    expect(place.token).toMatch(/^[\w-]{43}$/);
    expect(place.leftovers().length).toBeGreaterThan(0);
    const visible = [
      ...place.leftovers().map(({ args }) => args),
      running.stderr,
      readFileSync(place.file('log'), 'utf8'),
    ].join('\n');
    expect(visible).not.toContain(place.token);
  });

  it.each(['640', '602'])(
    'cannot have the token by a file that lets others in: with mode %s Trunkline does not start',
    async (mode) => {
      mkdirSync(dirname(place.tokenFile), { recursive: true });
      const token = 't'.repeat(43);
      writeFileSync(place.tokenFile, token);
      chmodSync(place.tokenFile, Number.parseInt(mode, 8));
      const { code, stderr } = await place.run(['--http', '0', ...place.configure({ lab: place.lab() })]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/^trunkline: Other users can access the token file .+\n$/);
      expect(stderr).not.toContain(token);
    },
  );
});

describe('the network: an address that others can reach', () => {
  it.each([
    ['without a list of hosts', ['--http', '0.0.0.0:0'], /needs a list of allowed hosts/],
    ['without a token', ['--http', '0.0.0.0:0', '--no-auth', '--allowed-host', 'a.test'], /without authentication/],
    ['under a name, which may be anywhere', ['--http', 'gateway.test:0', '--no-auth'], /without authentication/],
  ])('is not listened on %s', async (_without, args, reason) => {
    const { code, stderr } = await place.run([...args, ...place.configure({ lab: place.lab() })]);
    expect(code).toBe(2);
    expect(stderr).toMatch(reason);
    expect(stderr).not.toContain('Trunkline serves');
  });

  it('accepts no request without the token or under another host name than the allowed ones', async () => {
    const running = await serve({ address: ['--http', '0.0.0.0:0', '--allowed-host', 'gateway.test'] });
    expect(await place.statusOf(running, { host: 'gateway.test', authorization: undefined })).toBe(401);
    expect(await place.statusOf(running, { host: `127.0.0.1:${running.port}` })).toBe(403);
    await expectNobodyIn(place, running, { host: 'gateway.test' });
  });
});

describe('a stolen, guessed or planted session', () => {
  it('is 400 without an id and 404 with an unknown one, and no session is created', async () => {
    const ping = { body: JSON.stringify(PING) };
    expect((await guarded.send(gateway, ping)).status).toBe(400);
    for (const id of ['unknown', 'x'.repeat(43), '..', '__proto__']) {
      const headers = { 'mcp-session-id': id };
      expect((await guarded.send(gateway, { ...ping, headers })).status).toBe(404);
      // An id of the client's own choice is not taken over for a session that begins.
      expect((await guarded.send(gateway, { body: HELLO, headers })).status).toBe(404);
      expect((await guarded.send(gateway, { method: 'GET', headers })).status).toBe(404);
      expect((await guarded.send(gateway, { method: 'DELETE', headers })).status).toBe(404);
    }
    await expectNobodyIn();
  });

  it('cannot be guessed: each id is new and has 256 bits', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await guarded.initialize(gateway))['mcp-session-id']),
    );
    begun.set(gateway, (begun.get(gateway) ?? 0) + ids.length);
    expect(new Set(ids).size).toBe(20);
    for (const id of ids) expect(Buffer.from(id, 'base64url')).toHaveLength(32);
  });

  it('is of no use without the token', async () => {
    const running = await serve();
    const session = await place.initialize(running);
    for (const authorization of [undefined, `Bearer ${'x'.repeat(43)}`]) {
      for (const request of [{ body: JSON.stringify(PING) }, { method: 'GET' }, { method: 'DELETE' }]) {
        expect((await place.send(running, { ...request, headers: { ...session, authorization } })).status).toBe(401);
      }
    }
    expect((await place.post(running, PING, session)).status).toBe(200);
  });

  it('is unknown at any other endpoint than the one where it began', async () => {
    const running = await serve({ servers: { one: place.lab(), two: place.lab() } });
    const begin = async (path: string) => {
      const { headers } = await place.send(running, { path, body: HELLO });
      return { 'mcp-session-id': String(headers['mcp-session-id']) };
    };
    const paths = ['/mcp', '/mcp/one', '/mcp/two'];
    for (const own of paths) {
      const headers = await begin(own);
      for (const path of paths) {
        const status = path === own ? 200 : 404;
        expect((await place.send(running, { path, headers, body: JSON.stringify(PING) })).status).toBe(status);
      }
    }
  });

  it('ends with the token: with a new one all sessions are unknown, and the old one is wrong', async () => {
    const running = await serve();
    const session = await place.initialize(running);
    const authorization = `Bearer ${place.token}`;
    running.process.kill('SIGTERM');
    await running.finished;
    rmSync(place.tokenFile);
    const renewed = await serve();
    expect((await place.post(renewed, PING, { ...session, authorization })).status).toBe(401);
    expect((await place.post(renewed, PING, session)).status).toBe(404);
  });

  it('ends by itself when its client is away for longer than the configured time', async () => {
    const running = await serve({ gateway: { http: { sessionIdle: '1s' } } });
    const session = await place.initialize(running);
    // To ask for it would keep it; the log tells.
    await until('it has ended', () => /"reason":"expired".*http session-ended/.test(running.stderr));
    expect((await place.post(running, PING, session)).status).toBe(404);
  });
});

describe('the token passed on: a server', () => {
  it('sees neither token nor session nor any header, in its environment, the handshake or a call', async () => {
    const seen = place.file('seen');
    const running = await serve({ servers: { witness: place.server(WITNESS, seen) } });
    const canaries = { cookie: 'a=canary-cookie', 'x-canary': 'canary-header', 'user-agent': 'canary-agent' };
    const session = { ...(await place.initialize(running)), ...canaries };
    for (const [method, params] of [
      ['tools/list', {}],
      [
        'tools/call',
        { name: 'witness__look', arguments: { marker: 'seen by the server' }, _meta: { progressToken: 1 } },
      ],
    ] as const) {
      expect((await place.post(running, { jsonrpc: '2.0', id: 2, method, params }, session)).status).toBe(200);
    }
    await place.post(running, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }, session);

    const text = readFileSync(seen, 'utf8');
    for (const expected of ['"PATH"', '"initialize"', 'seen by the server']) expect(text).toContain(expected);
    for (const secret of [place.token, session['mcp-session-id'], 'canary', 'Bearer', 'uthorization']) {
      expect(text).not.toContain(secret);
    }
  });
});

describe('exhaustion: a client that wants too much', () => {
  it('gets 503 for the 101st session, without creating anything for it, until another session ends', async () => {
    // Only the rate is raised: that would otherwise be what stops it.
    const running = await serve({ gateway: { http: { requestBurst: 1_000 } } });
    const sessions = await Promise.all(Array.from({ length: 100 }, () => place.initialize(running)));
    await expectFull(running, 100, sessions[0]);
  });

  it('gets 503 for one session more than configured', async () => {
    const running = await serve({ gateway: { http: { maxSessions: 2 } } });
    const sessions = [await place.initialize(running), await place.initialize(running)];
    await expectFull(running, 2, sessions[0]);
  });

  it('gets 413 for a body of 4 MiB and a byte, whether its length is told or not', async () => {
    const body = Buffer.from(HELLO.padEnd(FOUR_MIB + 1));
    expect((await guarded.send(gateway, { body: body.subarray(0, FOUR_MIB) })).status).toBe(200);
    begun.set(gateway, (begun.get(gateway) ?? 0) + 1);
    expect((await guarded.send(gateway, { body })).status).toBe(413);
    const chunked = { 'transfer-encoding': 'chunked' };
    expect((await guarded.send(gateway, { headers: chunked, body })).status).toBe(413);
    // By its length alone: of this body, nothing ever comes.
    const socket = await connect(gateway, headOf(gateway, guarded.headers({ 'content-length': String(FOUR_MIB + 1) })));
    await until('it is refused', () => socket.received.startsWith('HTTP/1.1 413 '));
    socket.end();
  });

  it('gets 413 for a body larger than configured', async () => {
    const running = await serve({ gateway: { http: { maxBody: '1KiB' } } });
    expect((await place.send(running, { body: HELLO.padEnd(1_024) })).status).toBe(200);
    expect((await place.send(running, { body: HELLO.padEnd(1_025) })).status).toBe(413);
  });

  it.each(['gzip', 'deflate', 'br', 'identity, gzip'])(
    'gets 415 for a body that could unpack to anything: %s',
    async (encoding) => {
      const body = gzipSync(HELLO);
      expect((await guarded.send(gateway, { headers: { 'content-encoding': encoding }, body })).status).toBe(415);
      await expectNobodyIn();
    },
  );

  it('gets 429 at the configured rate, and is accepted again later', async () => {
    const running = await serve({ gateway: { http: { requestBurst: 5, requestsPerSecond: 1 } } });
    const answers = await Promise.all(Array.from({ length: 20 }, () => place.send(running, { body: HELLO })));
    const refused = answers.filter(({ status }) => status === 429);
    // The five of the burst, and one for each second that the requests took.
    expect(answers.length - refused.length).toBeGreaterThanOrEqual(5);
    expect(refused.length).toBeGreaterThan(0);
    for (const { headers } of refused) expect(headers['retry-after']).toBe('1');
    await expect.poll(() => place.statusOf(running, {}), { timeout: 5_000, interval: 200 }).toBe(200);
  });

  it('cannot keep a client with the token out by connections that it holds, and is closed for it', async () => {
    const running = await serve({ gateway: { http: { maxConnections: 4 } } });
    const sockets: RawConnection[] = [];
    for (let n = 0; n < 6; n += 1) sockets.push(await connect(running, ''));
    expect(await place.statusOf(running, {})).toBe(200);
    await until('the oldest are closed', () => sockets.slice(0, 3).every(({ isClosed }) => isClosed));
    expect(running.stderr).toContain('http connection-evicted');
    for (const socket of sockets) socket.end();
  });

  it('is closed at once with one connection more than configured, if the others have sent the token', async () => {
    const running = await serve({ gateway: { http: { maxConnections: 2 } } });
    const head = headOf(running, place.headers()).replace(/^POST/, 'DELETE');
    const sockets = [await connect(running, head), await connect(running, head)];
    await until('both are answered', () => sockets.every(({ received }) => received.includes(' 405 ')));
    const third = await connect(running, '');
    await until('it is closed', () => third.isClosed);
    expect([third.received, ...sockets.map(({ isClosed }) => isClosed)]).toEqual(['', false, false]);
    for (const socket of sockets) socket.end();
  });

  it('gets a comment at the configured interval on a silent stream', async () => {
    const running = await serve({ gateway: { http: { keepAlive: '1s' } } });
    const headers = { ...(await place.initialize(running)), accept: 'text/event-stream' };
    const listening = await connect(running, headOf(running, place.headers(headers)).replace(/^POST/, 'GET'));
    await until('two comments came', () => listening.received.split(': keep-alive').length > 2);
    listening.end();
  });
});

describe('exhaustion: a client that takes its time', () => {
  it.each(['sends a byte of its headers each second', 'says nothing', 'sends a byte of its body each second'])(
    'is closed after ten seconds when it %s',
    async (kind) => {
      const { received, afterMs } = (await slowClients.get(kind)) ?? {};
      expect(received).toMatch(/^HTTP\/1\.1 408 /);
      // The client was given the ten seconds that are configured; Node checks once a second.
      expect(afterMs).toBeGreaterThan(9_500);
      await expectNobodyIn();
    },
  );
});

async function expectFull(running: Running, sessions: number, one: Headers | undefined): Promise<void> {
  const { status, headers } = await place.send(running, { body: HELLO });
  expect([status, headers['retry-after'], headers['mcp-session-id']]).toEqual([503, '30', undefined]);
  expect((await place.send(running, { method: 'DELETE', headers: one ?? {} })).status).toBe(204);
  begun.set(running, sessions);
  await expectNobodyIn(place, running);
}

/** Whether something listens there. */
function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port, timeout: 1_000 });
    const end = (isOpen: boolean) => () => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}

/** A connection on which a test writes whatever it likes. */
class RawConnection {
  received = '';
  isClosed = false;
  readonly #socket: net.Socket;

  constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.received += text;
    });
    socket.on('error', () => {});
    socket.once('close', () => {
      this.isClosed = true;
    });
  }

  write(text: string): void {
    if (this.#socket.writable) this.#socket.write(text);
  }

  end(): void {
    this.#socket.destroy();
  }
}

async function connect(running: Running, text: string): Promise<RawConnection> {
  const socket = net.connect(running.port, '127.0.0.1');
  const connection = new RawConnection(socket);
  await new Promise((resolve) => socket.once('connect', resolve));
  connection.write(text);
  return connection;
}

/** The head of a POST, its body to follow. */
function headOf(running: Running, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries({ host: `127.0.0.1:${running.port}`, ...headers });
  return `POST /mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

interface Outcome {
  readonly received: string;
  readonly afterMs: number;
}

/** Sends a text a byte a second, after what goes before it, until the other side closes. */
async function drip(running: Running, text: string, before = ''): Promise<Outcome> {
  const startedAt = performance.now();
  const connection = await connect(running, before);
  let sent = 0;
  const timer = setInterval(() => {
    connection.write(text[sent] ?? '');
    sent += 1;
  }, 1_000);
  await until('it is closed', () => connection.isClosed, 25_000);
  clearInterval(timer);
  return { received: connection.received, afterMs: performance.now() - startedAt };
}
