import { describe, expect, it } from 'vitest';
import { splice } from '../../src/wire/json/splice.js';
import { InMemoryClient, type InMemoryExchange } from '../support/in-memory-client.js';
import { offering, type ScriptedClient, type scriptGateway, startGateway } from '../support/scripted-gateway.js';
import { flush, type Message, notificationOf, RecordingSink, requestOf, responseOf } from '../support/wire.js';

const CHANGED = /^notifications\/(\w+)\/list_changed$/;
const CAPABILITIES = { elicitation: {}, roots: {} };

/** A client of either implementation, with what the port requires of both. */
interface Peer {
  request(method: string, params?: Message): Call;
  /** Methods of the servers' unsolicited notifications. */
  notifications(): string[];
  /** Kinds of lists that the client was asked to read again. */
  changed(): string[];
  /** Requests to the client that no request of the client caused. */
  inputs(): Input[];
  readonly isGone: boolean;
  close(): void;
}

interface Call {
  /** The raw result or error. */
  answer(): string | undefined;
  progress(): number[];
  /** Requests to the client that this request caused. */
  inputs(): Input[];
  cancel(): void;
}

interface Input {
  readonly method: string;
  readonly params: Message | undefined;
  isWithdrawn(): boolean;
  answer(result: string): void;
}

type World = ReturnType<typeof scriptGateway>;

/** A client with a real session of a revision with a handshake. Each request has its own channel. */
function legacyPeer({ connect }: World, server?: string): Peer {
  const client = connect(server === undefined ? {} : { server }).greet('2025-11-25', CAPABILITIES);
  let lastId = 0;
  const inputsIn = ({ messages }: RecordingSink) =>
    messages
      .filter(({ id, method }) => id !== undefined && method !== undefined)
      .map((message): Input => {
        return {
          method: message.method,
          params: message.params,
          isWithdrawn: () =>
            [...messages, ...client.received.messages].some(({ method, params }) => {
              return method === 'notifications/cancelled' && params.requestId === message.id;
            }),
          answer: (result) => client.say(`{"jsonrpc":"2.0","id":${message.id},"result":${result}}`),
        };
      });
  const told = (): string[] =>
    client.received.messages.flatMap(({ id, method }) => (id === undefined && method !== undefined ? [method] : []));
  return {
    request: (method, params) => {
      lastId += 1;
      return legacyCall(client, lastId, { method, params }, inputsIn);
    },
    notifications: () => told().filter((method) => !CHANGED.test(method) && method !== 'notifications/cancelled'),
    changed: () => told().flatMap((method) => CHANGED.exec(method)?.[1] ?? []),
    inputs: () => inputsIn(client.received),
    get isGone() {
      return client.isGone;
    },
    close: () => client.session.close(),
  };
}

function legacyCall(
  client: ScriptedClient,
  id: number,
  message: Message,
  inputsIn: (sink: RecordingSink) => Input[],
): Call {
  const channel = new RecordingSink();
  client.eraSession.receive(requestOf({ jsonrpc: '2.0', id, ...message }), {
    isShared: false,
    isDisconnected: false,
    unwrittenBytes: 0,
    send: (sent) => channel.send(sent),
    answer: (sent) => channel.send(sent),
    withdraw: () => {},
    onAbandoned: () => {},
  });
  return {
    answer: () => {
      const line = channel.lines.find((_, index) => channel.messages[index]?.method === undefined);
      if (line === undefined) return undefined;
      const { bytes, result, error } = responseOf(line);
      const span = result ?? error ?? { start: 0, end: 0 };
      return Buffer.from(splice({ bytes, span, edits: [] })).toString();
    },
    progress: () => channel.messages.flatMap(({ params }) => params?.progress ?? []),
    inputs: () => inputsIn(channel),
    cancel: () => client.cancel(id),
  };
}

/** A client that implements the port itself. */
function inMemoryPeer({ gateway }: World, server?: string): Peer {
  const options = { clientInfo: { name: 't', version: '0' }, capabilities: CAPABILITIES };
  const client = InMemoryClient.open(gateway, server === undefined ? options : { ...options, server });
  return {
    request: (method, params) => inMemoryCall(client.request(method, params)),
    notifications: () => client.notifications.map((line) => JSON.parse(line).method),
    changed: () => client.changed,
    inputs: () => client.inputs.map(inputOf),
    get isGone() {
      return client.isGone;
    },
    close: () => client.close(),
  };
}

function inMemoryCall(exchange: InMemoryExchange): Call {
  return {
    answer: () => exchange.answers[0],
    progress: () => exchange.reports,
    inputs: () => exchange.inputs.map(inputOf),
    cancel: () =>
      exchange.cancel(
        notificationOf({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'its own' } }),
      ),
  };
}

function inputOf(received: InMemoryExchange['inputs'][number]): Input {
  return {
    method: received.method,
    params: received.params,
    isWithdrawn: () => received.isWithdrawn,
    answer: (result) => {
      received.input.answer(responseOf(`{"jsonrpc":"2.0","id":0,"result":${result}}`), () => () => {});
    },
  };
}

const SERVER = { ...offering({ resources: ['x://r'], prompts: ['p'] }), tools: ['x'] };

describe.each([
  ['a session of the revisions with a handshake', legacyPeer],
  ['a client that implements the port itself', inMemoryPeer],
])('%s', (_, peerOf) => {
  async function serving(server?: string) {
    const world = await startGateway({ servers: { a: SERVER, b: { tools: ['y'] } } });
    const peer = peerOf(world, server);
    const { child } = world.server('a');
    return { ...world, peer, child };
  }

  it('gets the answer of the server byte for byte, and the server gets the params byte for byte', async () => {
    const { peer, child } = await serving();
    const call = peer.request('tools/call', { name: 'a__x', arguments: { n: 1 } });
    expect(child.calls.map(({ params }) => params)).toEqual([{ name: 'x', arguments: { n: 1 } }]);
    expect(call.answer()).toBeUndefined();
    child.say(`{"result":{ "n" : 1.0,"n":1e400},"id":${child.calls[0]?.id},"jsonrpc":"2.0"}`);
    expect(call.answer()).toBe('{ "n" : 1.0,"n":1e400}');
  });

  it('is told of a failure: for a tool call with a tool result, for other methods with an error', async () => {
    const { peer, server } = await serving();
    const call = peer.request('tools/call', { name: 'a__x' });
    const prompt = peer.request('prompts/get', { name: 'a__p' });
    // A prompt may be repeated, so it waits for the next process until no process is expected.
    server('a').crash('parked');
    const facts = { server: 'a', generation: 1, sent: true, outcome: 'unknown' };
    expect(JSON.parse(call.answer() ?? '')).toMatchObject({ isError: true, _meta: { 'trunkline/failure': facts } });
    expect(JSON.parse(prompt.answer() ?? '')).toMatchObject({ code: -32603, data: { ...facts } });
    expect(JSON.parse(peer.request('tools/call', { name: 'no__z' }).answer() ?? '')).toMatchObject({ code: -32602 });
  });

  it('gets progress with its request, as long as that is not answered', async () => {
    const { peer, child, clock } = await serving();
    const call = peer.request('tools/call', { name: 'a__x', _meta: { progressToken: 'mine' } });
    const progressToken = child.calls[0]?.params._meta.progressToken;
    expect(progressToken).toBe(child.calls[0]?.id);
    const report = (progress: number) =>
      child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } });
    report(1);
    report(2);
    child.answer(0, 'done');
    clock.advance(5);
    report(3);
    expect([call.progress(), call.answer()]).toEqual([[1, 2], '"done"']);
  });

  it('cancels its request: the server is told, and an answer is dropped', async () => {
    const { peer, child } = await serving();
    const call = peer.request('tools/call', { name: 'a__x' });
    call.cancel();
    expect(child.received.last).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: child.calls[0]?.id },
    });
    child.answer(0, 'late');
    expect(call.answer()).toBeUndefined();
  });

  it('gets the input request that its call has caused with that call, and its answer reaches the server', async () => {
    const { peer, child } = await serving();
    const call = peer.request('tools/call', { name: 'a__x' });
    child.say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: '?' } });
    expect(call.inputs().map(({ method, params }) => [method, params])).toEqual([
      ['elicitation/create', { message: 'Server "a" asks: ?' }],
    ]);
    expect(peer.inputs()).toEqual([]);
    call.inputs()[0]?.answer('{ "action":"accept","n":1.0}');
    expect(child.received.lines.at(-1)).toContain('"id":"q","result":{ "action":"accept","n":1.0}');
  });

  it('gets an input request that no call has caused apart from all calls', async () => {
    const world = await startGateway({ servers: { a: SERVER } });
    const peer = peerOf(world);
    world.server('a').child.say({ jsonrpc: '2.0', id: 'q', method: 'roots/list' });
    expect(peer.inputs().map(({ method }) => method)).toEqual(['roots/list']);
  });

  it('is told when the server withdraws an input request, or exits', async () => {
    const { peer, child, server } = await serving();
    const call = peer.request('tools/call', { name: 'a__x' });
    const elicitation = (id: string) => ({ jsonrpc: '2.0', id, method: 'elicitation/create', params: {} });
    child.say(elicitation('one'));
    child.say(elicitation('other'));
    child.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'one' } });
    expect(call.inputs().map((input) => input.isWithdrawn())).toEqual([true, false]);
    server('a').crash();
    expect(call.inputs().map((input) => input.isWithdrawn())).toEqual([true, true]);
  });

  it('is told by servers and of changed lists unsolicited', async () => {
    const { peer, child, server, clock } = await serving();
    expect(JSON.parse(peer.request('tools/list').answer() ?? '').tools).toHaveLength(2);
    child.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: 1 } });
    expect(peer.notifications()).toEqual(['notifications/message']);
    expect(peer.changed()).toEqual([]);
    server('b').crash('parked');
    clock.advance(200);
    expect(peer.changed()).toEqual(['tools']);
  });

  it('leaves: its requests are cancelled, and nothing reaches it any more', async () => {
    const { peer, child } = await serving();
    const call = peer.request('tools/call', { name: 'a__x' });
    peer.close();
    expect(child.received.last.method).toBe('notifications/cancelled');
    child.answer(0, 'late');
    child.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: 1 } });
    expect([call.answer(), peer.notifications()]).toEqual([undefined, []]);
  });

  it('that sees one server is told when that is removed', async () => {
    const { peer, change } = await serving('a');
    const call = peer.request('tools/list');
    expect(JSON.parse(call.answer() ?? '').tools).toHaveLength(1);
    change({ b: { tools: ['y'] } });
    for (let turn = 0; turn < 10; turn += 1) await flush();
    expect(peer.isGone).toBe(true);
  });
});
