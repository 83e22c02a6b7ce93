import { describe, expect, it } from 'vitest';
import { ScriptedClient, scriptGateway, startGateway } from '../../support/scripted-gateway.js';
import type { Message } from '../../support/wire.js';

const LOGGING = { capabilities: { tools: {}, logging: {} } };

async function logging() {
  const servers = { a: { hello: LOGGING, tools: ['read'] }, b: { hello: LOGGING }, silent: {} };
  const world = await startGateway({ servers });
  const connect = () => world.connect().greet();
  /** The levels that the present process received. */
  const asked = (key: string): unknown[] =>
    world
      .server(key)
      .child.asked('logging/setLevel')
      .map(({ params }) => params.level);
  const log = (level: unknown, key = 'a') => world.server(key).child.say(messageOf(level));
  return { ...world, connect, asked, log };
}

function messageOf(level: unknown): Message {
  return { jsonrpc: '2.0', method: 'notifications/message', params: { level, data: 'x' } };
}

function setLevel(client: ScriptedClient, level: unknown): Message | undefined {
  client.request('l', 'logging/setLevel', { level });
  return client.received.take().find(({ id }) => id === 'l');
}

/** The levels of the messages since the last call. */
function seen(client: ScriptedClient): unknown[] {
  return client.received
    .take()
    .filter(({ method }) => method === 'notifications/message')
    .map(({ params }) => params.level);
}

describe('setting a level', () => {
  it('is answered by the gateway and passed to every server that logs', async () => {
    const { connect, asked } = await logging();
    expect(setLevel(connect(), 'warning')).toEqual({ jsonrpc: '2.0', id: 'l', result: {} });
    expect([asked('a'), asked('b'), asked('silent')]).toEqual([['warning'], ['warning'], []]);
  });

  it('asks servers for the most talkative of all, and only when that is another one', async () => {
    const { connect, asked } = await logging();
    const [one, other] = [connect(), connect()];
    setLevel(one, 'warning');
    setLevel(other, 'error');
    expect(asked('a')).toEqual(['debug', 'warning']);
    setLevel(other, 'debug');
    expect(asked('a')).toEqual(['debug', 'warning', 'debug']);
    setLevel(one, 'info');
    expect(asked('a')).toEqual(['debug', 'warning', 'debug']);
    setLevel(other, 'critical');
    expect(asked('a')).toEqual(['debug', 'warning', 'debug', 'info']);
  });

  it('makes no server quieter for a client without a level, whenever that client comes', async () => {
    const { connect, asked, log } = await logging();
    const one = connect();
    expect(asked('a')).toEqual([]);
    setLevel(one, 'error');
    expect(asked('a')).toEqual(['error']);
    const other = connect();
    expect(asked('a')).toEqual(['error', 'debug']);
    log('info');
    expect([seen(one), seen(other)]).toEqual([[], ['info']]);
    setLevel(one, 'warning');
    other.session.close();
    expect(asked('a')).toEqual(['error', 'debug', 'warning']);
  });

  it.each(['warn', '', 'DEBUG', 7, null, undefined, ['info']])(
    'to %j is refused and changes nothing',
    async (level) => {
      const { connect, asked, log } = await logging();
      const client = connect();
      setLevel(client, 'error');
      expect(setLevel(client, level)?.error).toEqual({
        code: -32602,
        message: 'logging/setLevel needs a level such as "info"',
      });
      expect(asked('a')).toEqual(['error']);
      log('info');
      log('error');
      expect(seen(client)).toEqual(['error']);
    },
  );

  it('works before any server is there, which is then told', async () => {
    const { connect, server } = scriptGateway({ servers: { a: { hello: LOGGING } } });
    const client = connect().greet();
    expect(setLevel(client, 'notice')?.result).toEqual({});
    const child = await server('a').start();
    expect(child.asked('logging/setLevel').map(({ params }) => params.level)).toEqual(['notice']);
  });

  it('is told to a new process, with the levels of now', async () => {
    const { connect, server, asked } = await logging();
    const [one, other] = [connect(), connect()];
    setLevel(one, 'debug');
    setLevel(other, 'error');
    server('a').crash();
    one.session.close();
    await server('a').start();
    expect(asked('a')).toEqual(['error']);
  });
});

describe('a log message', () => {
  it('reaches each client that wants its level or said nothing of levels', async () => {
    const { connect, log } = await logging();
    const [talkative, grave, any] = [connect(), connect(), connect()];
    setLevel(talkative, 'debug');
    setLevel(grave, 'error');
    for (const level of ['debug', 'warning', 'error', 'emergency']) log(level);
    log('alert', 'b');
    expect(seen(talkative)).toEqual(['debug', 'warning', 'error', 'emergency', 'alert']);
    expect(seen(grave)).toEqual(['error', 'emergency', 'alert']);
    expect(seen(any)).toEqual(['debug', 'warning', 'error', 'emergency', 'alert']);
  });

  it.each(['fatal', 7, null, undefined])('of the unknown level %j reaches all', async (level) => {
    const { connect, log } = await logging();
    const client = connect();
    setLevel(client, 'emergency');
    log(level);
    expect(seen(client)).toEqual([level]);
  });

  it('is filtered for the client whose call caused it, too', async () => {
    const { connect, server, log } = await logging();
    const client = connect();
    setLevel(client, 'error');
    client.call(1, 'a__read');
    log('info');
    log('error');
    server('a').child.answer(0);
    expect(client.received.take().map(({ method, id }) => method ?? id)).toEqual(['notifications/message', 1]);
  });
});

describe('a level in a request of a client without a handshake', () => {
  it('is told to each server that such a request goes to, once', async () => {
    const { gateway, clock, asked } = await logging();
    const client = new ScriptedClient(gateway, clock);
    const call = (id: string, name: string) =>
      client.modernRequest(id, 'tools/call', { name, _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } });
    call('1', 'a__read');
    call('2', 'b__read');
    call('3', 'b__read');
    expect([asked('a'), asked('b')]).toEqual([['debug'], ['debug']]);
  });
});
