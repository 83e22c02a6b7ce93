import { describe, expect, it } from 'vitest';
import { offering, startGateway } from '../support/scripted-gateway.js';
import { flush } from '../support/wire.js';

const URI = 'x://1';

async function sharing() {
  const world = await startGateway({ servers: { a: offering({ resources: [URI] }) } });
  const connect = () => world.connect().greet();
  const subscriptionsHeard = () =>
    world
      .server('a')
      .child.received.messages.flatMap(({ method }) => (/subscribe$/.test(method ?? '') ? [method] : []));
  return { ...world, connect, subscriptionsHeard };
}

describe('clients that share a server', () => {
  it('and subscribe at the same moment make one subscription', async () => {
    const { connect, server, subscriptionsHeard } = await sharing();
    const [one, two] = [connect(), connect()];
    one.request(1, 'resources/subscribe', { uri: URI });
    two.request(1, 'resources/subscribe', { uri: URI });
    server('a').child.reply('resources/subscribe');
    await flush();
    expect(subscriptionsHeard()).toEqual(['resources/subscribe']);
    expect([one.answerTo(1)?.result, two.answerTo(1)?.result]).toEqual([{}, {}]);
  });

  it('may join while the last one leaves, and are subscribed then', async () => {
    const { connect, server, subscriptionsHeard } = await sharing();
    const [one, two] = [connect(), connect()];
    one.request(1, 'resources/subscribe', { uri: URI });
    server('a').child.reply('resources/subscribe');
    await flush();
    one.request(2, 'resources/unsubscribe', { uri: URI });
    two.request(1, 'resources/subscribe', { uri: URI });
    server('a').child.reply('resources/unsubscribe');
    await flush();
    expect(subscriptionsHeard().at(-1)).toBe('resources/subscribe');
  });

  it('leave no subscription when they go, or cancel, while it is being made', async () => {
    for (const end of ['go', 'cancel']) {
      const { connect, server, subscriptionsHeard } = await sharing();
      const client = connect();
      client.request(1, 'resources/subscribe', { uri: URI });
      if (end === 'go') client.session.close();
      else client.cancel(1);
      server('a').child.reply('resources/subscribe');
      await flush();
      expect(subscriptionsHeard()).toEqual(['resources/subscribe', 'resources/unsubscribe']);
      server('a').crash();
      await server('a').start();
      expect(subscriptionsHeard()).toEqual([]);
    }
  });
});
