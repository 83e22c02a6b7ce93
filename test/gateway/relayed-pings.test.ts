import { describe, expect, it } from 'vitest';
import { LIMITS, scriptGateway } from '../support/scripted-gateway.js';
import { flush } from '../support/wire.js';
import { seeing } from './seeing-one-server.js';

describe('a ping of a client that sees one server unchanged', () => {
  it.each([
    [{ result: { _meta: { mine: true } } }, { _meta: { mine: true } }],
    [{ error: { code: -32_601, message: 'No ping here' } }, { code: -32_601, message: 'No ping here' }],
  ])('is answered by the server, with %j', async (answer, expected) => {
    const { one, child } = await seeing();
    one.request(1, 'ping', { _meta: { a: 1 } });
    const [ping] = child().asked('ping');
    expect(ping?.params).toEqual({ _meta: { a: 1 } });
    expect(one.answerTo(1)).toBeUndefined();
    child().say({ jsonrpc: '2.0', id: ping?.id, ...answer });
    expect(one.answerTo(1)?.result ?? one.answerTo(1)?.error).toEqual(expected);
  });

  it('reaches the server past the calls that wait for it', async () => {
    const { one, child } = await seeing({ limits: { concurrency: 1 } });
    one.call(1, 'x');
    one.call(2, 'x');
    one.request(3, 'ping');
    expect(child().calls).toHaveLength(1);
    expect(child().asked('ping')).toHaveLength(1);
  });

  it('is answered by Trunkline while no process can, and starts none', async () => {
    const { one, a } = await seeing();
    const { demands } = a;
    a.crash();
    one.request(1, 'ping');
    a.moved('idle');
    one.request(2, 'ping');
    expect([one.answerTo(1)?.result, one.answerTo(2)?.result, a.demands - demands]).toEqual([{}, {}, 0]);
  });

  it('is answered by Trunkline when the process ends before it answers', async () => {
    const { one, a } = await seeing();
    one.request(1, 'ping');
    a.crash();
    expect(one.answerTo(1)?.result).toEqual({});
  });

  it('fails when a server that runs does not answer in time, which opens no circuit breaker', async () => {
    const { one, a, clock } = await seeing();
    for (let id = 1; id <= 6; id += 1) one.request(id, 'ping');
    clock.advance(LIMITS.listTimeoutMs);
    expect(one.answerTo(6)?.error).toMatchObject({ code: -32_603, data: { reason: 'timeout', server: 'a' } });
    expect(a.backend.dispatcher.breaker.state).toBe('closed');
  });

  it('is cancelled at the server, in the words of the client', async () => {
    const { one, child } = await seeing();
    one.request(1, 'ping');
    const notice = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, reason: 'late' } };
    one.say(notice);
    expect(child().cancellations.map(({ params }) => params)).toEqual([
      { requestId: child().asked('ping')[0]?.id, reason: 'late' },
    ]);
    expect(one.answerTo(1)).toBeUndefined();
  });

  it('is no call that a request of the server could belong to', async () => {
    const world = await seeing();
    world.connect({ server: 'a' }).greet();
    await flush();
    world.one.request(1, 'ping');
    world.child().say({ jsonrpc: '2.0', id: 'r', method: 'sampling/createMessage', params: {} });
    expect(world.one.received.take()).toEqual([]);
    expect(world.child().received.messages.at(-1)?.error).toBeDefined();
  });

  it('keeps no idle server running', async () => {
    const { one, a, clock } = await seeing({ idleStopMs: 1_000 });
    clock.advance(900);
    one.request(1, 'ping');
    a.child.reply('ping');
    clock.advance(200);
    expect(a.rests).toBe(1);
  });
});

describe.each([true, false])('a ping of a server (hasBridge: %s)', (hasBridge) => {
  const PING = { jsonrpc: '2.0', id: 'p', method: 'ping', params: { _meta: { s: 1 } } };

  it('is answered by its only client, if that client sees it unchanged', async () => {
    const { one, child } = await seeing({ hasBridge });
    child().say(PING);
    const [ping] = one.received.take();
    expect(ping).toMatchObject({ method: 'ping', params: PING.params });
    one.say({ jsonrpc: '2.0', id: ping?.id, result: { _meta: { c: 2 } } });
    expect(child().received.messages.at(-1)).toEqual({ jsonrpc: '2.0', id: 'p', result: { _meta: { c: 2 } } });
  });

  it('is answered by Trunkline when the client leaves instead', async () => {
    const { one, child } = await seeing({ hasBridge, sharing: 'profile' });
    child().say(PING);
    one.session.close();
    expect(child().received.messages.at(-1)).toEqual({ jsonrpc: '2.0', id: 'p', result: {} });
  });

  it('does not keep calls from timing out, as a question to a person does', async () => {
    const { one, child, clock } = await seeing({ hasBridge });
    one.call('c', 'x');
    child().say(PING);
    clock.advance(LIMITS.timeoutMs);
    expect(one.answerTo('c')?.result._meta['trunkline/failure']).toMatchObject({ reason: 'timeout' });
  });

  it('is answered by Trunkline if several clients use the server', async () => {
    const world = await seeing({ hasBridge });
    const second = world.connect({ server: 'a' }).greet();
    await flush();
    second.received.take();
    world.child().say(PING);
    expect([...world.one.received.take(), ...second.received.take()]).toEqual([]);
    expect(world.child().received.messages.at(-1)).toEqual({ jsonrpc: '2.0', id: 'p', result: {} });
  });

  it('is answered by Trunkline before both have shaken hands, as is one of the client', async () => {
    const world = scriptGateway({ servers: { a: { hasBridge, sharing: 'profile' } } });
    const one = world.connect({ server: 'a' });
    one.request('hello', 'initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 't', version: '0' },
    });
    one.request(1, 'ping');
    expect(one.answerTo(1)?.result).toEqual({});
    const child = await world.server('a').start();
    child.say(PING);
    expect(child.received.messages.at(-1)).toEqual({ jsonrpc: '2.0', id: 'p', result: {} });
  });
});
