import { describe, expect, it } from 'vitest';
import { scriptGateway } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';
import { seeing } from './seeing-one-server.js';

describe('notifications of a client that sees one server unchanged, while no process runs', () => {
  const TOLD = 'notifications/told';
  const told = (n: number) => ({ jsonrpc: '2.0', method: TOLD, params: { n } });
  const arrivals = (messages: readonly Message[]) =>
    messages.flatMap(({ method, params }) =>
      method === TOLD || method === 'tools/call' ? [params.n ?? params.name] : [],
    );

  it('F72: reach the next process in their place among the calls', async () => {
    const { one, a } = await seeing();
    one.say(told(0));
    const before = a.child;
    a.crash();
    one.say(told(1));
    one.call(1, 'first');
    one.say(told(2), told(3));
    one.call(2, 'cancelled');
    one.call(3, 'second');
    one.say(told(4));
    one.cancel(2);
    const next = await a.start();
    one.say(told(5));
    expect(arrivals(before.received.messages)).toEqual([0]);
    expect(arrivals(next.received.messages)).toEqual([1, 'first', 2, 3, 'second', 4, 5]);
  });

  it('stay behind those that wait while the process reads its lists', async () => {
    const { one, a } = await seeing({ isTrusted: true });
    a.crash();
    one.say(told(1));
    const starting = a.start({ listsTools: false });
    await flush();
    one.say(told(2));
    a.child.reply('tools/list', { tools: [] });
    await starting;
    expect(arrivals(a.child.received.messages)).toEqual([1, 2]);
  });

  it('F72: are sent once, and to no later process', async () => {
    const { one, a } = await seeing();
    a.crash();
    one.say(told(1));
    await a.start();
    a.crash();
    const third = await a.start();
    expect(arrivals(third.received.messages)).toEqual([]);
  });

  it('F72: wait as long as a call', async () => {
    const { one, a, clock } = await seeing();
    a.crash();
    one.say(told(1));
    clock.advance(1_000);
    one.say(told(2));
    clock.advance(4_000);
    expect(arrivals((await a.start()).received.messages)).toEqual([2]);
  });

  it('F72: are dropped beyond 256, and beyond 1 MiB', async () => {
    const { one, a } = await seeing();
    a.crash();
    for (let n = 0; n < 300; n += 1) one.say(told(n));
    expect(arrivals((await a.start()).received.messages)).toEqual(Array.from({ length: 256 }, (_, n) => n));
    a.crash();
    const large = { jsonrpc: '2.0', method: TOLD, params: { n: 1, text: 'x'.repeat(600_000) } };
    one.say(large, large, told(2));
    expect(arrivals((await a.start()).received.messages)).toEqual([1, 2]);
  });

  it('are dropped when no process will come, and with the client', async () => {
    const { one, a, connect } = await seeing();
    const second = connect({ server: 'a' }).greet();
    await flush();
    a.crash();
    one.say(told(1));
    a.moved('parked');
    one.say(told(2));
    a.moved('starting');
    second.say(told(3));
    one.say(told(4));
    second.session.close();
    expect(arrivals((await a.start()).received.messages)).toEqual([4]);
  });

  it('leave a client of all servers alone: its notifications do not wait', async () => {
    const { connect, server } = scriptGateway({ servers: { a: { sharing: 'profile' } } });
    const client = connect().greet();
    await server('a').start();
    server('a').crash();
    client.say(told(1));
    expect(arrivals((await server('a').start()).received.messages)).toEqual([]);
  });
});
