import { describe, expect, it } from 'vitest';
import type { Sharing } from '../../../src/gateway/registry/instances.js';
import { type ScriptedClient, scriptGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const ROOTS = { roots: { listChanged: true } };

/** One server that is shared in this way. */
function pooling(sharing: Sharing) {
  const world = scriptGateway({ servers: { a: { tools: ['x'], sharing } } });
  const handshake = (capabilities: Message = {}, name = 't', principal = 'somebody') => {
    const client = world.connect({ principal });
    client.initialize('2025-11-25', capabilities, name);
    return client;
  };
  /** Which process serves each client, by what reaches it. */
  const idOf = async (client: ScriptedClient) => {
    for (const id of world.ids()) if (world.server(id).generation === 0) await world.server(id).start();
    const marker = Math.random();
    client.call('which', 'a__x', { arguments: { marker } });
    const found = world
      .ids()
      .find((id) => world.server(id).child.calls.some(({ params }) => params.arguments?.marker === marker));
    world.server(found ?? 'a').child.answer(world.server(found ?? 'a').child.calls.length - 1);
    client.received.take();
    return found;
  };
  return { ...world, handshake, idOf };
}

describe('a server shared by profile', () => {
  it('is one process for clients that look alike to it, whatever the order of their members', async () => {
    const { handshake, idOf } = pooling('profile');
    const one = handshake({ sampling: {}, x: { a: 1, b: 2 } });
    const other = handshake({ x: { b: 2, a: 1 }, sampling: {} });
    expect([await idOf(one), await idOf(other)]).toEqual(['a', 'a']);
  });

  it.each<[string, Parameters<ReturnType<typeof pooling>['handshake']>]>([
    ['capabilities', [{ sampling: {} }]],
    ['name', [{}, 'another']],
    ['principal', [{}, 't', 'somebody else']],
  ])('is another process for a client of another %s', async (_, traits) => {
    const { handshake, idOf } = pooling('profile');
    expect([await idOf(handshake()), await idOf(handshake(...traits))]).toEqual(['a', 'a~2']);
  });

  it('is told of its client as that describes itself, and of nobody before', async () => {
    const { handshake, server } = pooling('profile');
    let told: unknown;
    void server('a').profile.then((profile) => {
      told = profile;
    });
    await flush();
    expect(told).toBeUndefined();
    handshake({ sampling: {}, unknown: { x: 1 } }, 'me');
    await flush();
    expect(told).toMatchObject({
      protocolVersion: '2025-11-25',
      capabilities: { sampling: {}, unknown: { x: 1 } },
      clientInfo: { name: 'me', version: '0' },
    });
  });

  it('keeps running a while without clients, and serves the next one like its last', async () => {
    const { handshake, idOf, server, clock } = pooling('profile');
    handshake().session.close();
    clock.advance(599_999);
    const next = handshake();
    clock.advance(600_000);
    expect(server('a').isEnded).toBe(false);
    expect(await idOf(next)).toBe('a');
    next.session.close();
    clock.advance(600_000);
    expect(server('a').isEnded).toBe(true);
    expect(await idOf(handshake())).toBe('a~2');
  });

  it('has two processes at most that wait for clients; the one that waited longest goes', () => {
    const { handshake, server, clock } = pooling('profile');
    const clients = ['one', 'two', 'three'].map((name) => handshake({}, name));
    for (const client of clients) {
      client.session.close();
      clock.advance(1);
    }
    expect(['a', 'a~2', 'a~3'].map((id) => server(id).isEnded)).toEqual([true, false, false]);
  });

  it('is a process for each client that has roots, once it has asked for any', async () => {
    const { handshake, idOf, server } = pooling('profile');
    const first = handshake(ROOTS);
    expect(await idOf(first)).toBe('a');
    server('a').child.say({ jsonrpc: '2.0', id: 'r', method: 'roots/list' });
    const input = first.received.last;
    expect(input?.method).toBe('roots/list');
    const [second, third] = [handshake(ROOTS), handshake(ROOTS)];
    expect([await idOf(second), await idOf(third), await idOf(first)]).toEqual(['a~2', 'a~3', 'a']);
    first.session.close();
    expect(server('a').isEnded).toBe(true);
  });

  it('stays one process for clients without roots, even if it asks for them', async () => {
    const { handshake, idOf, server } = pooling('profile');
    const first = handshake();
    await idOf(first);
    server('a').child.say({ jsonrpc: '2.0', id: 'r', method: 'roots/list' });
    expect(server('a').child.received.last).toMatchObject({ id: 'r', error: { code: -32601 } });
    expect([await idOf(handshake()), await idOf(handshake(ROOTS))]).toEqual(['a', 'a~2']);
    first.session.close();
    expect(server('a').isEnded).toBe(false);
  });

  it('is tried again for a client that comes when it is tried no more by itself', async () => {
    const { handshake, server } = pooling('profile');
    server('a').moved('starting');
    handshake();
    expect(server('a').demands).toBe(0);
    server('a').moved('parked');
    handshake();
    expect(server('a').demands).toBe(1);
  });

  it('does not ask two clients that share it for roots, since they may have different ones', async () => {
    const { handshake, idOf, server } = pooling('profile');
    const clients = [handshake(ROOTS), handshake(ROOTS)];
    await idOf(clients[0] ?? handshake());
    server('a').child.say({ jsonrpc: '2.0', id: 'r', method: 'roots/list' });
    expect(clients.flatMap(({ received }) => received.messages)).toEqual([]);
    expect(server('a').child.received.last).toMatchObject({ id: 'r', error: { code: -32603 } });
  });
});

describe('an isolated server', () => {
  it('is a process for each client, which ends with it', async () => {
    const { handshake, idOf, server } = pooling('isolated');
    const [one, other] = [handshake(), handshake()];
    expect([await idOf(one), await idOf(other)]).toEqual(['a', 'a~2']);
    one.session.close();
    expect([server('a').isEnded, server('a~2').isEnded]).toEqual([true, false]);
    expect(await idOf(handshake())).toBe('a~3');
  });

  it('says nothing of one client to another', async () => {
    const { handshake, idOf, server } = pooling('isolated');
    const [one, other] = [handshake(), handshake()];
    await idOf(one);
    server('a').child.say({ jsonrpc: '2.0', method: 'notifications/vendor', params: { of: 'one' } });
    server('a~2').child.say({ jsonrpc: '2.0', method: 'notifications/vendor', params: { of: 'other' } });
    expect([one, other].map(({ received }) => received.messages.map(({ params }) => params.of))).toEqual([
      ['one'],
      ['other'],
    ]);
  });
});

describe('a server shared by all', () => {
  it('is one process for all clients, and is told what the gateway can see to', async () => {
    const { handshake, idOf, server } = pooling('all');
    expect(await server('a').profile).toMatchObject({ clientInfo: { name: 'trunkline' } });
    expect([await idOf(handshake()), await idOf(handshake({ sampling: {} }, 'other', 'else'))]).toEqual(['a', 'a']);
  });

  it('keeps running without clients', () => {
    const { handshake, server, clock } = pooling('all');
    handshake().session.close();
    clock.advance(86_400_000);
    expect(server('a').isEnded).toBe(false);
  });
});

describe('clients of different processes', () => {
  it('each see the lists of their own', async () => {
    const { handshake, server, clock } = pooling('profile');
    const [one, other] = [handshake({}, 'one'), handshake({}, 'other')];
    server('a~2').pages = ['{"tools":[{"name":"y","inputSchema":{"type":"object"}}]}'];
    await server('a').start();
    await server('a~2').start();
    for (const client of [one, other]) client.request(1, 'tools/list');
    const names = (client: ScriptedClient) => client.answerTo(1)?.result.tools.map(({ name }: Message) => name);
    expect([names(one), names(other)]).toEqual([['a__x'], ['a__y']]);
    server('a').crash('parked');
    clock.advance(1_000);
    expect(one.received.last?.method).toBe('notifications/tools/list_changed');
    expect(other.received.messages).toHaveLength(1);
  });
});
