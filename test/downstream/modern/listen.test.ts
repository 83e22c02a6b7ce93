import { describe, expect, it } from 'vitest';
import { PendingGateway } from '../../../src/gateway/pending-gateway.js';
import { offering, ScriptedClient, scriptGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';
import { ACKNOWLEDGED, listening, notified, OTHER, SUBSCRIPTION_ID, TOOLS_CHANGED, UPDATED, URI } from './listening.js';

const ALL_LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
const REFUSAL = { error: { code: -32601, message: 'no subscriptions here' } };

describe('a subscription', () => {
  it('is acknowledged first, with what is honored and the id as the client wrote it', async () => {
    const { connect, listen } = await listening();
    const client = connect();
    listen(client, 7, { ...ALL_LISTS, promptsListChanged: false, resourceSubscriptions: [], vendor: ['t'] });
    listen(client, '7', {});
    expect(client.received.take()).toEqual([
      {
        jsonrpc: '2.0',
        method: ACKNOWLEDGED,
        params: {
          notifications: { toolsListChanged: true, resourcesListChanged: true },
          _meta: { [SUBSCRIPTION_ID]: 7 },
        },
      },
      { jsonrpc: '2.0', method: ACKNOWLEDGED, params: { notifications: {}, _meta: { [SUBSCRIPTION_ID]: '7' } } },
    ]);
  });

  it.each([
    ['no filter', undefined, 'params.notifications must be an object'],
    ['a list as filter', [], 'params.notifications must be an object'],
    ['a text as flag', { toolsListChanged: 'yes' }, 'params.notifications.toolsListChanged must be a boolean'],
    [
      'one URI that is not in an array',
      { resourceSubscriptions: URI },
      'params.notifications.resourceSubscriptions must be an array of strings',
    ],
    [
      'a URI that is not a string',
      { resourceSubscriptions: [URI, 1] },
      'params.notifications.resourceSubscriptions must be an array of strings',
    ],
    [
      'more resources than one subscription takes',
      { resourceSubscriptions: Array.from({ length: 1_025 }, (_, at) => `x://a/${at}`) },
      'params.notifications.resourceSubscriptions names 1025 resources, and one subscription takes 1024: open several subscriptions',
    ],
    ['one task that is not in an array', { taskIds: 't' }, 'params.notifications.taskIds must be an array of strings'],
    [
      'more tasks than one subscription takes',
      { taskIds: Array.from({ length: 1_025 }, (_, at) => `${at}`) },
      'params.notifications.taskIds names 1025 tasks, and one subscription takes 1024: open several subscriptions',
    ],
  ])('is refused with %s', async (_, notifications, message) => {
    const { connect, listen, heard } = await listening();
    const client = connect();
    listen(client, 1, notifications as Message);
    expect(client.received.take()).toEqual([{ jsonrpc: '2.0', id: 1, error: { code: -32602, message } }]);
    expect(heard()).toEqual([]);
  });

  it('is refused beyond 64 of one client, until one of them ends', async () => {
    const { connect, listen } = await listening();
    const client = connect();
    for (let id = 1; id <= 65; id += 1) listen(client, id, {});
    expect(client.received.take().at(-1)).toMatchObject({ id: 65, error: { code: -32603 } });
    client.cancel(3);
    listen(client, 66, {});
    expect(notified(client)).toEqual([[66, ACKNOWLEDGED]]);
  });

  it('is refused when the filters of one client have more than 4 MiB together, until one of them ends', async () => {
    const { connect, listen, agree } = await listening();
    const client = connect();
    const filter = { taskIds: [], resourceSubscriptions: [`x://a/${'x'.repeat(2 * 1024 * 1024)}`] };
    const bytes = JSON.stringify(filter).length;
    listen(client, 1, filter);
    await agree(REFUSAL);
    listen(client, 2, filter);
    await flush();
    const message = `The filters of all open subscriptions would have ${2 * bytes} bytes, and the limit is 4194304: end a subscription first, or name fewer resources and tasks`;
    expect(client.received.take().at(-1)).toEqual({ jsonrpc: '2.0', id: 2, error: { code: -32603, message } });
    client.cancel(1);
    listen(client, 3, filter);
    await agree(REFUSAL);
    expect(notified(client)).toEqual([[3, ACKNOWLEDGED]]);
  });

  it('keeps its id from other requests while it is open', async () => {
    const { connect, listen, server } = await listening();
    const client = connect();
    listen(client, 1, {});
    listen(client, 1, {});
    client.modernRequest(1, 'tools/call', { name: 'a__one' });
    const refused = { id: 1, error: { code: -32600 } };
    expect(client.received.take().slice(1)).toMatchObject([refused, refused]);
    client.modernRequest(2, 'tools/call', { name: 'a__one' });
    listen(client, 2, {});
    server('a').child.answer(0);
    expect(client.received.take()).toMatchObject([
      { id: 2, error: { code: -32600 } },
      { id: 2, result: {} },
    ]);
    expect(client.session.inFlight).toBe(0);
  });
});

describe('changes of lists', () => {
  it('reach the subscriptions that asked for them, also if the client has never read a list', async () => {
    const { connect, listen, changeTools } = await listening();
    const client = connect();
    listen(client, 'tools', { toolsListChanged: true });
    listen(client, 'prompts', { promptsListChanged: true });
    listen(client, 'all', ALL_LISTS);
    client.received.take();
    await changeTools('one', 'two');
    expect(notified(client)).toEqual([
      ['tools', TOOLS_CHANGED],
      ['all', TOOLS_CHANGED],
    ]);
  });

  it('reach a subscription while another server starts, for a list that no client has ever read', async () => {
    const prompts: Message = { prompts: [{ name: 'p' }] };
    const offered = offering({ prompts: [] });
    const lists: Record<string, Message> = { ...offered.lists, 'prompts/list': prompts };
    const { connect, clock, server } = scriptGateway({ servers: { a: { ...offered, lists }, b: {} } });
    const child = await server('a').start();
    await flush();
    const client = connect();
    client.modernRequest(1, 'subscriptions/listen', { notifications: { promptsListChanged: true } });
    client.received.take();
    for (const name of ['q', 'r']) {
      lists['prompts/list'] = { prompts: [{ name }] };
      child.say({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed' });
      clock.advance(1_000);
      await flush();
      clock.advance(1_000);
      expect(notified(client)).toEqual([[1, 'notifications/prompts/list_changed']]);
    }
  });

  it('of a server that the client sees unchanged arrive as the server wrote them', async () => {
    const { connect, listen, clock, server } = await listening();
    const client = connect({ server: 'a' });
    listen(client, 1, { toolsListChanged: true });
    client.received.take();
    const { child } = server('a');
    child.say(
      `{"jsonrpc":"2.0","method":"${TOOLS_CHANGED}","params":{"_meta":{"x":1.0,"${SUBSCRIPTION_ID}":99},"y":2}}`,
    );
    clock.advance(0);
    expect(client.received.lines).toEqual([
      `{"jsonrpc":"2.0","method":"${TOOLS_CHANGED}","params":{"_meta":{"x":1.0,"${SUBSCRIPTION_ID}":1},"y":2}}`,
    ]);
  });
});

describe('updates of resources', () => {
  it('reach the subscriptions with the URI', async () => {
    const { connect, opened, update, heard } = await listening();
    const client = connect();
    const acknowledged = await opened(client, 1, { resourceSubscriptions: [URI, OTHER] });
    expect(acknowledged.params.notifications).toEqual({ resourceSubscriptions: [URI, OTHER] });
    await opened(client, 2, { resourceSubscriptions: [OTHER] });
    await opened(client, 3, ALL_LISTS);
    expect(heard()).toEqual([`subscribe ${URI}`, `subscribe ${OTHER}`]);
    update(URI);
    update(OTHER);
    expect(notified(client)).toEqual([
      [1, UPDATED, URI],
      [1, UPDATED, OTHER],
      [2, UPDATED, OTHER],
    ]);
  });

  it('of a part of a resource reach all subscriptions with resources', async () => {
    const { connect, opened, update } = await listening();
    const client = connect();
    await opened(client, 1, { resourceSubscriptions: [URI] });
    await opened(client, 2, { resourceSubscriptions: [OTHER] });
    await opened(client, 3, ALL_LISTS);
    update(`${URI}#part`);
    expect(notified(client)).toEqual([
      [1, UPDATED, `${URI}#part`],
      [2, UPDATED, `${URI}#part`],
    ]);
  });

  it('keep what the server put into them', async () => {
    const { connect, opened, server } = await listening();
    const client = connect();
    await opened(client, 'x', { resourceSubscriptions: [URI] });
    const { child } = server('a');
    child.say(
      `{"jsonrpc":"2.0","method":"${UPDATED}","params":{"uri":"${URI}","z":9007199254740993,"_meta":{"k":-0}}}`,
    );
    child.say(`{"jsonrpc":"2.0","method":"${UPDATED}","params":{"uri":"${URI}","_meta":null}}`);
    expect(client.received.lines).toEqual([
      `{"jsonrpc":"2.0","method":"${UPDATED}","params":{"uri":"${URI}","z":9007199254740993,"_meta":{"k":-0,"${SUBSCRIPTION_ID}":"x"}}}`,
      `{"jsonrpc":"2.0","method":"${UPDATED}","params":{"uri":"${URI}","_meta":{"${SUBSCRIPTION_ID}":"x"}}}`,
    ]);
  });

  it('reach clients of both eras, of which the server knows nothing', async () => {
    const { connect, opened, agree, update, heard } = await listening();
    const [legacy, modern] = [connect(), connect()];
    legacy.initialize();
    legacy.request(1, 'resources/subscribe', { uri: URI });
    await agree();
    await opened(modern, 1, { resourceSubscriptions: [URI] });
    legacy.received.take();
    update(URI);
    expect([notified(legacy), notified(modern)]).toEqual([[[undefined, UPDATED, URI]], [[1, UPDATED, URI]]]);
    modern.session.close();
    await agree();
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });
});

describe('a resource that cannot be subscribed to', () => {
  const honored = (client: ScriptedClient) => client.received.take()[0]?.params.notifications;

  it('is left out of the acknowledgment if nobody has it or the server refuses', async () => {
    const { connect, listen, agree, heard } = await listening();
    const client = connect();
    listen(client, 1, { resourceSubscriptions: ['none://1', URI], toolsListChanged: true });
    expect(client.received.take()).toEqual([]);
    await agree(REFUSAL);
    expect(honored(client)).toEqual({ toolsListChanged: true });
    client.cancel(1);
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });

  it('F163: is left out if the server takes longer than two seconds, and unsubscribed from', async () => {
    const { connect, listen, clock, heard, server, update } = await listening();
    const client = connect();
    listen(client, 1, { resourceSubscriptions: [URI, OTHER] });
    const { child } = server('a');
    const [, late] = child.asked('resources/subscribe');
    child.say({ jsonrpc: '2.0', id: child.asked('resources/subscribe')[0]?.id, result: {} });
    await flush();
    clock.advance(1_999);
    expect(client.received.take()).toEqual([]);
    clock.advance(1);
    await flush();
    expect(honored(client)).toEqual({ resourceSubscriptions: [URI] });
    child.say({ jsonrpc: '2.0', id: late?.id, result: {} });
    await flush();
    expect(heard()).toEqual([`subscribe ${URI}`, `subscribe ${OTHER}`, `unsubscribe ${OTHER}`]);
    update(OTHER);
    expect(notified(client)).toEqual([[1, UPDATED, OTHER]]);
    expect(clock.pending).toBe(1);
  });

  it('is left to the calls: of many resources, 16 are subscribed to at once', async () => {
    const uris = Array.from({ length: 200 }, (_, at) => `x://a/many/${at}`);
    const { connect, listen, agree, heard } = await listening({ a: offering({ resources: uris }) });
    const client = connect();
    listen(client, 1, { resourceSubscriptions: uris });
    expect(heard()).toHaveLength(16);
    await agree();
    expect(honored(client)).toEqual({ resourceSubscriptions: uris });
    client.cancel(1);
    expect(heard()).toHaveLength(200 + 16);
    await agree();
    expect(heard()).toHaveLength(2 * 200);
  });
});

describe('the end of a subscription', () => {
  it('by the client is not answered, and unsubscribes from subjects that no other one wants', async () => {
    const { connect, opened, agree, heard, update, clock } = await listening();
    const client = connect();
    await opened(client, 1, { resourceSubscriptions: [URI, OTHER], toolsListChanged: true });
    await opened(client, 2, { resourceSubscriptions: [OTHER] });
    client.cancel(1);
    await agree();
    expect(heard().slice(2)).toEqual([`unsubscribe ${URI}`]);
    update(OTHER);
    expect(notified(client)).toEqual([[2, UPDATED, OTHER]]);
    client.cancel(2);
    await agree();
    expect(heard().slice(3)).toEqual([`unsubscribe ${OTHER}`]);
    update(OTHER);
    expect(client.received.take()).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('by the client before the acknowledgment withdraws the requests', async () => {
    const { connect, listen, agree, server, heard, clock } = await listening();
    const client = connect();
    listen(client, 1, { resourceSubscriptions: [URI] });
    client.cancel(1);
    await flush();
    expect(server('a').child.cancellations).toHaveLength(1);
    await agree();
    expect(heard()).toEqual([`subscribe ${URI}`, `unsubscribe ${URI}`]);
    expect(client.received.take()).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  const endedByUs = (id: string) => [
    {
      jsonrpc: '2.0',
      id,
      result: {
        resultType: 'complete',
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'trunkline', version: '1.2.3' }, [SUBSCRIPTION_ID]: id },
      },
    },
    {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: id, reason: 'The subscription has ended', _meta: { [SUBSCRIPTION_ID]: id } },
    },
  ];

  it('with the removal of the server is a result, after which the request is cancelled', async () => {
    const { connect, listen, change } = await listening();
    const client = connect({ server: 'a' });
    listen(client, 'x', { toolsListChanged: true });
    client.received.take();
    change({ b: {} });
    await flush();
    expect(client.received.take()).toEqual(endedByUs('x'));
    expect(client.isGone).toBe(true);
  });

  it('with the end of the gateway is the same, also before the acknowledgment', async () => {
    const { connect, listen, gateway } = await listening();
    const client = connect();
    listen(client, 'open', { toolsListChanged: true });
    client.received.take();
    listen(client, 'opening', { resourceSubscriptions: [URI] });
    gateway.close();
    const [, , acknowledged, ...others] = client.received.take();
    expect(acknowledged).toMatchObject({ method: ACKNOWLEDGED, params: { notifications: {} } });
    expect(others).toEqual(endedByUs('opening'));
    client.cancel('open');
    expect(client.received.take()).toEqual([]);
  });
});

describe('a subscription goes on', () => {
  it('F162: when a server restarts', async () => {
    const { connect, opened, agree, server, heard, update } = await listening();
    const client = connect();
    await opened(client, 1, { resourceSubscriptions: [URI] });
    server('a').crash();
    await server('a').start();
    expect(heard()).toEqual([`subscribe ${URI}`]);
    await agree();
    update(URI);
    expect(notified(client)).toEqual([[1, UPDATED, URI]]);
  });

  it('when the configuration gives it another process', async () => {
    const { connect, opened, agree, server, change, pass, heard, update } = await listening();
    const client = connect();
    await opened(client, 1, { resourceSubscriptions: [URI], toolsListChanged: true });
    change({ a: { ...offering({ resources: [URI] }), tools: ['new'] } }, ['a']);
    await server('a~2').start();
    expect(heard('a~2')).toEqual([`subscribe ${URI}`]);
    await agree(undefined, 'a~2');
    update(URI, 'a~2');
    await pass(2_000);
    expect(notified(client)).toEqual([
      [1, UPDATED, URI],
      [1, TOOLS_CHANGED],
    ]);
    client.cancel(1);
    expect(heard('a~2').at(-1)).toBe(`unsubscribe ${URI}`);
  });

  it('when it was opened before the gateway existed', async () => {
    const world = await listening();
    const pending = new PendingGateway(() => ({ offered: [], instructions: '' }));
    const client = new ScriptedClient(pending, world.clock);
    world.listen(client, 1, { resourceSubscriptions: [URI], toolsListChanged: true });
    pending.passTo(world.gateway);
    await world.agree();
    world.update(URI);
    await world.changeTools('two');
    expect(notified(client)).toEqual([
      [1, ACKNOWLEDGED],
      [1, UPDATED, URI],
      [1, TOOLS_CHANGED],
    ]);
  });
});

describe('a client that does not read', () => {
  it('F164: gets one notification for each list and resource later, in the place of many', async () => {
    const { connect, opened, changeTools, pass, update, clock } = await listening();
    const client = connect();
    await opened(client, 1, { resourceSubscriptions: [URI, OTHER], toolsListChanged: true });
    client.received.unwrittenBytes = 300_000;
    for (let step = 0; step < 20; step += 1) {
      update(URI, 'a', { step });
      update(OTHER);
      await changeTools(`step${step}`);
      await pass(250);
    }
    expect(client.received.take()).toEqual([]);
    client.received.unwrittenBytes = 0;
    await pass(250);
    expect(client.received.messages[0]?.params.step).toBe(19);
    expect(notified(client)).toEqual([
      [1, UPDATED, URI],
      [1, UPDATED, OTHER],
      [1, TOOLS_CHANGED],
    ]);
    expect(clock.pending).toBe(0);
  });

  it('gets everything when more than 1 MiB waits, so that its channel can end it', async () => {
    const { connect, opened, update } = await listening();
    const client = connect();
    await opened(client, 1, { resourceSubscriptions: [URI] });
    client.received.unwrittenBytes = 300_000;
    for (let part = 0; part < 4; part += 1) update(`${URI}#${part}`, 'a', { text: 'x'.repeat(300_000) });
    expect(notified(client)).toHaveLength(4);
  });

  it('gets what came before the acknowledgment after it, once for each list and resource', async () => {
    const { connect, opened, listen, update, agree } = await listening();
    const client = connect();
    await opened(client, 1, { resourceSubscriptions: [URI] });
    listen(client, 2, { resourceSubscriptions: [URI, OTHER] });
    update(URI);
    update(URI);
    await agree();
    expect(notified(client)).toEqual([
      [1, UPDATED, URI],
      [1, UPDATED, URI],
      [2, ACKNOWLEDGED],
      [2, UPDATED, URI],
    ]);
  });
});
