import { describe, expect, it } from 'vitest';
import { offering, type ScriptedClient, startGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const MIB = 1024 * 1024;
const TOO_MUCH = { code: -32603, message: 'The client is subscribed to too much already: end some of it' };

async function subscribing() {
  const world = await startGateway({ servers: { a: offering({ templates: ['x://{+rest}'] }), b: offering({}) } });
  const { child } = world.server('a');
  const connect = () => world.connect().greet();
  const ask = async (client: ScriptedClient, method: string, uri: string) => {
    const heard = child.asked(method).length;
    client.request('s', method, { uri });
    if (child.asked(method).length > heard) child.reply(method);
    await flush();
    return client.received.take().find(({ id }) => id === 's');
  };
  const subscribe = (client: ScriptedClient, uri: string) => ask(client, 'resources/subscribe', uri);
  const unsubscribe = (client: ScriptedClient, uri: string) => ask(client, 'resources/unsubscribe', uri);
  return { child, connect, subscribe, unsubscribe };
}

/** A URI of this length. */
function uriOf(name: string, length: number): string {
  return `x://${name}/`.padEnd(length, 'y');
}

describe('the subscriptions of one client', () => {
  it('F221: are refused beyond 4 MiB of URIs, and no server hears of more', async () => {
    const { child, connect, subscribe } = await subscribing();
    const [client, other] = [connect(), connect()];
    expect(await subscribe(client, uriOf('1', 3 * MIB))).toMatchObject({ result: {} });
    expect(await subscribe(client, uriOf('2', MIB + 1))).toMatchObject({ error: TOO_MUCH });
    expect(child.asked('resources/subscribe')).toHaveLength(1);
    expect(await subscribe(client, uriOf('3', MIB))).toMatchObject({ result: {} });
    expect(await subscribe(client, uriOf('1', 3 * MIB))).toMatchObject({ result: {} });
    expect(await subscribe(client, 'x://4')).toMatchObject({ error: TOO_MUCH });
    expect(await subscribe(other, 'x://4')).toMatchObject({ result: {} });
  });

  it('make room when they end', async () => {
    const { connect, subscribe, unsubscribe } = await subscribing();
    const client = connect();
    for (const name of ['1', '2', '3']) {
      await subscribe(client, uriOf(name, 4 * MIB));
      expect(await subscribe(client, 'x://4')).toMatchObject({ error: TOO_MUCH });
      await unsubscribe(client, uriOf(name, 4 * MIB));
      await unsubscribe(client, uriOf(name, 4 * MIB));
    }
    expect(await subscribe(client, uriOf('5', 4 * MIB))).toMatchObject({ result: {} });
  });
});
