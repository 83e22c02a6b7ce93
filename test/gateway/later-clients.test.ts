import { describe, expect, it } from 'vitest';
import { ABOUT } from '../../src/gateway/pending-gateway.js';
import type { Sharing } from '../../src/gateway/registry/server-instances.js';
import { offering, type ScriptedClient, scriptGateway, type Who } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const UI = 'io.modelcontextprotocol/ui';
const HELLO = {
  capabilities: {
    tools: {},
    prompts: {},
    experimental: { e: {} },
    'x/y': {},
    extensions: { [UI]: { mimeTypes: ['m'] } },
  },
  serverInfo: { name: 'a', version: '1', title: 'Alpha' },
  instructions: 'Use me.',
};

/** What a client is told when it connects: with a handshake, or by `server/discover`. */
const ERAS: Record<string, (client: ScriptedClient) => Message> = {
  legacy: (client) => client.initialize().result,
  modern: (client) => {
    client.modernRequest('d', 'server/discover');
    return client.answerTo('d')?.result;
  },
};

const FOLDERS = [1, 2].map((number) => ({ environment: { TOKEN: `${number}` }, folder: `/f${number}` }));
const users = (name: string) => ({ kind: 'user', principal: name, name, groups: [] }) as const;

/** A gateway with one server whose first client has left, so long ago that the process has ended unless it is for all. */
async function left(sharing: Sharing, who: Who = {}, isModern = false) {
  const script = { ...offering({ prompts: ['p'] }), hello: HELLO, tools: ['t'], sharing, isModern, hasBridge: true };
  const world = scriptGateway({ servers: { a: { ...script, variables: ['TOKEN'] } } });
  const first = world.connect(who).greet();
  await world.startAll();
  const again = world.connect(who);
  const seen = Object.fromEntries(
    Object.entries(ERAS).map(([era, ask]) => [era, ask(era === 'legacy' ? again : world.connect(who))]),
  );
  await flush();
  for (const client of [first, again]) client.session.close();
  world.clock.advance(700_000);
  await flush();
  return { ...world, seen };
}

describe.each(Object.entries(ERAS))('a client of the %s era that connects alone after others', (era, ask) => {
  it.each<[Sharing, Who]>([
    ['auto', {}],
    ['auto', { origin: FOLDERS[0] }],
    ['auto', { user: users('u') }],
    ['isolated', {}],
    ['profile', {}],
    ['profile', { user: users('u') }],
    ['user', { user: users('u') }],
    ['folder', { origin: FOLDERS[0] }],
    ['all', {}],
    ['all', { user: users('u') }],
  ])('is told of a server with sharing %s the same as the clients before, by %j', async (sharing, who) => {
    for (const isModern of [false, true]) {
      const { connect, seen, clock } = await left(sharing, who, isModern);
      expect(seen[era]?.instructions).toContain('Use me.');
      expect(seen[era]?.instructions).toContain('Alpha: tools t');
      expect(seen[era]?.capabilities).toMatchObject({
        experimental: { e: {} },
        extensions: { [UI]: { mimeTypes: ['m'] } },
      });
      for (let count = 0; count < 9; count += 1) {
        const client = connect(who);
        expect(ask(client)).toEqual(seen[era]);
        client.session.close();
        clock.advance(700_000);
      }
    }
  });

  it('is told nothing that the process of another folder, or with other variables, has said', async () => {
    const { connect } = await left('folder', { origin: FOLDERS[0] });
    expect(ask(connect({ origin: FOLDERS[1] })).instructions).toBe(ABOUT);
  });

  it.each<Sharing>(['auto', 'profile', 'user'])(
    'is told nothing that the process of another user has said, with %s',
    async (sharing) => {
      const { connect } = await left(sharing, { user: users('u') });
      expect(ask(connect({ user: users('other') })).instructions).toBe(ABOUT);
    },
  );

  it('is told nothing of a program that the configuration has replaced', async () => {
    const { connect, change } = await left('isolated');
    change({ a: { tools: ['other'], sharing: 'isolated' } }, ['a']);
    expect(ask(connect()).instructions).toBe(ABOUT);
  });

  it('is told what the server said before another change, with the tools that the new configuration shows', async () => {
    const { connect, change } = await left('isolated');
    change({ a: { tools: ['t'], sharing: 'isolated', variables: ['TOKEN'], filter: { deny: ['t'] } } });
    const { instructions } = ask(connect());
    expect(instructions).toContain('Use me.');
    expect(instructions).not.toContain('tools t');
  });

  it('is told nothing of a server that has failed for good', async () => {
    const { connect, server } = await left('all');
    server('a').crash('parked');
    expect(ask(connect()).instructions).toBe(ABOUT);
  });

  it('is told the same while a shared server starts anew', async () => {
    const { connect, server, seen } = await left('all');
    server('a').crash();
    expect(ask(connect())).toEqual(seen[era]);
  });
});
