import { describe, expect, it } from 'vitest';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { bytesOf, type Message, notificationOf, requestOf } from '../../support/wire.js';
import { CALL, Listener, TIMEOUTS } from '../stdio/bridging.js';
import { META, openModern, PROFILE } from './opening.js';

const REVISION = '"io.modelcontextprotocol/protocolVersion"';
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

function textOf(connectionResult: Uint8Array): Message {
  return JSON.parse(Buffer.from(connectionResult).toString());
}

describe('a request of a client with a handshake', () => {
  it.each([
    [
      'without params',
      '{ "method":"x/y" ,"id":"a","jsonrpc":"2.0" }',
      `{ "method":"x/y" ,"id":2,"jsonrpc":"2.0" ,"params":{"_meta":{${META}}}}`,
    ],
    [
      'with empty params',
      '{"jsonrpc":"2.0","id":"a","method":"x/y","params":{ }}',
      `{"jsonrpc":"2.0","id":2,"method":"x/y","params":{ "_meta":{${META}}}}`,
    ],
    [
      'without _meta',
      '{"jsonrpc":"2.0","params":{"n":1.0,"n":2 },"id":"a","method":"x/y"}',
      `{"jsonrpc":"2.0","params":{"n":1.0,"n":2 ,"_meta":{${META}}},"id":2,"method":"x/y"}`,
    ],
    [
      'with an empty _meta',
      '{"jsonrpc":"2.0","id":"a","method":"x/y","params":{"_meta":{},"n":1e400}}',
      `{"jsonrpc":"2.0","id":2,"method":"x/y","params":{"_meta":{${META}},"n":1e400}}`,
    ],
    [
      'with members of _meta and a progress token',
      '{"jsonrpc":"2.0","id":"a","method":"x/y","params":{"_meta":{"progressToken":"mine","traceparent":"\\u0030"},"n":1}}',
      `{"jsonrpc":"2.0","id":2,"method":"x/y","params":{"_meta":{"progressToken":2,"traceparent":"\\u0030",${META}},"n":1}}`,
    ],
    [
      'with a _meta that is null',
      '{"jsonrpc":"2.0","id":"a","method":"x/y","params":{"_meta":null}}',
      `{"jsonrpc":"2.0","id":2,"method":"x/y","params":{"_meta":{${META}}}}`,
    ],
  ])('%s gets what a modern server requires, and keeps every other byte', async (_, request, sent) => {
    const { output, send } = await openModern();
    send(request, new Listener());
    expect(output.lines).toEqual([sent]);
  });

  it('says so in the client’s own text, without what modern revisions do not have', async () => {
    const raw = {
      capabilities: bytesOf('{ "tasks":{"list":{}}, "x":9007199254740993,"roots":{"listChanged":true,"y":1.0}}'),
      clientInfo: bytesOf('{"name":"\\u0061"}'),
    };
    const { output, send } = await openModern({ profile: { ...PROFILE, raw } });
    send(CALL, new Listener());
    expect(output.lines[0]).toContain(
      '"io.modelcontextprotocol/clientInfo":{"name":"\\u0061"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}, "x":9007199254740993,"roots":{"y":1.0}}}',
    );
  });
});

describe('a request of a client without a handshake', () => {
  const of = (revision: string) =>
    `{"jsonrpc":"2.0","id":"a","method":"x/y","params":{"_meta":{${REVISION}:"${revision}","io.modelcontextprotocol/clientCapabilities":{"a":1.0}}}}`;

  it('keeps what it says of itself', async () => {
    const { output, send } = await openModern();
    send(of('2026-07-28'), new Listener());
    expect(output.lines).toEqual([of('2026-07-28').replace('"id":"a"', '"id":2')]);
  });

  it('gets the revision that was agreed with the server', async () => {
    const { output, send } = await openModern();
    send(of('2027-01-01'), new Listener());
    expect(output.lines).toEqual([of('2026-07-28').replace('"id":"a"', '"id":2')]);
  });

  it('gets a result that requires input as the server sent it', async () => {
    const { send, answer } = await openModern();
    const listener = Object.assign(new Listener(), { takesInputRequests: true });
    send(of('2026-07-28'), listener);
    await answer({ resultType: 'input_required', requestState: 's' });
    expect(listener.told).toEqual(['{"resultType":"input_required","requestState":"s"}']);
  });
});

describe('a request of the gateway’s own', () => {
  it.each([
    ['no params', undefined, `{"_meta":{${META}}}`],
    ['params', { cursor: 'c' }, `{"cursor":"c","_meta":{${META}}}`],
    ['params as JSON', bytesOf('{"n":1.0}'), `{"n":1.0,"_meta":{${META}}}`],
  ])('with %s says who the client is', async (_, params, sent) => {
    const { connection, output } = await openModern();
    void connection.request('tools/list', params, TIMEOUTS);
    expect(output.lines).toEqual([`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":${sent}}`]);
  });

  it('asks with server/discover whether the server lives, since there is no ping', async () => {
    const { connection, output } = await openModern();
    void connection.request('ping', undefined, TIMEOUTS);
    expect(output.last.method).toBe('server/discover');
  });
});

describe('without the messages that modern revisions lack', () => {
  it('the connection answers a ping of a client itself', async () => {
    const { send, output } = await openModern();
    const listener = new Listener();
    expect(send(PING, listener)).toBeUndefined();
    expect(listener.told).toEqual(['{}']);
    expect(output.lines).toEqual([]);
  });

  it('a log level becomes part of each further request', async () => {
    const { connection, output, send } = await openModern({ capabilities: { logging: {} } });
    const outcome = await connection.request('logging/setLevel', { level: 'warning' }, TIMEOUTS);
    expect(outcome.kind).toBe('answered');
    expect(output.lines).toEqual([]);
    send(CALL, new Listener());
    expect(output.last.params._meta['io.modelcontextprotocol/logLevel']).toBe('warning');
  });

  it('a log level of a client is taken as the gateway has edited it', async () => {
    const { connection, output, send } = await openModern();
    const request = requestOf('{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}');
    const span = request.tokens.level ?? { start: 0, end: 0 };
    connection.send(new EnvelopeRequest(request), [{ span, text: bytesOf('"debug"') }], TIMEOUTS, new Listener());
    send(CALL, new Listener());
    expect(output.last.params._meta['io.modelcontextprotocol/logLevel']).toBe('debug');
  });

  it('notifications of clients with a handshake go no further', async () => {
    const { connection, output } = await openModern();
    for (const method of ['notifications/roots/list_changed', 'notifications/progress', 'notifications/x'])
      connection.notify(notificationOf({ jsonrpc: '2.0', method }));
    expect(output.messages.map(({ method }) => method)).toEqual(['notifications/x']);
  });

  it('requests of the server are refused and reach nobody', async () => {
    const { say, requests, output } = await openModern();
    await say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: {} });
    expect(requests).toEqual([]);
    expect(output.last).toMatchObject({ id: 'q', error: { code: -32601 } });
  });
});

describe('a server that does not support the revision any more', () => {
  const refuse = (id: unknown, supported: string[]) => ({
    jsonrpc: '2.0',
    id,
    error: { code: -32022, message: 'no', data: { supported, requested: '2026-07-28' } },
  });

  it('gets the request once more in a revision that it offers', async () => {
    const { send, say, output, answer, unfit } = await openModern();
    const listener = new Listener();
    send(CALL, listener);
    await say(refuse(2, ['2026-07-28']));
    expect(output.last).toMatchObject({ id: 3, method: 'tools/call' });
    await answer({ content: [] });
    expect(listener.told).toEqual(['{"content":[]}']);
    expect(unfit).toEqual([]);
  });

  it('is of no use if it offers none that is known', async () => {
    const { send, say, unfit } = await openModern();
    const listener = new Listener();
    send(CALL, listener);
    await say(refuse(2, ['2031-01-01']));
    expect(listener.told).toEqual([expect.stringContaining('"code":-32603')]);
    expect(unfit).toHaveLength(1);
  });
});

describe('the handshake that the rest of the gateway sees', () => {
  it('has a name even if the server tells none', async () => {
    const { connection } = await openModern({ capabilities: { tools: {} } });
    expect(textOf(connection.initializeResult)).toEqual({
      protocolVersion: '2026-07-28',
      capabilities: { tools: {} },
      serverInfo: { name: 'unnamed', version: 'unknown' },
    });
    expect(connection).toMatchObject({ revision: '2026-07-28', requestedRevision: '2026-07-28' });
  });
});
