import { describe, expect, it } from 'vitest';
import { type ServerScript, scriptGateway } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const SERVER = 'io.modelcontextprotocol/serverInfo';
const TASKS = 'io.modelcontextprotocol/tasks';
const HELLO = {
  capabilities: { tools: { listChanged: false }, 'x/y': {}, extensions: { 'e/e': { a: 1 } } },
  serverInfo: { name: 'itself', version: '7', unknown: 1 },
  instructions: 'Use me.',
};

/** A client without a handshake that sends `server/discover` to the one server that it sees unchanged. */
function discovering(script: ServerScript = {}) {
  const world = scriptGateway({ servers: { a: { hasBridge: true, tools: ['t'], hello: HELLO, ...script } } });
  const client = world.connect({ server: 'a' });
  client.modernRequest(1, 'server/discover');
  return { ...world, client, a: world.server('a') };
}

async function discovered(script: ServerScript): Promise<Message> {
  const { client, a } = discovering(script);
  await a.start();
  await flush();
  return client.answerTo(1)?.result;
}

describe('a client without a handshake that discovers one server', () => {
  it.each([
    ['legacy', false],
    ['modern', true],
  ])('gets what a %s server says about itself, and nothing that the server does not have', async (_, isModern) => {
    expect(await discovered({ isModern })).toEqual({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      supportedVersions: ['2026-07-28'],
      ...{ capabilities: HELLO.capabilities, instructions: HELLO.instructions },
      _meta: { [SERVER]: HELLO.serverInfo },
    });
  });

  it('waits until the server runs', async () => {
    const { client, a } = discovering();
    await flush();
    expect(client.received.lines).toEqual([]);
    await a.start();
    await flush();
    expect(client.answerTo(1)?.result.instructions).toBe('Use me.');
  });

  it('is told of the tasks of a legacy server as of the extension', async () => {
    const tasks = { requests: { tools: { call: {} } } };
    const { capabilities } = await discovered({ hello: { ...HELLO, capabilities: { tools: {}, tasks } } });
    expect(capabilities).toEqual({ tools: {}, extensions: { [TASKS]: {} } });
  });

  it('gets the name of the gateway from a server that has none', async () => {
    const { _meta } = await discovered({ hello: { capabilities: { logging: {} }, serverInfo: { name: 7 } } });
    expect(_meta[SERVER].name).toBe('trunkline');
  });

  it('is told why the server does not start', async () => {
    const { client, a } = discovering({ failureCause: 'Its last start failed: no key.', retryInMs: () => 9_000 });
    a.moved('parked');
    await flush();
    expect(client.answerTo(1)?.error).toMatchObject({ code: -32603 });
    expect(client.answerTo(1)?.error.message).toContain('Its last start failed: no key.');
  });

  it('may leave while it waits, and gets nothing', async () => {
    const { client, a, clock } = discovering({ sharing: 'isolated' });
    client.session.close();
    expect(a.isEnded).toBe(true);
    clock.advance(60_000);
    await flush();
    expect(client.received.lines).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});
