import { describe, expect, it } from 'vitest';
import type { ClientOrigin } from '../../../src/downstream/port.js';
import type { Sharing } from '../../../src/gateway/registry/server-instances.js';
import { OWN_ORIGIN, type ScriptedClient, type ServerScript, scriptGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const ROOTS = { roots: { listChanged: true } };

/** One server with this sharing. */
function pooling(sharing: Sharing, script: Partial<ServerScript> = {}) {
  const world = scriptGateway({ servers: { a: { tools: ['x'], sharing, ...script } } });
  const handshake = (capabilities: Message = {}, name = 't', principal = 'somebody') =>
    world.connect({ principal }).greet('2025-11-25', capabilities, name);
  /** The handshake of a client with another origin. All of these clients have the same profile. */
  const handshakeFrom = (origin: Partial<ClientOrigin>) =>
    world.connect({ origin: { ...OWN_ORIGIN, ...origin } }).greet();
  /** The process that serves each client. */
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
  return { ...world, handshake, handshakeFrom, idOf };
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

describe('a server whose sharing is decided by its revision', () => {
  const MODERN = { hello: { protocolVersion: '2026-07-28' } };

  it('is a process for each session if its revision has sessions, and the process ends with the session', async () => {
    const { handshake, idOf, server } = pooling('auto');
    const [one, other] = [handshake(), handshake()];
    expect([await idOf(one), await idOf(other)]).toEqual(['a', 'a~2']);
    one.session.close();
    expect(server('a').isEnded).toBe(true);
    expect(await idOf(handshake())).toBe('a~3');
  });

  it('is one process for clients that look alike as soon as its first process has told a revision without sessions', async () => {
    const { handshake, idOf, server } = pooling('auto', MODERN);
    const one = handshake();
    expect(await idOf(one)).toBe('a');
    expect(await idOf(handshake())).toBe('a');
    expect(await idOf(handshake({ sampling: {} }))).toBe('a~2');
    one.session.close();
    expect(server('a').isEnded).toBe(false);
  });

  it('lets the process of a further session wait for a call while another one runs', async () => {
    const { gateway, handshake, server } = pooling('auto');
    gateway.start();
    handshake();
    handshake();
    expect([server('a').isToRun, server('a~2').isToRun]).toEqual([true, true]);
    await server('a').start();
    handshake();
    expect(server('a~3').isToRun).toBe(false);
  });

  it('keeps the process of a client that came before the revision was known for the next client', async () => {
    const { handshake, idOf } = pooling('auto', MODERN);
    const [one, other] = [handshake(), handshake()];
    expect([await idOf(one), await idOf(other)]).toEqual(['a', 'a~2']);
    one.session.close();
    expect(await idOf(handshake())).toBe('a');
  });

  it('is shared from the first client on if an earlier run has found the revision', async () => {
    const { handshake, idOf } = pooling('auto', { ...MODERN, wasSessionless: true });
    const clients = [handshake(), handshake()];
    expect([await idOf(clients[0] as ScriptedClient), await idOf(clients[1] as ScriptedClient)]).toEqual(['a', 'a']);
  });

  it('is a process for each further session if an update has given it a revision with sessions', async () => {
    const { handshake, idOf } = pooling('auto', { wasSessionless: true });
    expect(await idOf(handshake())).toBe('a');
    expect([await idOf(handshake()), await idOf(handshake())]).toEqual(['a~2', 'a~3']);
  });
});

describe('a server that names variables', () => {
  const NAMED = { variables: ['KEY'] };
  const withKey = (KEY: string) => ({ environment: { KEY, OTHER: `with ${KEY}` } });

  it.each<[Sharing]>([['profile'], ['folder'], ['all']])(
    'and is shared by %s is a process for each set of values, shared by the clients that have them',
    async (sharing) => {
      const { handshakeFrom, idOf, server } = pooling(sharing, NAMED);
      const clients = ['1', '2', '1'].map((key) => handshakeFrom(withKey(key)));
      const ids = [];
      for (const client of clients) ids.push(await idOf(client));
      expect(ids[2]).toBe(ids[0]);
      expect(ids[1]).not.toBe(ids[0]);
      expect(ids.map((id) => server(id ?? '').origin?.environment.KEY)).toEqual(['1', '2', '1']);
    },
  );

  it('is one process for clients that differ only in variables that it does not name', async () => {
    const { handshakeFrom, idOf } = pooling('profile');
    expect([await idOf(handshakeFrom(withKey('1'))), await idOf(handshakeFrom(withKey('2')))]).toEqual(['a', 'a']);
  });

  it('gives the process that runs already to no client with other values', async () => {
    const { handshakeFrom, handshake, idOf } = pooling('profile', NAMED);
    const ids = [await idOf(handshakeFrom(withKey('1'))), await idOf(handshake())];
    expect(ids).toEqual(['a~2', 'a']);
  });

  it('gives the process that runs already to a client whose values are those of the gateway', async () => {
    const { handshakeFrom, handshake, idOf, server } = pooling('profile', NAMED);
    expect([await idOf(handshakeFrom({})), await idOf(handshake())]).toEqual(['a', 'a']);
    expect(server('a').origin).toBeUndefined();
  });

  it('ends for values that no client has any more, even if all clients share it', () => {
    const { handshakeFrom, server, clock } = pooling('all', NAMED);
    handshakeFrom(withKey('1')).session.close();
    clock.advance(599_999);
    expect(server('a~2').isEnded).toBe(false);
    clock.advance(1);
    expect([server('a').isEnded, server('a~2').isEnded]).toEqual([false, true]);
    expect(clock.pending).toBe(0);
  });

  it.each<[name: string, principals: readonly (string | undefined)[]]>([
    ['user:KEY', ['ann', 'bob']],
    ['KEY', [undefined, undefined]],
  ])(
    'and is shared by all keeps its lists apart for each user only if it depends on users: %s',
    async (name, principals) => {
      const { handshakeFrom, server } = pooling('all', { variables: [name] });
      for (const user of ['ann', 'bob']) handshakeFrom({ ...withKey(user), user });
      const profiles = await Promise.all(['a~2', 'a~3'].map((id) => server(id).profile));
      expect(profiles.map(({ principal }) => principal)).toEqual(principals);
    },
  );

  it('says nothing in the handshake that a process with other values has said', async () => {
    const { handshakeFrom, connect, server } = pooling('profile', { ...NAMED, hello: { instructions: 'Of one.' } });
    handshakeFrom(withKey('1'));
    await server('a~2').start();
    const initialize = (key: string) => {
      const client = connect({ origin: { ...OWN_ORIGIN, ...withKey(key) } });
      return client.initialize('2025-11-25', { sampling: {} }).result.instructions;
    };
    expect(initialize('1')).toContain('Of one.');
    expect(initialize('2')).not.toContain('Of one.');
  });

  it('is one backend without a process for clients for which it cannot run, and a process for the others', async () => {
    const { handshakeFrom, handshake, server, ids } = pooling('profile', { ...NAMED, isMisconfigured: true });
    for (const name of ['one', 'two']) handshake({}, name);
    handshakeFrom({});
    expect(ids()).toEqual(['a']);
    handshakeFrom(withKey('1'));
    expect(ids()).toEqual(['a', 'a~2']);
    expect(server('a').backend.clients.size).toBe(3);
  });
});

describe('a server shared by folder', () => {
  it('is a process for each folder, shared by the clients that look alike to it there', async () => {
    const { handshakeFrom, connect, idOf, server } = pooling('folder');
    const [one, other, same] = [
      handshakeFrom({ folder: '/x' }),
      handshakeFrom({ folder: '/y' }),
      handshakeFrom({ folder: '/x' }),
    ];
    const different = connect({ origin: { ...OWN_ORIGIN, folder: '/x' } }).greet('2025-11-25', { sampling: {} });
    const ids = [];
    for (const client of [one, other, same, different]) ids.push((await idOf(client)) ?? '');
    expect(ids).toEqual(['a', 'a~2', 'a', 'a~3']);
    expect(ids.map((id) => server(id).origin?.folder)).toEqual(['/x', '/y', '/x', '/x']);
  });

  it('runs nowhere before its first client is there', () => {
    const { gateway, handshakeFrom, ids, started } = pooling('folder');
    gateway.start();
    expect([ids(), gateway.isReady]).toEqual([[], true]);
    handshakeFrom({ folder: '/x' });
    expect(started).toEqual(['a']);
  });

  it('serves clients without a folder of their own in that of the gateway', async () => {
    const { handshake, handshakeFrom, idOf } = pooling('folder');
    expect([await idOf(handshake()), await idOf(handshakeFrom({ folder: '/own' }))]).toEqual(['a', 'a']);
  });

  it('is one process for all folders if it is shared by profile', async () => {
    const { handshakeFrom, idOf } = pooling('profile');
    expect([await idOf(handshakeFrom({ folder: '/x' })), await idOf(handshakeFrom({ folder: '/y' }))]).toEqual([
      'a',
      'a',
    ]);
  });
});
