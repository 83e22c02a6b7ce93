import { describe, expect, it } from 'vitest';
import type { ToolHints } from '../../../src/spec/server-rules.js';
import type { RequestHandler } from '../../../src/upstream/upstream-connection.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { offering, type scriptGateway, startGateway, toolOf } from '../../support/scripted-gateway.js';
import type { Message } from '../../support/wire.js';
import { dispatching } from './dispatching.js';

const ANSWER = '{"content":[]}';

describe('a call that may be repeated and whose process ends', () => {
  it('is sent to the next process, and its client hears of nothing but the answer', async () => {
    const { dispatcher, start, serve } = dispatching();
    const first = await start();
    const exchange = serve({}, true);
    dispatcher.stateChanged('backoff');
    first.connection.close('exited');
    expect(exchange.answers).toEqual([]);
    const second = await start();
    second.answer(0);
    expect(exchange.answers).toEqual([ANSWER]);
    expect(dispatcher.counters).toMatchObject({ calls: 1, failures: 0, repeated: 1 });
  });

  it('is sent again over the same connection if only its own stream broke, once', async () => {
    const { dispatcher, start } = dispatching();
    const { connection } = await start();
    const handlers: RequestHandler[] = [];
    connection.send = (_request, _edits, _timeouts, handler) => {
      handlers.push(handler);
      return { sentAt: 0, cancel: () => {}, keepProgress: () => () => {} };
    };
    const exchange = new InMemoryExchange('tools/call', { name: 'read' });
    dispatcher.serve(exchange, { edits: [], isRepeatable: true });
    handlers[0]?.settle({ kind: 'failed', reason: 'connection_lost', sent: true });
    expect([handlers.length, exchange.failure]).toEqual([2, undefined]);
    handlers[1]?.settle({ kind: 'failed', reason: 'connection_lost', sent: true });
    expect(handlers).toHaveLength(2);
    expect(exchange.failure).toMatchObject({ reason: 'connection_lost', outcome: 'unknown' });
  });

  it('is repeated once: when the next process ends as well, it fails as unknown', async () => {
    const { start, serve } = dispatching();
    const first = await start();
    const exchange = serve({}, true);
    first.connection.close('exited');
    const second = await start();
    expect(second.calls).toHaveLength(1);
    second.connection.close('exited');
    expect(exchange.failure).toMatchObject({ reason: 'child_exited', sent: true, outcome: 'unknown', generation: 2 });
    const third = await start();
    expect(third.calls).toEqual([]);
  });

  it('is said to have been sent when no other process comes in time', async () => {
    const { clock, start, serve } = dispatching();
    const child = await start();
    const exchange = serve({}, true);
    child.connection.close('exited', 'it went mad');
    clock.advance(4_999);
    expect(exchange.answers).toEqual([]);
    clock.advance(1);
    const failure = { reason: 'child_exited', sent: true, outcome: 'unknown', because: 'it went mad' };
    expect(exchange.failure).toMatchObject(failure);
  });

  it.each(['before', 'after'])(
    'is told at once when the server was given up %s the process had ended',
    async (when) => {
      const { clock, dispatcher, start, serve } = dispatching();
      const child = await start();
      const exchange = serve({}, true);
      if (when === 'before') dispatcher.stateChanged('parked');
      child.connection.close('exited');
      if (when === 'after') dispatcher.stateChanged('parked');
      expect(exchange.failure).toMatchObject({ reason: 'child_exited', sent: true, outcome: 'unknown' });
      clock.advance(60_000);
      expect(clock.pending).toBe(0);
    },
  );

  it('has the time that it had: a silent one that began 50 s ago has 10 s of its 60 left', async () => {
    const { clock, start, serve } = dispatching({ timeoutMs: 60_000 });
    const first = await start();
    const exchange = serve({}, true);
    clock.advance(50_000);
    first.connection.close('exited');
    await start();
    clock.advance(9_999);
    expect(exchange.answers).toEqual([]);
    clock.advance(1);
    expect(exchange.failure).toMatchObject({ reason: 'timeout', sent: true, outcome: 'unknown' });
  });

  it('reports no progress to its client that goes back', async () => {
    const { start, serve } = dispatching();
    const exchange = serve({ _meta: { progressToken: 'p' } }, true);
    const first = await start();
    first.say(...[10, 20].map((progress) => progressOf(first.calls[0]?.id, progress)));
    first.connection.close('exited');
    const second = await start();
    second.say(...[5, 20, 25].map((progress) => progressOf(second.calls[0]?.id, progress)));
    expect(exchange.reports).toEqual([10, 20, 25]);
  });

  it('is not sent again once its client has cancelled it', async () => {
    const { clock, dispatcher, start, serve } = dispatching();
    const first = await start();
    const exchange = serve({}, true);
    first.connection.close('exited');
    exchange.cancel();
    const second = await start();
    expect(second.calls).toEqual([]);
    expect(dispatcher.counters).toMatchObject({ cancelled: 1, repeated: 0 });
    clock.advance(600_000);
    expect(exchange.answers).toEqual([]);
  });

  it('can be cancelled at the process that has it now', async () => {
    const { start, serve } = dispatching();
    const first = await start();
    const exchange = serve({}, true);
    first.connection.close('exited');
    const second = await start();
    exchange.cancel();
    expect(second.cancellations.map(({ params }) => params.requestId)).toEqual([second.calls[0]?.id]);
  });
});

describe('a request of a client whose process ends', () => {
  const OFFER = offering({
    prompts: ['ask'],
    resources: ['x://1'],
    capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
  });
  const HINTS = {
    reads: { readOnlyHint: true },
    sets: { idempotentHint: true },
    adds: { idempotentHint: false, readOnlyHint: false },
    silent: undefined,
  };
  const tools = Object.entries(HINTS).map(([name, annotations]) => toolOf(name, { annotations }));

  it.each([
    ['resources/read', { uri: 'x://1' }],
    ['prompts/get', { name: 'files__ask' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'files__ask' }, argument: { name: 'a', value: '' } }],
  ])('is asked again, for %s has no effects', async (method, params) => {
    const { client, server } = await asking({ ...OFFER, tools });
    client.request('r', method, params);
    expect(server.child.asked(method)).toHaveLength(1);
    server.crash();
    const second = await server.start();
    second.reply(method, { fine: true });
    expect(client.answerTo('r')).toMatchObject({ result: { fine: true } });
  });

  it.each([
    ['reads', true, true],
    ['sets', true, true],
    ['adds', true, false],
    ['silent', true, false],
    ['reads', false, false],
    ['sets', false, false],
  ])(
    'is called again, the tool being one that %s and its server trusted (%s): %s',
    async (name, isTrusted, isAgain) => {
      const { client, server } = await asking({ ...OFFER, tools, isTrusted });
      client.request('r', 'tools/call', { name: `files__${name}` });
      server.crash();
      const second = await server.start();
      expect(second.calls).toHaveLength(isAgain ? 1 : 0);
      if (isAgain) second.answer(0);
      expect(client.answerTo('r')?.result.isError).toBe(isAgain ? undefined : true);
    },
  );

  it.each([
    ['says read-only of a tool without hints', 'silent', { readOnlyHint: true }, false, true],
    ['says idempotent of a tool that denies it', 'adds', { idempotentHint: true }, false, true],
    ['says only how a tool of a distrusted server is called', 'reads', { title: 'Reads' }, false, false],
    ['denies the hint of a trusted server', 'sets', { idempotentHint: false }, true, false],
    ['denies another hint than that of a trusted server', 'sets', { readOnlyHint: false }, true, true],
  ])(
    'is called again only if so the configuration wants it, where it %s',
    async (_, name, hints, isTrusted, isAgain) => {
      const { client, server } = await asking({ ...OFFER, tools, isTrusted, shapes: { annotate: { [name]: hints } } });
      client.request('r', 'tools/call', { name: `files__${name}` });
      server.crash();
      const second = await server.start();
      expect(second.calls).toHaveLength(isAgain ? 1 : 0);
      if (!isAgain) expect(client.answerTo('r')?.result.isError).toBe(true);
    },
  );

  it.each<[string, Record<string, ToolHints>, boolean]>([
    ['the server calls destructive', {}, false],
    ['its own name calls destructive', { silent: { destructiveHint: true } }, false],
    ['its own name calls idempotent, too', { deletes: { idempotentHint: true } }, true],
    ['its own name calls not destructive', { deletes: { destructiveHint: false } }, true],
  ])('is not called again by the hints of a glob, the tool being one that %s', async (_, own, isAgain) => {
    const deletes = toolOf('deletes', { annotations: { destructiveHint: true } });
    const annotate = { ...own, '*': { readOnlyHint: true, idempotentHint: true } };
    const { client, server } = await asking({ ...OFFER, tools: [...tools, deletes], shapes: { annotate } });
    client.request('r', 'tools/call', { name: `files__${Object.keys(own)[0] ?? 'deletes'}` });
    server.crash();
    expect((await server.start()).calls).toHaveLength(isAgain ? 1 : 0);
  });

  it('is not called again where the call is to become a task', async () => {
    const { client, server } = await asking({ ...OFFER, tools, isTrusted: true });
    client.request('r', 'tools/call', { name: 'files__reads', task: {} });
    server.crash();
    const second = await server.start();
    expect(second.calls).toEqual([]);
    expect(client.answerTo('r')).toHaveProperty('error');
  });
});

async function asking(server: Parameters<typeof scriptGateway>[0]['servers'][string]) {
  const world = await startGateway({ servers: { files: server } });
  const client = world.connect().greet('2025-11-25');
  return { client, server: world.server('files') };
}

function progressOf(progressToken: unknown, progress: number): Message {
  return { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } };
}
