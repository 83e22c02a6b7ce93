import { describe, expect, it } from 'vitest';
import { offering, scriptGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const URI = 'x://a/1';

/** Two clients of a server, which answers nothing about subscriptions by itself. */
async function subscribing() {
  const world = scriptGateway({ servers: { a: offering({ resources: [URI] }) } });
  await world.startAll();
  const clients = [world.connect(), world.connect()] as const;
  for (const client of clients) client.initialize();
  const [one, other] = clients;
  return { ...world, one, other, child: world.server('a').child };
}

describe('a request to unsubscribe that waits for the answer to another request', () => {
  it('has no effect if the client cancels it, and holds up nobody', async () => {
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
