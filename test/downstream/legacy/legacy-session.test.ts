import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutgoingServerRequests } from '../../../src/downstream/legacy/legacy-session.js';
import type { InputRequest } from '../../../src/downstream/port.js';
import type { RpcError } from '../../../src/wire/jsonrpc/message.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { type ScriptedClient, scriptGateway } from '../../support/scripted-gateway.js';
import { flush, notificationOf, RecordingSink, requestOf } from '../../support/wire.js';

async function serving() {
  const world = scriptGateway({ servers: { a: { tools: ['read'], limits: { concurrency: 2 } } } });
  await world.startAll();
  const client = world.connect();
  return { ...world, client, child: world.server('a').child };
}

/** Capabilities that every client gets, whatever servers run. */
const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
};

/** Capabilities for clients that know tasks. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';

/** Makes a call whose answer has its own channel, as over HTTP. */
function callApart(client: ScriptedClient, isDisconnected = false) {
  const sent: string[] = [];
  const reply = {
    ...{ isShared: false, isDisconnected, unwrittenBytes: 0, withdraw: () => {}, onAbandoned: () => {} },
    send: () => sent.push('sent'),
    answer: () => sent.push('answer'),
  };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__read' } };
  client.eraSession.receive(requestOf(call), reply);
  return { sent, reply };
}

/** Number of announcements of changed tools that the client got. */
function announcements(client: ScriptedClient): number {
  return client.received.lines.filter((line) => line === CHANGED).length;
}

describe('the handshake', () => {
  it.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])('agrees on %s', async (revision) => {
    const { client } = await serving();
    expect(client.initialize(revision).result).toEqual({
      protocolVersion: revision,
      capabilities: revision === '2025-11-25' ? { ...CAPABILITIES, tasks: TASKS } : CAPABILITIES,
      serverInfo: { name: 'trunkline', version: '1.2.3' },
      instructions: expect.any(String),
    });
  });

  it.each(['"2099-01-01"', '"2026-07-28"', '7', 'null', '{}', '""'])(
    'offers our latest revision for %s',
    async (version) => {
      const { client } = await serving();
      client.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":${version}}}`);
      expect(client.answerTo(1)?.result.protocolVersion).toBe('2025-11-25');
    },
  );

  it('may lack params', async () => {
    const { client } = await serving();
    client.request(1, 'initialize');
    expect(client.answerTo(1)?.result.protocolVersion).toBe('2025-11-25');
  });

  it('happens once', async () => {
    const { client } = await serving();
    client.initialize();
    client.request(1, 'initialize', { protocolVersion: '2025-11-25' });
    expect(client.answerTo(1)?.error).toMatchObject({ code: -32600 });
  });

  it('comes first: other requests before it are refused, and reach nobody', async () => {
    const { client, child } = await serving();
    client.request(1, 'tools/list');
    client.call(2, 'a__read');
    client.request(3, 'unheard/of');
    for (const id of [1, 2, 3]) expect(client.answerTo(id)?.error.message).toContain('has to begin with initialize');
    expect(child.calls).toEqual([]);
    expect(client.session.inFlight).toBe(0);
  });

  it.each([
    ['tools/call', -32602],
    ['resources/templates/list', -32602],
    ['server/discover', -32601],
    ['notifications/initialized', -32601],
    ['unheard/of', -32601],
  ])('comes first: %s before it is answered with %i', async (method, code) => {
    const { client } = await serving();
    client.request(1, method);
    expect(client.answerTo(1)?.error.code).toBe(code);
    client.initialize();
    expect(client.session.revision).toBe('2025-11-25');
  });

  it('need not be confirmed before requests are served', async () => {
    const { client } = await serving();
    client.request(1, 'initialize', {});
    client.request(2, 'tools/list');
    expect(client.answerTo(2)?.result.tools).toHaveLength(1);
  });
});

describe('ping', () => {
  it('is answered before the handshake, and while nothing else works', async () => {
    const { client, child } = await serving();
    client.request('early', 'ping');
    expect(client.received.lines).toEqual(['{"jsonrpc":"2.0","id":"early","result":{}}']);
    client.initialize();
    for (let id = 0; id < 200; id += 1) client.call(id, 'a__read');
    client.received.take();
    client.say('{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}');
    expect(client.received.lines).toEqual(['{"jsonrpc":"2.0","id":9007199254740993,"result":{}}']);
    expect(child.calls).toHaveLength(2);
  });
});

describe('an answer', () => {
  it.each(['1', '"1"', '1.0', '-7', '9007199254740993', '"\\u0061"', '""', '"😀"'])(
    'goes to the id %s as the client wrote it, all else as the child wrote it',
    async (id) => {
      const { client, child } = await serving();
      client.initialize();
      client.say(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"a__read"}}`);
      child.say(` {"result":{"x":1.0,"x":1e400} ,"id":${child.calls[0]?.id},"extra":null,"jsonrpc":"2.0"} \r`);
      expect(client.received.lines).toEqual([
        `{"result":{"x":1.0,"x":1e400} ,"id":${id},"extra":null,"jsonrpc":"2.0"}`,
      ]);
      expect(client.session.inFlight).toBe(0);
    },
  );

  it('finds the right one of many, in whatever order they come', async () => {
    const world = scriptGateway({ servers: { a: { tools: ['read'] }, b: { tools: ['read'] } } });
    await world.startAll();
    const client = world.connect();
    client.initialize();
    for (let id = 0; id < 20; id += 1) client.call(id, id % 2 === 0 ? 'a__read' : 'b__read', { arguments: { id } });
    for (const key of ['b', 'a']) {
      const { child } = world.server(key);
      for (let index = child.calls.length - 1; index >= 0; index -= 1) {
        child.answer(index, child.calls[index]?.params.arguments);
      }
    }
    for (let id = 0; id < 20; id += 1) expect(client.answerTo(id)?.result).toEqual({ id });
  });

  it('of one client never reaches another with the same id', async () => {
    const world = await serving();
    const other = world.connect();
    world.client.initialize();
    other.initialize();
    world.client.call(1, 'a__read', { arguments: 'mine' });
    other.call(1, 'a__read', { arguments: 'theirs' });
    world.child.answer(1, 'theirs');
    world.child.answer(0, 'mine');
    expect([world.client.answerTo(1)?.result, other.answerTo(1)?.result]).toEqual(['mine', 'theirs']);
  });
});

describe('an id that is in flight already', () => {
  it('is refused, and the first request is answered', async () => {
    const { client, child } = await serving();
    client.initialize();
    client.call(1, 'a__read');
    client.call(1, 'a__read');
    expect(client.received.take()).toEqual([
      { jsonrpc: '2.0', id: 1, error: { code: -32600, message: 'A request with this id is in flight already' } },
    ]);
    child.answer(0, 'first');
    expect(client.answerTo(1)?.result).toBe('first');
    expect(child.calls).toHaveLength(1);
  });

  it('is another one if it is a string, and free again after the answer', async () => {
    const { client, child } = await serving();
    client.initialize();
    client.call(1, 'a__read');
    client.call('1', 'a__read');
    expect(child.calls).toHaveLength(2);
    child.answer(0);
    child.answer(1);
    client.call(1, 'a__read');
    expect(child.calls).toHaveLength(3);
  });
});

describe('a cancelled request', () => {
  it('is not answered any more, and the child is told in the words of the client', async () => {
    const { client, child } = await serving();
    client.initialize();
    client.call('c', 'a__read');
    client.say(
      '{"method":"notifications/cancelled","params":{"reason":"no \\u00e9","requestId":"c","_meta":{"n":1.0}},"jsonrpc":"2.0"}',
    );
    expect(child.received.lines.at(-1)).toBe(
      `{"method":"notifications/cancelled","params":{"reason":"no \\u00e9","requestId":${child.calls[0]?.id},"_meta":{"n":1.0}},"jsonrpc":"2.0"}`,
    );
    child.answer(0);
    expect(client.received.lines).toEqual([]);
    expect(client.session.inFlight).toBe(0);
  });

  it.each([
    ['unknown', '99'],
    ['of another type', '"1"'],
    ['missing', undefined],
    ['null', 'null'],
  ])('with an id that is %s is none', async (_, id) => {
    const { client, child } = await serving();
    client.initialize();
    client.call(1, 'a__read');
    const params = id === undefined ? '{}' : `{"requestId":${id}}`;
    client.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`);
    expect(child.cancellations).toEqual([]);
    child.answer(0, 'done');
    expect(client.answerTo(1)?.result).toBe('done');
  });

  it('races its answer: one answer or silence, never both, and the id is free again', async () => {
    const step = fc.constantFrom('call', 'answer', 'cancel', 'wait', 'progress', 'turn');
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(step, fc.nat(3)), { maxLength: 40 }), async (steps) => {
        const { client, child, clock } = await serving();
        client.initialize();
        const cancelled = new Set<string>();
        const sent = new Map<number, string>();
        let count = 0;
        for (const [what, which] of steps) {
          const id = sent.get(which);
          if (what === 'call') {
            count += 1;
            sent.set(which, `r${count}`);
            client.call(`r${count}`, 'a__read', { arguments: count, _meta: { progressToken: count } });
          }
          if (what === 'cancel' && id !== undefined) {
            if (client.answerTo(id) === undefined) cancelled.add(id);
            client.cancel(id);
          }
          const call = child.calls.find(({ params }) => `r${params.arguments}` === id);
          if (what === 'answer' && call !== undefined) child.say({ jsonrpc: '2.0', id: call.id, result: id });
          if (what === 'progress' && call !== undefined) {
            const params = { progressToken: call.id, progress: clock.now() + count };
            child.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
          }
          if (what === 'wait') clock.advance(3);
          if (what === 'turn') await flush();
        }
        // A waiting call gets a free slot in a later microtask.
        await flush();
        // After the open calls were answered, nothing is left.
        while (child.connection.inFlight > 0) {
          for (const { id, params } of child.calls) child.say({ jsonrpc: '2.0', id, result: `r${params.arguments}` });
          await flush();
        }
        clock.advance(100);
        for (let number = 1; number <= count; number += 1) {
          const answer = client.answerTo(`r${number}`);
          if (cancelled.has(`r${number}`)) expect(answer).toBeUndefined();
          else expect(answer?.result).toBe(`r${number}`);
        }
        expect(client.session.inFlight).toBe(0);
        expect(child.connection.inFlight).toBe(0);
        const answeredAt = new Map(client.received.messages.map(({ id }, index) => [id, index]));
        client.received.messages.forEach(({ method, params }, index) => {
          if (method !== 'notifications/progress') return;
          expect(index).toBeLessThan(answeredAt.get(`r${params.progressToken}`) ?? Number.POSITIVE_INFINITY);
        });
      }),
      { numRuns: 100 },
    );
  });
});

describe('progress', () => {
  it("carries the client's own token, and nothing else changes", async () => {
    const { client, child } = await serving();
    client.initialize();
    client.say(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t\\u0031"},"name":"a__read"}}',
    );
    const id = child.calls[0]?.id;
    expect(child.calls[0]?.params._meta.progressToken).toBe(id);
    const report = (token: unknown) =>
      `{"params":{"progress":0.10,"message":"x","progressToken":${token}},"jsonrpc":"2.0","method":"notifications/progress"}`;
    child.say(report(id));
    expect(client.received.lines).toEqual([report('"t\\u0031"')]);
  });

  it('is not followed by the answer at once, which clients would take for the end of both', async () => {
    const { client, child, clock } = await serving();
    client.initialize();
    client.call(1, 'a__read', { _meta: { progressToken: 7 } });
    const id = child.calls[0]?.id;
    child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: 1 } });
    child.answer(0, 'done');
    expect(client.answerTo(1)).toBeUndefined();
    expect(client.session.inFlight).toBe(1);
    clock.advance(5);
    expect(client.answerTo(1)?.result).toBe('done');
    expect(client.session.inFlight).toBe(0);
  });

  it('leaves silence when the client gives up between it and the answer', async () => {
    const { client, child, clock } = await serving();
    client.initialize();
    client.call(1, 'a__read', { _meta: { progressToken: 7 } });
    const id = child.calls[0]?.id;
    child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: 1 } });
    child.answer(0, 'done');
    client.cancel(1);
    clock.advance(100);
    expect(client.answerTo(1)).toBeUndefined();
    expect(child.cancellations).toEqual([]);
  });
});

describe('a change of tools', () => {
  async function listed() {
    const world = scriptGateway({ servers: { a: { tools: ['x'] }, b: { tools: ['y'] } } });
    await world.startAll();
    const client = world.connect();
    const change = async () => {
      world.server('a').crash('parked');
      await world.server('a').start();
    };
    return { ...world, client, change };
  }

  it('F37: is announced four times a second at most', async () => {
    const { client, change, clock } = await listed();
    client.initialize();
    client.request(1, 'tools/list');
    for (let step = 0; step < 60; step += 1) {
      await change();
      clock.advance(100);
      await flush();
    }
    // The first announcement comes at once, then one each 250 ms of the six seconds.
    expect(announcements(client)).toBe(25);
  });

  it('is not announced to a client that has not listed yet, nor while it waits for its first list', async () => {
    const { server, connect, clock } = scriptGateway({ servers: { a: { tools: ['x'] }, b: { tools: ['y'] } } });
    const client = connect();
    client.initialize();
    await server('a').start();
    clock.advance(5_000);
    client.request(1, 'tools/list');
    await server('b').start();
    clock.advance(5_000);
    expect(client.answerTo(1)?.result.tools).toHaveLength(2);
    expect(announcements(client)).toBe(0);
  });

  it('is announced when a server arrives after the first list', async () => {
    const { server, connect, clock } = scriptGateway({ servers: { a: { tools: ['x'] } }, startupWaitMs: 1_000 });
    const client = connect();
    client.initialize();
    client.request(1, 'tools/list');
    clock.advance(1_000);
    await server('a').start();
    clock.advance(200);
    expect(announcements(client)).toBe(1);
  });

  it('is not announced before the client has confirmed the handshake', async () => {
    const { client, change, clock } = await listed();
    client.request(0, 'initialize', {});
    client.request(1, 'tools/list');
    await change();
    clock.advance(5_000);
    expect(announcements(client)).toBe(0);
    client.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    await change();
    clock.advance(5_000);
    expect(announcements(client)).toBe(1);
  });

  it('is not announced to a client that is gone', async () => {
    const { client, change, clock } = await listed();
    client.initialize();
    client.request(1, 'tools/list');
    await change();
    client.session.close();
    await change();
    clock.advance(60_000);
    expect(announcements(client)).toBe(0);
    expect(clock.pending).toBe(0);
  });
});

describe('a line that cannot be served', () => {
  it.each([
    ['not json', 'null', -32700],
    ['{"jsonrpc":"2.0","id":5,"method":"tools/list"', '5', -32700],
    ['{"jsonrpc":"2.0","id":"x","method":7}', '"x"', -32600],
    ['{"jsonrpc":"1.0","id":5,"method":"ping"}', '5', -32600],
    ['{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}', '5', -32600],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'null', -32600],
    ['[]', 'null', -32600],
    ['"ping"', 'null', -32600],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 'null', -32600],
    [`{"jsonrpc":"2.0","id":3,"method":"m","params":${'['.repeat(600)}${']'.repeat(600)}}`, '3', -32600],
  ])('is answered with an error: %s', async (line, id, code) => {
    const { client } = await serving();
    client.initialize();
    client.say(line);
    expect(client.received.lines).toHaveLength(1);
    expect(client.received.lines[0]).toMatch(`{"jsonrpc":"2.0","id":${id},"error":{"code":${code},`);
    client.request(1, 'ping');
    expect(client.answerTo(1)?.result).toEqual({});
  });

  it.each(['{"a":1}', '[1]', 'true'])('is answered under a null id when its own is no id: %s', async (id) => {
    const { client } = await serving();
    client.say(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    expect(client.received.last).toMatchObject({ id: null, error: { code: -32600 } });
  });

  it('is passed over when it is blank, or an answer to nothing', async () => {
    const { client } = await serving();
    client.say('', ' \r', '{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","method":"notifications/other"}');
    expect(client.received.lines).toEqual([]);
  });
});

describe('a client that leaves', () => {
  it('takes its requests along: they are cancelled wherever they are', async () => {
    const { client, child, clock } = await serving();
    client.initialize();
    for (let id = 0; id < 5; id += 1) client.call(id, 'a__read');
    expect(client.session.inFlight).toBe(5);
    client.session.close();
    client.session.close();
    await flush();
    expect(client.session.inFlight).toBe(0);
    expect(child.cancellations).toHaveLength(2);
    expect(child.calls).toHaveLength(2);
    child.answer(0);
    expect(client.received.lines).toEqual([]);
    expect(child.connection.inFlight).toBe(0);
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
  });

  it('does not disturb the others', async () => {
    const world = await serving();
    const other = world.connect();
    other.initialize();
    world.client.initialize();
    other.call(1, 'a__read');
    world.client.call(1, 'a__read');
    world.client.session.close();
    world.child.answer(0, 'ok');
    expect(other.answerTo(1)?.result).toBe('ok');
  });
});

describe('a request of a server to a client', () => {
  it.each(['sampling/createMessage', 'elicitation/create', 'roots/list', 'tasks/list'])(
    'without capabilities is refused, and the client does not see it: %s',
    async (method) => {
      const { client } = await serving();
      client.initialize();
      const errors: RpcError[] = [];
      const request = new EnvelopeRequest(requestOf({ jsonrpc: '2.0', id: 4, method, params: {} }));
      const fail = (error: RpcError) => errors.push(error);
      client.downstream.requireInput({ request, edits: [], answer: () => {}, progress: () => {}, fail });
      expect(errors.map((error) => error.toJSON())).toEqual([
        { code: -32601, message: `The client does not support ${method}` },
      ]);
      expect(client.received.lines).toEqual([]);
    },
  );
});

describe('a call whose client has gone from where its answer goes', () => {
  it('sends its server requests over the session, as without a call', async () => {
    const { client, child } = await serving();
    client.initialize('2025-11-25', { elicitation: {} });
    const { sent, reply } = callApart(client);
    child.say({ jsonrpc: '2.0', id: 'q1', method: 'elicitation/create', params: {} });
    expect([sent, client.received.lines]).toEqual([['sent'], []]);
    reply.isDisconnected = true;
    child.say({ jsonrpc: '2.0', id: 'q2', method: 'elicitation/create', params: {} });
    expect(sent).toEqual(['sent']);
    expect(client.received.messages.map(({ method }) => method)).toEqual(['elicitation/create']);
    child.answer(0);
    expect(sent).toEqual(['sent', 'answer']);
  });
});

describe('a client that has not confirmed the handshake', () => {
  const open = async () => {
    const world = await serving();
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: { roots: {} },
      clientInfo: { name: 't', version: '0' },
    };
    world.client.request('hello', 'initialize', params);
    world.client.received.take();
    const confirm = () => world.client.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return { ...world, confirm };
  };

  it('F212: gets server requests afterwards, but none that was cancelled meanwhile', async () => {
    const { client, child, confirm } = await open();
    for (const id of ['q1', 'q2', 'q3']) child.say({ jsonrpc: '2.0', id, method: 'roots/list' });
    for (const requestId of ['q1', 'q3'])
      child.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    expect(client.received.lines).toEqual([]);
    confirm();
    expect(client.received.lines).toEqual(['{"jsonrpc":"2.0","id":2,"method":"roots/list"}']);
  });

  it('is sent what a call of it causes at once, also where the answer of that call cannot reach it', async () => {
    const { client, child } = await open();
    callApart(client, true);
    const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
    child.say(log);
    expect(client.received.messages).toEqual([log]);
  });
});

describe('a server request that is cancelled after the call that caused it was answered', () => {
  it('is cancelled apart from that call, with the text of the server', async () => {
    const { client, child } = await serving();
    client.initialize('2025-11-25', { elicitation: {} });
    const { sent } = callApart(client);
    child.say({ jsonrpc: '2.0', id: 'q1', method: 'elicitation/create', params: {} });
    child.answer(0);
    child.say('{"jsonrpc":"2.0","params":{"reason":"l\\u0061te","requestId":"q1"},"method":"notifications/cancelled"}');
    expect(sent).toEqual(['sent', 'answer']);
    expect(client.received.lines).toEqual([
      '{"jsonrpc":"2.0","params":{"reason":"l\\u0061te","requestId":1},"method":"notifications/cancelled"}',
    ]);
  });
});

const INPUT: InputRequest = {
  request: new EnvelopeRequest(requestOf('{"jsonrpc":"2.0","id":"q","method":"roots/list"}')),
  edits: [],
  answer: () => {},
  fail: () => {},
  progress: () => {},
};
const CANCELLATION =
  '{"jsonrpc":"2.0","params":{"reason":"l\\u0061te","requestId":"q"},"method":"notifications/cancelled"}';

function sending() {
  const channel = new RecordingSink();
  const serverRequests = new OutgoingServerRequests();
  serverRequests.declare({ roots: {} });
  return { withdraw: serverRequests.send(INPUT, (message) => channel.send(message)), lines: channel.lines };
}

describe('a server request that is withdrawn', () => {
  it.each([
    [notificationOf(CANCELLATION), CANCELLATION.replace('"q"', '1')],
    [undefined, expect.stringContaining('"requestId":1')],
  ])('is cancelled on the way that it took, with the text of the server if there is one', (notification, expected) => {
    const { withdraw, lines } = sending();
    withdraw(notification);
    expect(lines).toEqual([expect.stringContaining('roots/list'), expected]);
  });

  it('is cancelled once', () => {
    const { withdraw, lines } = sending();
    withdraw(notificationOf(CANCELLATION));
    withdraw();
    expect(lines).toHaveLength(2);
  });
});
