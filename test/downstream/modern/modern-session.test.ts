import { describe, expect, it } from 'vitest';
import type { ListCaching } from '../../../src/downstream/port.js';
import { RpcError } from '../../../src/wire/jsonrpc/message.js';
import { DONE, ModernPeer, REVISION, resultOf } from '../../support/modern-peer.js';
import { type Message, responseOf } from '../../support/wire.js';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CLIENT = 'io.modelcontextprotocol/clientInfo';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const SERVER = 'io.modelcontextprotocol/serverInfo';

describe('a request without a handshake', () => {
  it.each<[string, Message, number]>([
    ['without capabilities', { [CAPABILITIES]: undefined }, -32602],
    ['with capabilities that are no object', { [CAPABILITIES]: [] }, -32602],
    ['with a client that is no object', { [CLIENT]: 'me' }, -32602],
    ['with a revision that is no string', { [VERSION]: 5 }, -32602],
    ['of an unknown revision', { [VERSION]: '2031-01-01' }, -32022],
    ['of a revision with a handshake', { [VERSION]: '2025-11-25' }, -32022],
  ])('is refused %s, and opens nothing', (_, meta, code) => {
    const peer = new ModernPeer();
    const { error } = peer.answerTo(peer.call({}, meta)) ?? {};
    expect(error.code).toBe(code);
    if (code === -32022) expect(error.data).toEqual({ supported: [REVISION], requested: meta[VERSION] });
    expect(peer.gateway.clients).toEqual([]);
  });

  it.each([
    'initialize',
    'ping',
    'resources/subscribe',
    'logging/setLevel',
    'tasks/list',
    'tasks/result',
    'roots/list',
  ])('does not know %s of earlier revisions', (method) => {
    const peer = new ModernPeer();
    expect(peer.answerTo(peer.request(method))?.error.code).toBe(-32601);
    expect(peer.gateway.exchanges).toEqual([]);
  });

  it('needs no client information', () => {
    const peer = new ModernPeer();
    peer.call({}, { [CLIENT]: undefined });
    expect(peer.gateway.facts[0]?.profile.clientInfo).toMatchObject({ name: 'unnamed' });
  });

  it('never promises servers to tell of changed roots', () => {
    const peer = new ModernPeer({ capabilities: { roots: { listChanged: true, x: 1.5 }, sampling: {} } });
    peer.call();
    const { profile } = peer.gateway.facts[0] ?? {};
    expect(profile?.capabilities).toEqual({ roots: { x: 1.5 }, sampling: {} });
    expect(Buffer.from(profile?.raw?.capabilities ?? '').toString()).toBe('{"roots":{"x":1.5},"sampling":{}}');
  });

  it('uses one session of the gateway for all that state the same', () => {
    const peer = new ModernPeer();
    for (let index = 0; index < 3; index += 1) peer.call();
    peer.call({}, { [CLIENT]: { name: 'other', version: '1' } });
    peer.call();
    expect(peer.gateway.facts.map(({ profile }) => profile.clientInfo.name)).toEqual(['peer', 'other']);
    expect(new Set(peer.gateway.exchanges.map(({ client }) => client)).size).toBe(2);
  });

  it('is forgotten with its client, when many others came and it has nothing in flight', () => {
    const peer = new ModernPeer();
    for (let index = 0; index < 20; index += 1) peer.call({}, { [CLIENT]: { name: `${index}`, version: '1' } });
    expect(peer.gateway.closed).toBe(0);
    for (const exchange of peer.gateway.exchanges) exchange.succeed(DONE);
    peer.call({}, { [CLIENT]: { name: 'last', version: '1' } });
    expect(peer.gateway.closed).toBe(12);
  });

  it('must not have the id of one that is in flight', () => {
    const peer = new ModernPeer();
    const id = peer.call();
    peer.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'ask', _meta: peer.meta } });
    expect(peer.answerTo(id)?.error.code).toBe(-32600);
    expect(peer.gateway.exchanges).toHaveLength(1);
  });

  it('is told apart from others by the type of its id', () => {
    const peer = new ModernPeer();
    for (const id of [1, '1']) peer.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { _meta: peer.meta } });
    for (const exchange of peer.gateway.exchanges) exchange.succeed(DONE);
    expect(peer.received.messages.map(({ id }) => id)).toEqual([1, '1']);
  });
});

describe('a notification without a handshake', () => {
  function notifying(meta: (peer: ModernPeer) => Message | undefined): ModernPeer['gateway']['notified'] {
    const peer = new ModernPeer();
    peer.call();
    peer.call({}, { [CLIENT]: { name: 'other', version: '1' } });
    peer.send({ jsonrpc: '2.0', method: 'x/event', params: { n: 1, _meta: meta(peer) } });
    return peer.gateway.notified;
  }

  it('goes to the servers of the client that it states', () => {
    expect(notifying(({ meta }) => meta)).toEqual([['peer', 'x/event']]);
  });

  it('goes to the servers of all clients of its program if it states none', () => {
    expect(notifying(() => undefined)).toEqual([
      ['peer', 'x/event'],
      ['other', 'x/event'],
    ]);
  });

  it.each(['notifications/progress', 'notifications/roots/list_changed', 'notifications/initialized'])(
    'of an earlier revision is dropped: %s',
    (method) => {
      const peer = new ModernPeer();
      peer.call();
      for (const _meta of [peer.meta, undefined])
        peer.send({ jsonrpc: '2.0', method, params: { progressToken: 1, _meta } });
      expect(peer.gateway.notified).toEqual([]);
    },
  );

  it('with a wrong statement about its client is dropped', () => {
    expect(notifying(({ meta }) => ({ ...meta, [CAPABILITIES]: 1 }))).toEqual([]);
    expect(notifying(({ meta }) => ({ ...meta, [VERSION]: '2031-01-01' }))).toEqual([]);
  });
});

describe('discovery', () => {
  it('says what is known, and opens no session', () => {
    const peer = new ModernPeer();
    expect(peer.answerTo(peer.request('server/discover'))?.result).toEqual({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      supportedVersions: [REVISION],
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {},
        extensions: { 'x/y': {} },
      },
      instructions: 'Be kind.',
      _meta: { [SERVER]: { name: 'trunkline', version: '1.2.3' } },
    });
    expect(peer.gateway.clients).toEqual([]);
  });
});

describe('an answer to a client without a handshake', () => {
  function answered(method: string, response: Message): string {
    const peer = new ModernPeer();
    peer.request(method);
    peer.gateway.last.answer(responseOf({ jsonrpc: '2.0', id: 99, ...response }));
    return peer.received.lines[0] ?? '';
  }
  const OWN = `"${SERVER}":{"name":"trunkline","version":"1.2.3"}`;

  it('keeps every byte of the server, and has what the revision requires', () => {
    expect(answered('tools/call', { result: { content: [], n: 1 } })).toBe(
      `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{${OWN}},"content":[],"n":1}}`,
    );
    expect(answered('resources/read', { result: { contents: [] } })).toBe(
      `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{${OWN}},"contents":[]}}`,
    );
    expect(answered('tools/call', { result: {} })).toBe(
      `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{${OWN}}}}`,
    );
  });

  it('keeps what a server without a handshake said itself', () => {
    const result = {
      resultType: 'x/special',
      ttlMs: 7,
      cacheScope: 'public',
      _meta: { [SERVER]: { name: 's' }, a: 1 },
    };
    expect(JSON.parse(answered('resources/read', { result })).result).toEqual(result);
    const unnamed = JSON.parse(answered('tools/call', { result: { resultType: 'complete', _meta: { a: 1 } } })).result;
    expect(unnamed).toEqual({
      resultType: 'complete',
      _meta: { [SERVER]: { name: 'trunkline', version: '1.2.3' }, a: 1 },
    });
  });

  it('names the server that did not name itself in its result, if its name is known', () => {
    const peer = new ModernPeer();
    const name = Buffer.from('{"name":"s\\u0073","version":"1", "n":1.0}');
    const named = (response: Message) => {
      const id = peer.call();
      peer.gateway.last.answer(resultOf(response), [], name);
      expect(peer.answerTo(id)).toBeDefined();
      return peer.received.lines.at(-1);
    };
    const member = `"${SERVER}":${name}`;
    expect(named({})).toBe(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{${member}}}}`);
    expect(named({ resultType: 'complete', _meta: { a: 1 } })).toBe(
      `{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","_meta":{${member},"a":1}}}`,
    );
    const itself = { resultType: 'complete', _meta: { [SERVER]: { name: 'itself', version: '2' } } };
    expect(JSON.parse(named(itself) ?? '').result).toEqual(itself);
  });

  it('does not say how long a request for input may be kept', () => {
    const result = { resultType: 'input_required', inputRequests: {} };
    expect(JSON.parse(answered('resources/read', { result })).result).not.toHaveProperty('ttlMs');
  });

  it('has the code of its revision for a resource that does not exist', () => {
    const error = { code: -32002, message: 'no', data: { uri: 'x' } };
    expect(JSON.parse(answered('resources/read', { error })).error).toEqual({ ...error, code: -32602 });
    expect(JSON.parse(answered('resources/read', { error: { ...error, code: -32001 } })).error.code).toBe(-32001);
    const visit = { code: -32042, message: 'visit', data: { elicitations: [] } };
    expect(JSON.parse(answered('tools/call', { error: visit })).error).toEqual({ ...visit, code: -32603 });
  });

  it('says how long a list may be kept, and names the gateway', () => {
    const peer = new ModernPeer();
    const id = peer.request('tools/list');
    peer.gateway.last.succeed(Buffer.from('{"tools":[]}'));
    expect(peer.answerTo(id)?.result).toMatchObject({ ttlMs: 300_000, cacheScope: 'private', tools: [] });
  });

  it('says it in whole milliseconds, and 5 s at most while a server is starting', () => {
    const peer = new ModernPeer();
    const hint = (caching: ListCaching) => {
      peer.gateway.caching = caching;
      const id = peer.request('tools/list');
      peer.gateway.last.succeed(Buffer.from('{"tools":[]}'));
      const { ttlMs, cacheScope } = peer.answerTo(id)?.result ?? {};
      return [ttlMs, cacheScope];
    };
    expect(hint({ isSettled: false, freshMs: 60_000, isPublic: true })).toEqual([5_000, 'public']);
    expect(hint({ isSettled: false, freshMs: 1_234.5, isPublic: false })).toEqual([1_234, 'private']);
    expect(hint({ isSettled: true, freshMs: 60_000.9, isPublic: true })).toEqual([60_000, 'public']);
  });

  it('is a tool result or an error where the gateway fails the request', () => {
    const peer = new ModernPeer();
    const [call, read] = [peer.call(), peer.request('resources/read')];
    const failure = { reason: 'timeout', server: 'files', generation: 1, sent: true, retryAfterMs: undefined } as const;
    for (const exchange of peer.gateway.exchanges) exchange.fail(failure);
    expect(peer.answerTo(call)?.result).toMatchObject({ resultType: 'complete', isError: true });
    expect(Object.keys(peer.answerTo(call)?.result._meta)).toEqual([SERVER, 'trunkline/failure']);
    expect(peer.answerTo(read)?.error.code).toBe(-32603);
    const unknown = peer.call();
    peer.gateway.last.fail(new RpcError(-32602, 'Unknown tool'));
    expect(peer.answerTo(unknown)?.error.code).toBe(-32602);
  });

  it('is no message that the client did not ask for', () => {
    const peer = new ModernPeer();
    const id = peer.call();
    peer.gateway.last.answer(resultOf({ content: [] }));
    const [client] = peer.gateway.clients;
    client?.listChanged('tools');
    expect(peer.received.messages.map((message) => message.id)).toEqual([id]);
    peer.send({ jsonrpc: '2.0', id: 1, result: {} });
    expect(peer.received.messages).toHaveLength(1);
  });
});
