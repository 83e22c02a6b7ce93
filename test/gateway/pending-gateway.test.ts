import { describe, expect, it } from 'vitest';
import { PendingGateway } from '../../src/gateway/pending-gateway.js';
import { FakeClock } from '../support/fake-clock.js';
import { InMemoryClient } from '../support/in-memory-client.js';
import { ScriptedClient, scriptGateway } from '../support/scripted-gateway.js';

async function pending() {
  const clock = new FakeClock();
  const world = scriptGateway({ servers: { a: { tools: ['x'], hello: { instructions: 'Be a.' } } }, clock });
  const gateway = new PendingGateway(({ profile }) => ({
    offered: [{ extensions: { 'x/y': {} } }],
    instructions: `Known for ${profile.clientInfo.name}.`,
  }));
  const client = new ScriptedClient(gateway, clock);
  return { ...world, standIn: gateway, client };
}

describe('while the gateway is being put together', () => {
  it('a client gets an initialize result, and its ping is answered', async () => {
    const { client } = await pending();
    const { instructions, capabilities } = client.initialize().result;
    expect([instructions, capabilities.extensions]).toEqual(['Known for t.', { 'x/y': {} }]);
    client.request(1, 'ping');
    expect(client.answerTo(1)?.result).toEqual({});
  });

  it('requests are held, and handed on in their order', async () => {
    const { client, standIn, gateway, startAll, server } = await pending();
    client.initialize();
    client.request(1, 'tools/list');
    for (const n of [2, 3, 4]) client.call(n, 'a__x', { arguments: n });
    client.cancel(3);
    expect(client.received.lines).toEqual([]);
    await startAll();
    standIn.passTo(gateway);
    expect(client.answerTo(1)?.result.tools).toHaveLength(1);
    const { child } = server('a');
    expect(child.calls.map(({ params }) => params.arguments)).toEqual([2, 4]);
    child.answer(0, 'two');
    child.answer(1, 'four');
    expect([2, 3, 4].map((id) => client.answerTo(id)?.result)).toEqual(['two', undefined, 'four']);
  });

  it('no session of the gateway itself is known, and then that of the client that connected last', async () => {
    const { client, standIn, gateway, startAll, connect } = await pending();
    client.initialize();
    expect(standIn.newest).toBeUndefined();
    standIn.passTo(gateway);
    expect(standIn.newest?.facts.profile.clientInfo.name).toBe('t');
    expect(standIn.newest?.session.instructions).not.toContain('Be a.');
    await startAll();
    expect(standIn.newest?.session.instructions).toContain('Be a.');
    connect();
    InMemoryClient.open(standIn, { clientInfo: { name: 'late', version: '0' } });
    expect(standIn.newest?.facts.profile.clientInfo.name).toBe('late');
  });

  it('no more requests are held than a client could mean', async () => {
    const { client } = await pending();
    client.initialize();
    for (let id = 0; id < 1_025; id += 1) client.call(id, 'a__x');
    expect(client.received.messages.map(({ id, error }) => [id, error?.code])).toEqual([[1_024, -32603]]);
  });
});

describe('once the gateway is there', () => {
  it('everything goes to it, changes of the list come from it, and clients can leave', async () => {
    const { client, standIn, gateway, startAll, server, clock } = await pending();
    client.initialize();
    await startAll();
    standIn.passTo(gateway);
    expect(InMemoryClient.open(standIn).session.instructions).toContain('Be a.');
    client.request(1, 'tools/list');
    server('a').crash('parked');
    clock.advance(200);
    expect(client.received.last).toEqual({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    client.session.close();
    client.received.take();
    await server('a').start();
    clock.advance(5_000);
    expect(client.received.lines).toEqual([]);
  });
});
