// Gateways of one cluster: where requests are served, and how they get there.
import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RequestSigner, signText } from '../../../src/extras/cluster/signed-request.js';
import { json } from '../../downstream/http/scripted-core.js';
import { tokenOf } from '../../downstream/http/scripted-users.js';
import { initializeRequest, notification, readToEnd, request } from '../../downstream/http/serving.js';
import { until } from '../../support/processes.js';
import type { Message } from '../../support/wire.js';
import { type Gateway, KEYS, Relay, startGateway } from './cluster-place.js';
import { MemoryServer } from './memory-store.js';

const [ANN, BOB] = [tokenOf('ann'), tokenOf('bob')];
const LOST = { reason: 'instance_lost', code: 'TL-CALL-INSTANCE-LOST', sent: true, outcome: 'unknown' };
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A request without a session. */
function modern(id: number, method: string, params: Message = {}): Message {
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta: META } };
}

function headersFor({ method, params }: Message, more: object = {}) {
  return {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    'mcp-name': params.name ?? params.taskId,
    ...more,
  };
}

/** Whether a gateway knows that the other one answers. */
const knows = (gateway: Gateway, { name }: Gateway) => gateway.cluster.reachable(name) === name;

type Options = Partial<Parameters<typeof startGateway>[0]>;

/** Two gateways that know each other. */
async function two(options: Options = {}, ofB: Options = {}) {
  const server = new MemoryServer(() => performance.now());
  const a = await startGateway({ server, name: 'aaaaaaaaaa', ...options });
  const b = await startGateway({ server, name: 'bbbbbbbbbb', ...options, ...ofB });
  await until('they know each other', () => knows(a, b) && knows(b, a));
  return { server, a, b };
}

/** The home of ann, with a session there, and the other gateway. */
async function homeOfAnn(gateways: { readonly a: Gateway; readonly b: Gateway }) {
  const session = { ...(await gateways.a.http.initialize('2025-11-25', ANN)), ...ANN };
  const [home, other] = gateways.a.core.sessions.length === 1 ? [gateways.a, gateways.b] : [gateways.b, gateways.a];
  return { home, other, session };
}

/** Two gateways, of which `other` passes the requests of ann to `home` over a connection that can be cut. */
async function withRelay() {
  const server = new MemoryServer(() => performance.now());
  const ports = new Map<string, number>();
  const start = async (name: string) => {
    const relay = await Relay.to(() => ports.get(name) ?? 0);
    const gateway = await startGateway({ server, name, advertise: `127.0.0.1:${relay.port}` });
    ports.set(name, gateway.peerPort);
    return { gateway, relay };
  };
  const [one, two] = [await start('aaaaaaaaaa'), await start('bbbbbbbbbb')];
  const [a, b] = [one.gateway, two.gateway];
  await until('they know each other', () => knows(a, b) && knows(b, a));
  const placed = await homeOfAnn({ a, b });
  const [relay, back] = placed.home === a ? [one.relay, two.relay] : [two.relay, one.relay];
  return { ...placed, server, relay, back };
}

const errorOf = (text: string) => JSON.parse(text).result._meta['trunkline/failure'];

describe('a user of two gateways', () => {
  it('is served at one of them, whichever gets the requests, with and without sessions', async () => {
    const { a, b } = await two();
    const sessions = [await a.http.initialize('2025-11-25', ANN), await b.http.initialize('2025-11-25', ANN)];
    for (const { http } of [a, b])
      for (const session of sessions) expect((await http.post(request(2), { ...session, ...ANN })).status).toBe(200);
    const list = modern(3, 'tools/list');
    for (const { http } of [a, b]) expect((await http.post(list, headersFor(list, ANN))).status).toBe(200);
    // Two sessions, and the client for all requests without one.
    expect([a.core.sessions.length, b.core.sessions.length].sort()).toEqual([0, 3]);
  });

  it('may be in more groups than fit into the headers of a client', async () => {
    const groups = Array.from({ length: 1_000 }, (_, at) => `engineering-${at}`);
    const { home, other, session } = await homeOfAnn(await two({ groups }));
    const list = modern(1, 'tools/list');
    expect((await other.http.post(request(1), session)).status).toBe(200);
    expect((await other.http.post(list, headersFor(list, ANN))).status).toBe(200);
    expect(home.core.callers.at(-1)?.user?.groups).toEqual(groups);
  });

  it('keeps the name, the groups and the address that the first gateway has seen', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    expect(home.core.callers[0]).toMatchObject({ principal: 'principal of ann', user: { groups: ['eng'] } });
    const ports: (number | undefined)[] = [];
    home.core.onRequest = ({ id }, reply) => {
      ports.push(reply.http?.port);
      reply.answer(json({ jsonrpc: '2.0', id, result: {} }));
    };
    const response = await other.http.begin('POST', '/mcp', session, JSON.stringify(request(1)));
    expect(ports).toEqual([response.socket.localPort]);
    response.resume();
  });

  it('has the limit of requests at the home only', async () => {
    const { home, other, session } = await homeOfAnn(await two({ limits: { requestsPerSecond: 1, requestBurst: 4 } }));
    const statuses: number[] = [];
    for (let count = 0; count < 12; count += 1)
      statuses.push((await (count % 2 === 0 ? home : other).http.post(request(count), session)).status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
    expect(other.events.filter(({ kind }) => kind === 'http.refused')).toEqual([]);
  });

  it('keeps the home without clients while processes are kept there', async () => {
    const { a, b } = await two();
    const { home, other, session } = await homeOfAnn({ a, b });
    home.core.withProcesses.add('principal of ann');
    expect((await home.http.send('DELETE', '/mcp', session)).status).toBe(204);
    const holder = () => other.store.holderOf('home:user:principal of ann');
    home.clock.pause(30_000);
    await home.http.initialize('2025-11-25', BOB);
    expect(await holder()).toBe(home.name);
    home.core.withProcesses.clear();
    home.clock.pause(30_000);
    await expect.poll(holder).toBeUndefined();
  });

  it('is another one than the next user, who may have another home', async () => {
    const { a, b } = await two();
    await homeOfAnn({ a, b });
    const session = await a.http.initialize('2025-11-25', ANN);
    for (const { http } of [a, b]) expect((await http.post(request(1), { ...session, ...BOB })).status).toBe(404);
  });
});

describe('a thousand users who come at once', () => {
  const homesOf = async (gateways: readonly Gateway[], from = gateways) => {
    const placed = Array.from({ length: 1_000 }, (_, at) => {
      const user = { principal: `p${at}`, name: `user ${at}`, kind: 'user' as const, groups: [] };
      const gateway = from[at % from.length];
      return Promise.resolve(gateway?.cluster.homeOf({ caller: { principal: user.principal, user } })).then(
        (home) => home ?? gateway?.name,
      );
    });
    return await Promise.all(placed);
  };
  const loadsOf = (homes: readonly (string | undefined)[], gateways: readonly Gateway[]) =>
    gateways.map(({ name }) => homes.filter((home) => home === name).length);

  it('are spread evenly, and stay where they are when another gateway joins', async () => {
    const { server, a, b } = await two();
    const c = await startGateway({ server, name: 'cccccccccc' });
    const all = [a, b, c];
    await until('all know each other', () => all.every((one) => all.every((it) => it === one || knows(one, it))));
    const homes = await homesOf([a, b, c]);
    // A quarter more than the mean, which two random choices stay below by far.
    expect(Math.max(...loadsOf(homes, [a, b, c]))).toBeLessThan(417);
    const d = await startGateway({ server, name: 'dddddddddd' });
    expect(await homesOf([a, b, c, d], [d])).toEqual(homes);
  });
});

describe('a session of a token that many share', () => {
  it('is served where it was opened, whichever gateway gets its requests', async () => {
    const { a, b } = await two({ hasUsers: false });
    const sessions = [await a.http.initialize(), await b.http.initialize()];
    for (const session of sessions)
      for (const { http } of [a, b]) expect((await http.post(request(2), session)).status).toBe(200);
    expect([a.core.sessions.length, b.core.sessions.length]).toEqual([1, 1]);
  });

  it('is found at a gateway that has just joined', async () => {
    const server = new MemoryServer(() => performance.now());
    const a = await startGateway({ server, name: 'aaaaaaaaaa', hasUsers: false });
    const b = await startGateway({ server, name: 'bbbbbbbbbb', hasUsers: false });
    const session = await b.http.initialize();
    expect((await a.http.post(request(1), session)).status).toBe(200);
    expect(a.core.sessions).toEqual([]);
  });

  it('shares the limit of requests of its token, which is divided by the number of gateways', async () => {
    const { a } = await two({ hasUsers: false, limits: { requestsPerSecond: 1, requestBurst: 8 } });
    const session = await a.http.initialize();
    const statuses: number[] = [];
    for (let count = 0; count < 12; count += 1) statuses.push((await a.http.post(request(count), session)).status);
    // As many as a single gateway with half of the limit, see above.
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  });

  it.each([
    ['a task', { taskId: 'lab:bbbbbbbbbb:seal:1' }],
    ['a call that waits for input', { requestState: 'S.seal.{"call":"c","round":1,"instance":"bbbbbbbbbb"}' }],
  ])('lets a request without a session go to the gateway with %s', async (_, params) => {
    const { a, b } = await two({ hasUsers: false });
    a.core.instanceIn = () => 'bbbbbbbbbb';
    const named = modern(1, 'tasks/get', params);
    expect((await a.http.post(named, headersFor(named))).status).toBe(200);
    expect([a.core.sessions.length, b.core.sessions.length]).toEqual([0, 1]);
  });
});

describe('a request that is passed on', () => {
  it('gets a long result whole, and the home waits for a client that reads slowly', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    const text = 'x'.repeat(24 * 1024 * 1024);
    home.core.onRequest = ({ id }, reply) => reply.answer(json({ jsonrpc: '2.0', id, result: { text } }));
    for (const first of [undefined, json(notification('notifications/progress'))]) {
      const answer = home.core.onRequest;
      home.core.onRequest = (message, reply, its) => {
        if (first !== undefined) reply.send(first);
        answer(message, reply, its);
      };
      const response = await other.http.begin('POST', '/mcp', session, JSON.stringify(request(1)));
      let length = 0;
      for await (const chunk of response) length += (chunk as Buffer).length;
      expect(length).toBeGreaterThan(text.length);
    }
  });

  it('carries messages of a server and the answers to them, and a GET stream', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    const stream = await other.http.listen(session);
    await until('the stream is there', () => home.core.last.stream !== undefined);
    home.core.last.stream?.send(json(request('s1', 'elicitation/create')));
    expect(JSON.parse((await stream.next())?.data || (await stream.next())?.data || '')).toMatchObject({ id: 's1' });
    const answer = { jsonrpc: '2.0', id: 's1', result: { action: 'accept' } };
    expect((await other.http.post(answer, session)).status).toBe(202);
    expect(home.core.last.bodies.at(-1)).toBe(JSON.stringify(answer));
    // A newer stream replaces the older one.
    expect((await other.http.begin('GET', '/mcp', session)).statusCode).toBe(200);
  });

  it('ends a stream with the token of its client, which opens the next one with a new token', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    other.users.tokenEndsAt = other.http.clock.now() + 60_000;
    const stream = await other.http.listen(session);
    await until('the stream is there', () => home.core.last.stream !== undefined);
    other.http.clock.advance(60_000);
    await stream.rest();
    expect(stream.response.complete).toBe(true);
    await until('its home has noticed', () => home.core.last.stream === undefined);
    other.users.tokenEndsAt = undefined;
    expect((await other.http.begin('GET', '/mcp', session)).statusCode).toBe(200);
  });

  it('has the headers that servers get, and no other ones', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    for (const { core } of [home, other]) core.passedHeaders = () => ['x-tenant'];
    const seen: unknown[] = [];
    home.core.onRequest = ({ id }, reply) => {
      seen.push(['x-tenant', 'x-other', 'cookie', 'authorization'].map((name) => reply.http?.header(name)));
      reply.answer(json({ jsonrpc: '2.0', id, result: {} }));
    };
    await other.http.post(request(1), { ...session, 'x-tenant': 'red', 'x-other': 'o', cookie: 'c=1' });
    expect(seen).toEqual([['red', undefined, undefined, undefined]]);
  });

  it('brings the token of its user, encrypted, if a server gets another one for it', async () => {
    const noted: string[] = [];
    const noteToken = (...of: string[]) => void noted.push(of.join(': '));
    const { home, other, session } = await homeOfAnn(await two({ noteToken }));
    const seen: unknown[] = [];
    home.core.onRequest = ({ id }, reply) => {
      seen.push(
        reply.http?.header('authorization'),
        Buffer.from(`${reply.http?.header('trunkline-hop')}`, 'base64url').toString(),
      );
      reply.answer(json({ jsonrpc: '2.0', id, result: {} }));
    };
    await other.http.post(request(1), { ...session, authorization: 'Bearer ann-secret4711' });
    expect(noted.at(-1)).toBe('principal of ann: ann-secret4711');
    expect(`${seen}`).not.toContain('secret4711');
    expect(`${seen}`).toContain('"subject"');
  });

  it('resumes a stream from the event that the client saw last', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    const replies = home.core.hold(json(notification('notifications/progress')));
    const stream = await other.http.postForEvents(request(5), session);
    const first = await stream.next();
    const second = await stream.next();
    stream.response.destroy();
    await until('the home has noticed', () => home.http.front.sessions === 1 && replies.length === 1);
    replies[0]?.answer(json({ jsonrpc: '2.0', id: 5, result: {} }));
    const resumed = await other.http.listen({ ...session, 'last-event-id': second?.lastEventId ?? first?.lastEventId });
    expect((await resumed.rest()).map(({ data }) => data && JSON.parse(data))).toEqual([
      { jsonrpc: '2.0', id: 5, result: {} },
    ]);
  });

  it('ends at the home when the client closes it', async () => {
    const { home, other } = await homeOfAnn(await two());
    let isAbandoned = false;
    home.core.onRequest = (_, reply) => {
      reply.onAbandoned(() => {
        isAbandoned = true;
      });
      reply.send(json(notification('notifications/progress')));
    };
    const call = modern(1, 'tools/call', { name: 'x' });
    const response = await other.http.begin('POST', '/mcp', headersFor(call, ANN), JSON.stringify(call));
    response.destroy();
    await until('the call has ended', () => isAbandoned);
  });

  it('ends the session everywhere with DELETE', async () => {
    const { a, b } = await two();
    const { other, session } = await homeOfAnn({ a, b });
    expect((await other.http.send('DELETE', '/mcp', session)).status).toBe(204);
    for (const { http } of [a, b]) expect((await http.post(request(1), session)).status).toBe(404);
  });

  it('follows its user to the gateway that the other one names', async () => {
    const { server, a, b } = await two();
    const { home, other, session } = await homeOfAnn({ a, b });
    expect((await other.http.post(request(1), session)).status).toBe(200);
    const third = await startGateway({ server, name: 'cccccccccc' });
    home.cluster.drain();
    await until('the home is given away', () => home.core.last.closed === 1);
    // The third gateway asks the store, and the other one is told by the first home.
    for (const { http } of [third, other, home]) expect((await http.post(request(2), session)).status).toBe(200);
    const resumed = [other, third].flatMap(({ core }) => core.sessions);
    expect(resumed.map(({ isResumed }) => isResumed)).toEqual([true]);
  });
});

describe('a home that is gone', () => {
  it('F361: and refuses connections is replaced, and the request is served at once', async () => {
    const { home, other, session, relay } = await withRelay();
    await relay.cut();
    expect((await other.http.post(request(1, 'tools/call', { name: 'x' }), session)).status).toBe(200);
    expect(other.core.last.isResumed).toBe(true);
    expect(home.core.last.bodies).toHaveLength(1);
    await until('it is known', () => other.events.some((event) => JSON.stringify(event).includes('unreachable')));
  });

  it('F362: leaves the outcome of a call unknown, and the call is not executed twice', async () => {
    const { home, other, session, relay } = await withRelay();
    const replies = home.core.hold();
    const answer = other.http.post(request(1, 'tools/call', { name: 'x' }), session);
    await until('it runs', () => replies.length === 1);
    await relay.cut();
    expect(errorOf((await answer).text)).toEqual(LOST);
    expect(other.core.sessions).toEqual([]);
  });

  it('F363: has a list served again elsewhere, because that changes nothing', async () => {
    const { home, other, session, relay } = await withRelay();
    const replies = home.core.hold();
    const answer = other.http.post(request(1, 'tools/list'), session);
    await until('it runs', () => replies.length === 1);
    await relay.cut();
    expect(JSON.parse((await answer).text)).toMatchObject({ id: 1, result: {} });
    expect(other.core.sessions).toHaveLength(1);
  });

  it('F364: cuts an answer that has begun, and the client resumes it to learn that the outcome is unknown', async () => {
    const { home, other, session, relay } = await withRelay();
    home.core.hold(json(notification('notifications/progress')));
    const stream = await other.http.postForEvents(request(5, 'tools/call', { name: 'x' }), session);
    const [first, second] = [await stream.next(), await stream.next()];
    await relay.cut();
    expect(await stream.next()).toBeUndefined();
    const resumed = await other.http.listen({ ...session, 'last-event-id': second?.lastEventId ?? first?.lastEventId });
    expect(errorOf((await resumed.rest())[0]?.data ?? '')).toEqual(LOST);
  });
});

describe('a gateway that does not answer', () => {
  it('F368: has its connections ended, so that its clients can open their streams elsewhere', async () => {
    const { home, other, session, relay, back } = await withRelay();
    const stream = await other.http.listen(session);
    await until('the stream is there', () => home.core.last.stream !== undefined);
    // A machine that loses its network ends no connection.
    for (const way of [relay, back]) way.freeze();
    await until('its stream is over', () => home.core.last.stream === undefined);
    await until('its client has noticed', () => stream.response.destroyed);
    expect((await home.http.begin('GET', '/mcp', session)).statusCode).toBe(200);
  });

  it('leaves the outcome of its calls unknown', async () => {
    const { home, other, session, relay } = await withRelay();
    const replies = home.core.hold();
    const answer = other.http.post(request(1, 'tools/call', { name: 'x' }), session);
    await until('it runs', () => replies.length === 1);
    relay.freeze();
    expect(errorOf((await answer).text)).toEqual(LOST);
    expect((await other.http.post(request(2), session)).status).toBe(200);
    expect(other.core.sessions).toHaveLength(1);
  });

  it('and sends heartbeats is busy, so that its calls go on', async () => {
    const { home, other, session, relay } = await withRelay();
    const replies = home.core.hold();
    const answer = other.http.post(request(1, 'tools/call', { name: 'x' }), session);
    await until('it runs', () => replies.length === 1);
    const pings = relay.freezeNew();
    await until('more pings have failed than a gateway without heartbeats may miss', () => pings() > 4);
    replies[0]?.answer(json({ jsonrpc: '2.0', id: 1, result: { done: true } }));
    expect(JSON.parse((await answer).text)).toMatchObject({ result: { done: true } });
    expect(other.core.sessions).toEqual([]);
  });

  it('is reported at once if its address is wrong', async () => {
    const server = new MemoryServer(() => performance.now());
    const a = await startGateway({ server, name: 'aaaaaaaaaa' });
    await startGateway({ server, name: 'bbbbbbbbbb', advertise: '127.0.0.1:1' });
    const change = { kind: 'cluster.member', instance: 'bbbbbbbbbb', address: '127.0.0.1:1', change: 'unreachable' };
    await expect.poll(() => a.events).toContainEqual({ ...change, members: 2 });
  });

  it('is no member if it has another key, which is reported once', async () => {
    const server = new MemoryServer(() => performance.now());
    const a = await startGateway({ server, name: 'aaaaaaaaaa' });
    const b = await startGateway({ server, name: 'bbbbbbbbbb', keys: [Buffer.alloc(32, 8)] });
    await expect.poll(() => a.events.filter(({ kind }) => kind === 'cluster.stranger')).toHaveLength(1);
    expect([a.cluster.size, b.cluster.size]).toEqual([1, 1]);
    for (const name of ['cccccccccc', 'dddddddddd']) await a.store.beat(name, 'x.y', 60_000);
    await startGateway({ server, name: 'eeeeeeeeee' });
    await expect.poll(() => a.cluster.size).toBe(2);
    expect(a.events.filter(({ kind }) => kind === 'cluster.stranger')).toHaveLength(1);
  });
});

/** A program that is no gateway, and answers as one. Its port, and the paths and bodies that it gets. */
async function pretender() {
  const got: string[] = [];
  const server = http.createServer(async (received, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of received) chunks.push(chunk);
    got.push(`${received.url} ${Buffer.concat(chunks)}`);
    response.end(JSON.stringify({ state: 'ready', load: -1, isHome: true, jsonrpc: '2.0', id: 1, result: {} }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => void server.close().closeAllConnections());
  return { port: (server.address() as net.AddressInfo).port, got };
}

describe('another program at the address of a gateway that has ended', () => {
  it('F369: gets no request of a user, even if the store still has the gateway and homes there', async () => {
    const server = new MemoryServer(() => performance.now());
    const a = await startGateway({ server, name: 'aaaaaaaaaa' });
    const { port, got } = await pretender();
    const facts = { address: `127.0.0.1:${port}`, version: '1.0.0', servers: '', state: 'ready', load: -1, beat: 7 };
    await a.store.beat('bbbbbbbbbb', signText(KEYS, 'bbbbbbbbbb', JSON.stringify(facts)), 60_000);
    await a.store.claim('home:user:principal of ann', 'bbbbbbbbbb', 60_000);
    const list = modern(1, 'tools/list');
    expect((await a.http.post(list, headersFor(list, ANN))).status).toBe(200);
    expect(a.core.last.bodies).toHaveLength(1);
    const change = { kind: 'cluster.member', instance: 'bbbbbbbbbb', change: 'unreachable' };
    await expect.poll(() => a.events).toContainEqual(expect.objectContaining(change));
    expect(new Set(got)).toEqual(new Set(['/cluster/ping ']));
  });

  it('F369: answers no client, whose outcome is unknown', async () => {
    const { home, other, session, relay } = await withRelay();
    const { port } = await pretender();
    await relay.cut();
    await relay.leadTo(port);
    const call = request(1, 'tools/call', { name: 'x' });
    expect(errorOf((await other.http.post(call, session)).text)).toEqual(LOST);
    expect((await other.http.post(request(2, 'tools/list'), session)).status).toBe(200);
    expect([home.core.sessions.length, other.core.sessions.length]).toEqual([1, 1]);
  });
});

describe('gateways that cannot reach each other', () => {
  it('F379: serve the requests that come to them, each once, and agree on the home again', async () => {
    const { home, other, session, relay, back } = await withRelay();
    await Promise.all([relay.cut(), back.cut()]);
    const executed: unknown[] = [];
    for (const { core } of [home, other])
      core.onRequest = ({ id }, reply) => {
        executed.push(id);
        reply.answer(json({ jsonrpc: '2.0', id, result: {} }));
      };
    for (const [at, { http }] of [home, other, home, other, other].entries())
      expect((await http.post(request(at + 1, 'tools/call', { name: 'x' }), session)).status).toBe(200);
    await Promise.all([relay.open(), back.open()]);
    for (const { cluster } of [home, other])
      await expect.poll(() => cluster.facts.members).toMatchObject({ ready: 2, unreachable: 0 });
    for (const { http } of [home, other])
      expect((await http.post(request(9, 'tools/call', { name: 'x' }), session)).status).toBe(200);
    expect(executed).toEqual([1, 2, 3, 4, 5, 9, 9]);
    const open = () => [home, other].flatMap(({ core }) => core.sessions.filter(({ closed }) => closed === 0));
    await expect.poll(open).toHaveLength(1);
  });
});

describe('a gateway that ends', () => {
  it('serves no more requests of others, which serve them themselves', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    const replies = home.core.hold();
    const running = other.http.post(request(1, 'tools/call', { name: 'x' }), session);
    await until('it runs', () => replies.length === 1);
    await home.cluster.leave();
    expect((await other.http.post(request(2), session)).status).toBe(200);
    expect(other.core.last.isResumed).toBe(true);
    replies[0]?.answer(json({ jsonrpc: '2.0', id: 1, result: {} }));
    expect((await running).status).toBe(200);
  });

  it('goes on until the others have sent nothing for 2 s, because a request may be on its way', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    expect((await other.http.post(request(1), session)).status).toBe(200);
    await until('no client is connected', () => home.cluster.connections === 1);
    let isOver = false;
    const drained = home.http.front.drain(60_000).then(() => {
      isOver = true;
    });
    home.http.clock.advance(1_900);
    expect((await other.http.post(request(2), session)).status).toBe(200);
    expect(isOver).toBe(false);
    home.http.clock.advance(200);
    await drained;
  });

  it('gives away a user with a call in flight when the call is over', async () => {
    const { home, other, session } = await homeOfAnn(await two());
    const replies = home.core.hold();
    const running = home.http.post(request(1, 'tools/call', { name: 'x' }), session);
    await until('it runs', () => replies.length === 1);
    home.cluster.drain();
    await expect.poll(() => other.cluster.facts.members).toMatchObject({ draining: 1 });
    expect(home.core.last.closed).toBe(0);
    replies[0]?.answer(json({ jsonrpc: '2.0', id: 1, result: {} }));
    expect((await running).status).toBe(200);
    await until('it is given away', () => home.core.last.closed === 1);
    expect((await home.http.post(request(2), session)).status).toBe(200);
    expect([home.core.sessions.length, other.core.sessions.length]).toEqual([1, 1]);
  });
});

describe('a gateway whose clients have one token, beside one with users', () => {
  it('F373: serves them itself, also while it drains, and no user', async () => {
    const { a, b } = await two({}, { hasUsers: false });
    const session = await b.http.initialize();
    const list = modern(1, 'tools/list');
    await a.store.claim('home:user:principal of ann', b.name, 60_000);
    expect((await a.http.post(list, headersFor(list, ANN))).status).toBe(200);
    b.cluster.drain();
    expect((await b.http.post(list, headersFor(list))).status).toBe(200);
    expect((await b.http.post(request(2), session)).status).toBe(200);
    const [ofA, ofB] = [a, b].map(({ core }) => new Set(core.callers.map(({ user }) => user?.name)));
    expect([ofA, ofB]).toEqual([new Set(['ann']), new Set([undefined])]);
  });
});

describe('the peer port', () => {
  async function answerTo(port: number, head: string): Promise<string> {
    const socket = net.connect(port, '127.0.0.1');
    onTestFinished(async () => void socket.destroy());
    await once(socket, 'connect');
    socket.write(head);
    return await readToEnd(socket);
  }

  it.each([
    ['without a signature', '', ''],
    ['with a token of a user', `authorization: ${ANN.authorization}\r\n`, ''],
    ['with another signature', 'trunkline-hop: eyJ9.abc\r\n', ''],
    ['with two signatures', 'trunkline-hop: a.b\r\ntrunkline-hop: a.b\r\n', ''],
  ])('F365: refuses a request %s before its body has come', async (_, headers) => {
    const { a } = await two();
    const head = `POST /mcp HTTP/1.1\r\nhost: x\r\n${headers}content-length: 100000\r\n\r\n`;
    expect(await answerTo(a.peerPort, head)).toMatch(/^HTTP\/1.1 401 /);
    expect(a.core.sessions).toEqual([]);
  });

  it('F365: refuses a request of another gateway that was sent again, or has another body', async () => {
    const { a } = await two();
    const signer = new RequestSigner(KEYS, 'cccccccccc');
    const message = modern(1, 'tools/call', { name: 'x' });
    const body = Buffer.from(JSON.stringify(message));
    const host = `127.0.0.1:${a.peerPort}`;
    const caller = { principal: 'p', user: { principal: 'p', name: 'x', kind: 'user' as const, groups: [] } };
    const sign = () =>
      signer.sign({
        ...{
          to: a.name,
          method: 'POST',
          path: '/mcp',
          body,
          facts: { caller, client: { address: '10.0.0.9', port: 1 } },
        },
        headers: {
          ...{ host, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'x' },
        },
      });
    const statusOf = async (headers: object, sent: Buffer) => {
      const post = http.request({ port: a.peerPort, method: 'POST', path: '/mcp', headers: { ...headers } });
      post.end(sent);
      const [answer] = (await once(post, 'response')) as [http.IncomingMessage];
      answer.resume();
      return answer.statusCode;
    };
    const first = sign();
    expect(await statusOf(first, body)).toBe(200);
    expect(await statusOf(first, body)).toBe(401);
    expect(await statusOf(sign(), Buffer.from(body.toString().replace('"x"', '"y"')))).toBe(401);
    expect(a.core.last.bodies).toHaveLength(1);
  });
});

describe('a gateway after a pause', () => {
  /** Another gateway has taken ann over, while a call of hers runs at her home. */
  async function takenOver() {
    const { home, other, session, ...more } = await withRelay();
    const bob = { ...(await home.http.initialize('2025-11-25', BOB)), ...BOB };
    const replies = home.core.hold();
    const running = home.http.post(request(1, 'tools/call', { name: 'x' }), session);
    await until('it runs', () => replies.length === 1);
    await other.store.claim('home:user:principal of ann', other.name, 60_000, home.name);
    return { home, other, session, bob, running, ...more };
  }

  it('F366: ends the clients whose homes others have before it serves', async () => {
    const { home, other, session, running } = await takenOver();
    home.clock.pause(20_000);
    expect((await home.http.post(request(2), session)).status).toBe(200);
    expect(errorOf((await running).text)).toEqual(LOST);
    expect([home.core.sessions[0]?.closed, other.core.last.isResumed]).toEqual([1, true]);
    expect(home.core.keptEndings).toEqual(['principal of ann']);
    expect(home.events).toContainEqual({ kind: 'cluster.fenced', clients: 1 });
  });

  it('ends no client in the middle of its handshake, because few clients would repeat it', async () => {
    const { home, other, running } = await takenOver();
    let answerInitialize = () => {};
    home.core.onInitialize = (answer) => {
      answerInitialize = answer;
    };
    await home.store.claim('home:user:principal of ann', home.name, 60_000, other.name);
    const before = home.core.sessions.length;
    const opening = home.http.post(initializeRequest('2025-11-25'), { ...ANN });
    await until('it has begun', () => home.core.sessions.length > before);
    await other.store.claim('home:user:principal of ann', other.name, 60_000, home.name);
    home.clock.pause(20_000);
    const list = modern(2, 'tools/list');
    home.http.post(list, headersFor(list, BOB)).catch(() => {});
    expect(errorOf((await running).text)).toEqual(LOST);
    answerInitialize();
    expect((await opening).status).toBe(200);
  });

  it('F366: ends all of them if the store cannot say whose homes they are', async () => {
    const { home, other, server, running } = await takenOver();
    server.kill();
    home.clock.pause(20_000);
    const list = modern(2, 'tools/list');
    home.http.post(list, headersFor(list, BOB)).catch(() => {});
    expect(errorOf((await running).text)).toEqual(LOST);
    expect(other.cluster.size).toBe(2);
  });
});

describe('the store', () => {
  it('F367: is not needed for a start, for new sessions and for calls', async () => {
    const server = new MemoryServer(() => performance.now());
    server.kill();
    const a = await startGateway({ server, name: 'aaaaaaaaaa' });
    const session = { ...(await a.http.initialize('2025-11-25', ANN)), ...ANN };
    expect((await a.http.post(request(1), session)).status).toBe(200);
    const b = await startGateway({ server, name: 'bbbbbbbbbb' });
    server.restart();
    await until('they know each other', () => knows(a, b) && knows(b, a));
    // The gateway that has the user claims its home anew.
    await expect.poll(() => b.store.holderOf('home:user:principal of ann')).toBe(a.name);
    expect((await b.http.post(request(2), session)).status).toBe(200);
    expect(b.core.sessions).toEqual([]);
  });

  it('F367: that goes away, and comes back empty, changes no home', async () => {
    const { server, a, b } = await two();
    const { home, other, session } = await homeOfAnn({ a, b });
    server.kill();
    for (const { http } of [a, b]) expect((await http.post(request(1), session)).status).toBe(200);
    const bob = { ...(await other.http.initialize('2025-11-25', BOB)), ...BOB };
    for (const { http } of [a, b]) expect((await http.post(request(1), bob)).status).toBe(200);
    server.restart();
    for (const { store } of [a, b]) await until('it is found again', () => store.isUp);
    for (const { http } of [a, b])
      for (const one of [session, bob]) expect((await http.post(request(1), one)).status).toBe(200);
    expect([a.core.sessions.length + b.core.sessions.length, home.core.last.closed]).toEqual([2, 0]);
    expect(other.cluster.size).toBe(2);
  });
});
