import { describe, expect, it } from 'vitest';
import { NamedViews } from '../../../src/gateway/catalog/named-views.js';
import { offering, startGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const URI = 'x://a/1';

/** Two clients of a server, which answers nothing about subscriptions by itself. */
async function subscribing() {
  const servers = { a: offering({ resources: [URI] }) };
  const views = new NamedViews({ views: [{ name: 'work', servers: ['a'] }], clients: [] });
  const world = await startGateway({ servers, views });
  const clients = [world.connect({ view: 'work' }), world.connect()] as const;
  for (const client of clients) client.initialize();
  const [one, other] = clients;
  return { ...world, servers, one, other, child: world.server('a').child };
}

describe('a request to unsubscribe that waits for the answer to another request', () => {
  it('F205: has no effect if the client cancels it, and holds up nobody', async () => {
    const { one, other, child } = await subscribing();
    one.request(1, 'resources/subscribe', { uri: URI });
    one.request(2, 'resources/unsubscribe', { uri: URI });
    one.cancel(2);
    child.reply('resources/subscribe');
    await flush();
    other.request(1, 'resources/subscribe', { uri: URI });
    await flush();
    expect(other.answerTo(1)?.result).toEqual({});
    expect(child.asked('resources/unsubscribe')).toEqual([]);
  });

  it('holds up nobody if the client leaves', async () => {
    const { one, other, child } = await subscribing();
    one.request(1, 'resources/subscribe', { uri: URI });
    one.request(2, 'resources/unsubscribe', { uri: URI });
    one.session.close();
    await flush();
    other.request(1, 'resources/subscribe', { uri: URI });
    await flush();
    child.reply('resources/subscribe');
    expect(other.answerTo(1)?.result).toEqual({});
  });
});

describe('a request to subscribe that is in flight while the configuration changes', () => {
  it('F206: counts for the process that replaces the one which answers it', async () => {
    const { one, child, change, servers, server } = await subscribing();
    one.request(1, 'resources/subscribe', { uri: URI });
    change(servers, ['a']);
    child.reply('resources/subscribe');
    await flush();
    expect(one.answerTo(1)?.result).toEqual({});
    await server('a~2').start();
    expect(server('a~2').child.asked('resources/subscribe')).toHaveLength(1);
    server('a~2').child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } });
    expect(one.received.messages.filter(({ method }) => method === 'notifications/resources/updated')).toHaveLength(1);
  });

  it('counts once for a process that runs already when the former one answers', async () => {
    const { one, other, child, change, servers, server } = await subscribing();
    one.request(1, 'resources/subscribe', { uri: URI });
    change(servers, ['a']);
    await server('a~2').start();
    other.request(1, 'resources/subscribe', { uri: URI });
    server('a~2').child.reply('resources/subscribe');
    child.reply('resources/subscribe');
    await flush();
    expect(server('a~2').child.asked('resources/subscribe')).toHaveLength(1);
    other.session.close();
    expect(server('a~2').child.asked('resources/unsubscribe')).toEqual([]);
    one.session.close();
    expect(server('a~2').child.asked('resources/unsubscribe')).toHaveLength(1);
  });

  it('does not count for a client that does not see the server any longer', async () => {
    const { one, child, change, servers } = await subscribing();
    one.request(1, 'resources/subscribe', { uri: URI });
    change(servers, [], { views: new NamedViews({ views: [{ name: 'work', servers: [] }], clients: [] }) });
    child.reply('resources/subscribe');
    await flush();
    expect(child.asked('resources/unsubscribe')).toHaveLength(1);
    child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } });
    expect(one.received.messages.filter(({ method }) => method === 'notifications/resources/updated')).toEqual([]);
  });
});
