import { describe, expect, it } from 'vitest';
import { legacyEra } from '../../../src/downstream/legacy/legacy-session.js';
import { modernEra } from '../../../src/downstream/modern/modern-session.js';
import { eraChooser } from '../../../src/downstream/transport.js';
import { memoryPair } from '../../../src/hub/attach/attach.js';
import { AttachSession } from '../../../src/hub/attach/attach-session.js';
import { HubClients } from '../../../src/hub/server/hub-clients.js';
import { type Hello, WIRE } from '../../../src/hub/wire.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { Backpressure } from '../../../src/wire/io/streams/backpressure.js';
import { scriptGateway } from '../../support/scripted-gateway.js';
import { flush, lineOf, type Message, scan } from '../../support/wire.js';

async function hub(maxClients = 8) {
  const { clock, gateway, server, startAll } = scriptGateway({
    servers: { a: { tools: ['x'] } },
    views: { views: [{ name: 'none', servers: [] }], clients: [] },
  });
  await startAll();
  const serverInfo = { name: 'trunkline', version: '1' };
  const legacy = legacyEra({ clock, scan, gateway, serverInfo });
  const modern = modernEra({ clock, scan, gateway, serverInfo });
  let giveUp = () => {};
  const clients = new HubClients({
    ...{ clock, scan, principal: 'local', maxLineBytes: 1024 * 1024 },
    backpressure: new Backpressure(),
    chooseEra: eraChooser({ legacy, modern }),
    maxClients: () => maxClients,
    limitDrain: (_, then) => {
      giveUp = then;
      return () => {};
    },
    onUnread: () => {},
    onChange: () => {},
  });
  const attach = (resumed = 0, view?: string) => {
    const [here, there] = memoryPair();
    const received: Message[] = [];
    const closings: string[] = [];
    const session = new AttachSession({
      toClient: (bytes) => {
        for (const line of Buffer.from(bytes).toString().split('\n')) if (line !== '') received.push(JSON.parse(line));
        return false;
      },
      toHub: (bytes) => here.write(Buffer.from(bytes)),
      onMoved: () => {},
      onClosed: (because) => closings.push(because),
    });
    here.on('data', (chunk: Uint8Array) => copyInto(session, chunk));
    const facts = { wire: WIRE, proof: '', role: 'client', version: '1', pid: 1 } as const;
    const hello: Hello = { ...facts, folder: '/', environment: {}, ...(view !== undefined && { view }), resumed };
    const refusal = clients.open(hello, {
      stream: there,
      reader: { handOver: (next) => there.on('data', (chunk: Uint8Array) => copyInto(next, chunk)) },
      welcome: () => {},
    });
    session.attached();
    const say = async (...messages: Message[]) => {
      for (const message of messages) session.fromClient(Buffer.from(lineOf({ jsonrpc: '2.0', ...message })));
      await flush();
    };
    const begin = async () => {
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: { roots: {} },
        clientInfo: { name: 't', version: '1' },
      };
      await say({ id: 0, method: 'initialize', params }, { method: 'notifications/initialized' });
    };
    return { stream: here, received, closings, session, refusal, say, begin };
  };
  return { clock, clients, attach, child: server('a').child, giveUp: () => giveUp() };
}

const call = (id: number) => ({ id, method: 'tools/call', params: { name: 'a__x' } });

describe('the sessions of a hub', () => {
  it.each([[undefined], ['stopped'], ['off']] as const)(
    'that it closes, because %s, tell why, and leave what is in flight to the attach process',
    async (because) => {
      const { clients, attach } = await hub();
      const client = attach();
      await client.begin();
      await client.say(call(1));
      clients.close(because);
      await flush();
      expect([client.closings, client.session.inFlight, clients.size]).toEqual([because ? [because] : [], 1, 0]);
      client.session.detached();
      expect(client.received.at(-1)).toMatchObject({ id: 1, result: { isError: true } });
    },
  );

  it.each([
    ['nothing to a new client', 0, []],
    ['the lists to a client of an earlier hub, which may have had others', 1, ['notifications/tools/list_changed']],
  ])('announce %s when it opens a subscription', async (_, resumed, announced) => {
    const { attach } = await hub();
    const client = attach(resumed);
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    await client.say({
      id: 1,
      method: 'subscriptions/listen',
      params: { _meta, notifications: { toolsListChanged: true } },
    });
    const methods = client.received.map(({ method }) => method);
    expect(methods).toEqual(['notifications/subscriptions/acknowledged', ...announced]);
    expect(client.session.inFlight).toBe(0);
  });

  it('show each client the view that its hello asks for', async () => {
    const { attach } = await hub();
    const tools = async (view?: string) => {
      const client = attach(0, view);
      await client.begin();
      await client.say({ id: 1, method: 'tools/list' });
      return client.received.at(-1)?.result.tools.length;
    };
    expect([await tools(), await tools('none')]).toEqual([1, 0]);
  });

  it('whose client has closed its end and gets no answers in time are drained', async () => {
    const { attach, giveUp, clients } = await hub();
    const client = attach();
    await client.begin();
    await client.say(call(1));
    client.stream.end();
    await flush();
    expect(clients.size).toBe(1);
    giveUp();
    await flush();
    expect([client.closings, clients.size]).toEqual([['drained'], 0]);
  });

  it('F105: whose client is gone are forgotten, and their calls cancelled, while others go on', async () => {
    const { attach, clients, child } = await hub();
    const [one, other] = [attach(), attach()];
    await one.begin();
    await other.begin();
    await one.say(call(1));
    await other.say(call(1));
    one.stream.destroy();
    await flush();
    expect(clients.size).toBe(1);
    expect(child.received.messages.filter(({ method }) => method === 'notifications/cancelled')).toHaveLength(1);
    child.answer(1, {});
    await flush();
    expect([other.received.at(-1)?.id, other.session.inFlight]).toEqual([1, 0]);
  });

  it('give server requests other ids than the hub before', async () => {
    const { attach, child } = await hub();
    const client = attach(1);
    await client.begin();
    await client.say(call(1));
    child.say({ jsonrpc: '2.0', id: 'q', method: 'roots/list' });
    await flush();
    const asked = client.received.find(({ method }) => method === 'roots/list');
    expect(asked?.id).toBe(2 ** 20 + 1);
    await client.say({ id: 1, result: { roots: [] } });
    expect(child.received.messages.some(({ id }) => id === 'q')).toBe(false);
    await client.say({ id: asked?.id, result: { roots: [] } });
    expect(child.received.messages.at(-1)).toMatchObject({ id: 'q', result: { roots: [] } });
  });

  it('are as many as the configuration says', async () => {
    const { attach, clients } = await hub(1);
    expect([attach().refusal, attach().refusal, clients.size]).toEqual([undefined, 'full', 1]);
  });
});
