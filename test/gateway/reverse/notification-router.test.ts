import { describe, expect, it } from 'vitest';
import { InMemoryClient } from '../../support/in-memory-client.js';
import { startGateway } from '../../support/scripted-gateway.js';

const SAID = '{"method":"notifications/message" ,"params":{"level":"info","data":1.0},"jsonrpc":"2.0"}';
const OTHER = '{"jsonrpc":"2.0","method":"notifications/vendor/thing","params":{}}';

async function two() {
  const world = await startGateway({
    servers: { a: { tools: ['x'], limits: { concurrency: 1 } }, b: { tools: ['y'] } },
  });
  const [one, other] = [InMemoryClient.open(world.gateway), InMemoryClient.open(world.gateway)];
  const call = (client: InMemoryClient, name = 'a__x') => client.call(name);
  const { child } = world.server('a');
  return { ...world, one, other, call, child };
}

describe.each([SAID, OTHER])('an unsolicited notification of a server, such as %s', (line) => {
  it('goes to every client, as it was written, when no request is in flight', async () => {
    const { one, other, child } = await two();
    child.say(line);
    expect([one.notifications, other.notifications]).toEqual([[line], [line]]);
  });

  it('goes the way of the answer when one request is in flight, and unasked to the other clients', async () => {
    const { one, other, call, child } = await two();
    const exchange = call(one);
    child.say(line);
    expect([exchange.sent, one.notifications, other.notifications]).toEqual([[line], [], [line]]);
  });

  it.each(['answered', 'cancelled'])('goes to every client again when that request was %s', async (end) => {
    const { one, other, call, child } = await two();
    const exchange = call(one);
    if (end === 'answered') child.answer(0);
    else exchange.cancel();
    child.say(line);
    expect([exchange.sent, one.notifications, other.notifications]).toEqual([[], [line], [line]]);
  });

  it('is not taken for a matter of a request to another server', async () => {
    const { one, other, call, child } = await two();
    const exchange = call(one, 'b__y');
    child.say(line);
    expect([exchange.sent, one.notifications, other.notifications]).toEqual([[], [line], [line]]);
  });

  it('is not taken for a matter of a request that waits for its turn', async () => {
    const { one, other, call, child } = await two();
    const [sent, waiting] = [call(one), call(other)];
    child.say(line);
    expect([sent.sent, waiting.sent, one.notifications, other.notifications]).toEqual([[line], [], [], [line]]);
  });
});

describe('with requests of several clients in flight', () => {
  it('a notification of a server goes to every client as an unsolicited one', async () => {
    const { gateway, server } = await startGateway({ servers: { a: { tools: ['x'] } } });
    const clients = [InMemoryClient.open(gateway), InMemoryClient.open(gateway)];
    const exchanges = clients.map((client) => client.call('a__x'));
    server('a').child.say(SAID);
    expect(exchanges.map(({ sent }) => sent)).toEqual([[], []]);
    expect(clients.map(({ notifications }) => notifications)).toEqual([[SAID], [SAID]]);
    server('a').child.answer(0);
    server('a').child.say(SAID);
    expect(exchanges.map(({ sent }) => sent)).toEqual([[], [SAID]]);
  });
});

describe('a notification of a server about its own requests', () => {
  it('reaches no client that did not get the cancelled request', async () => {
    const { one, other, child } = await two();
    child.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 99, progress: 1 } });
    expect([one.notifications, other.notifications]).toEqual([[], []]);
  });

  it('reaches no client that has not confirmed the handshake', async () => {
    const { connect, child } = await two();
    const client = connect();
    client.request('hello', 'initialize', {});
    client.received.take();
    child.say(SAID);
    expect(client.received.lines).toEqual([]);
    client.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    child.say(SAID);
    expect(client.received.lines).toEqual([SAID]);
  });
});

describe('with clients without a session', () => {
  async function twoWithoutSession() {
    const { connect, server } = await startGateway({ servers: { a: { tools: ['x'] } } });
    const clients = [connect(), connect()] as const;
    const call = (client: (typeof clients)[number]) => client.modernRequest(1, 'tools/call', { name: 'a__x' });
    const heard = () => clients.map(({ received }) => received.take().flatMap(({ method }) => method ?? []));
    return { child: server('a').child, clients, call, heard };
  }
  const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';

  it('an undefined method goes along the only request in flight, and a notification that needs a subscription does not', async () => {
    const { child, clients, call, heard } = await twoWithoutSession();
    call(clients[0]);
    for (const line of [OTHER, CHANGED, SAID]) child.say(line);
    expect(heard()).toEqual([['notifications/vendor/thing'], []]);
  });

  it('an undefined method reaches no client without a request, or with requests of two clients', async () => {
    const { child, clients, call, heard } = await twoWithoutSession();
    child.say(OTHER);
    for (const client of clients) call(client);
    child.say(OTHER);
    expect(heard()).toEqual([[], []]);
  });
});
