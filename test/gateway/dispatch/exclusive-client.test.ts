import { describe, expect, it } from 'vitest';
import { InMemoryClient, InMemoryExchange } from '../../support/in-memory-client.js';
import { startGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';
import { dispatching } from './dispatching.js';

const ELICIT = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: '?', requestedSchema: {} } };

/** Two clients of a server that sent a request while both had calls in flight, so that it gets one client's calls at a time. */
async function oneAtATime() {
  const world = await startGateway({ servers: { a: { tools: ['x'] } } });
  const clients = [world.connect(), world.connect()] as const;
  const { child } = world.server('a');
  for (const client of clients) {
    client.initialize('2025-11-25', { elicitation: {} });
    client.call(1, 'a__x');
  }
  child.say(ELICIT);
  child.answer(0);
  child.answer(1);
  const [one, other] = clients;
  return { ...world, one, other, child };
}

describe('calls that wait for the calls of another client', () => {
  it('are sent in their order when those are done, behind none that was cancelled', async () => {
    const { dispatcher, start } = dispatching();
    const child = await start();
    dispatcher.admission.serveOneClientAtATime();
    const clients = [new InMemoryClient(), new InMemoryClient()];
    const [a, b, c, d] = [0, 0, 1, 0].map((client) => {
      const exchange = new InMemoryExchange('tools/call', { name: 'x' }, clients[client]);
      dispatcher.serve(exchange, { edits: [] });
      return exchange;
    });
    expect(child.calls).toHaveLength(2);
    c?.cancel();
    expect(child.calls).toHaveLength(3);
    child.answer(0);
    const last = new InMemoryExchange('tools/call', { name: 'x' }, clients[1]);
    dispatcher.serve(last, { edits: [] });
    child.answer(1);
    expect(child.calls).toHaveLength(3);
    child.answer(2);
    child.answer(3);
    expect([a, b, c, d, last].map((exchange) => exchange?.answers.length)).toEqual([1, 1, 0, 1, 1]);
  });

  it('F204: are sent or answered, and never both, when the wait of several ends at the same moment', async () => {
    const { one, other, child, clock } = await oneAtATime();
    one.call(2, 'a__x');
    other.call(2, 'a__x');
    one.call(3, 'a__x');
    clock.advance(10_000);
    expect(other.answerTo(2)?.result._meta['trunkline/failure']).toMatchObject({ reason: 'queue_timeout' });
    // The next call belongs to the client that has exclusive access.
    expect(child.calls).toHaveLength(4);
    expect(one.answerTo(3)).toBeUndefined();
    other.call(4, 'a__x');
    expect(child.calls).toHaveLength(4);
    child.answer(3);
    expect(one.answerTo(3)?.result).toEqual({ content: [] });
  });

  it('F203: go to the next process only, when the server is replaced', async () => {
    const { one, other, child, server, change } = await oneAtATime();
    one.call(2, 'a__x');
    other.call(2, 'a__x');
    one.call(3, 'a__x');
    change({ a: { tools: ['x'] } }, ['a']);
    const next = server('a~2');
    await next.start();
    await flush();
    expect(next.child.calls).toHaveLength(2);
    child.answer(2);
    await flush();
    expect(child.calls).toHaveLength(3);
  });
});
