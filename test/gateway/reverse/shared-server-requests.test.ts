import { describe, expect, it } from 'vitest';
import { until } from '../../support/processes.js';
import { startGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const ELICIT = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: '?', requestedSchema: {} } };

async function shared(capabilities: readonly object[] = [{ elicitation: {} }, { elicitation: {} }]) {
  const world = await startGateway({ servers: { a: { tools: ['x'] } } });
  const clients = capabilities.map((each) => world.connect().greet('2025-11-25', each));
  const [one = world.connect(), other = world.connect()] = clients;
  const { child } = world.server('a');
  const answerAll = () => {
    for (const index of child.calls.keys()) child.answer(index);
  };
  return { ...world, one, other, child, answerAll };
}

describe('a server that asks while calls of two clients are in flight', () => {
  it('F36: is refused, and has calls of one client at a time from then on', async () => {
    const { one, other, child, answerAll } = await shared();
    one.call(1, 'a__x');
    other.call(1, 'a__x');
    child.say(ELICIT);
    expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32603 } });
    answerAll();

    one.call(2, 'a__x');
    other.call(2, 'a__x');
    one.call(3, 'a__x');
    expect(child.calls).toHaveLength(3);
    one.received.take();
    child.say({ ...ELICIT, id: 'r' });
    expect(one.received.last).toMatchObject({ method: 'elicitation/create' });
    child.answer(2);
    expect(child.calls).toHaveLength(4);
    child.answer(3);
    expect(other.answerTo(2)).toBeDefined();
    child.answer(4);
    expect(one.answerTo(3)).toBeDefined();
  });

  it('lets a call that waits for the others go with its client, or when it has waited too long', async () => {
    const { one, other, child, answerAll, clock } = await shared();
    one.call(1, 'a__x');
    other.call(1, 'a__x');
    child.say(ELICIT);
    answerAll();
    one.call(2, 'a__x');
    other.call(2, 'a__x');
    other.call(3, 'a__x');
    other.cancel(2);
    clock.advance(10_000);
    expect(other.answerTo(3)?.result._meta['trunkline/failure']).toMatchObject({ reason: 'queue_timeout' });
    child.answer(2);
    one.call(4, 'a__x');
    expect(child.calls).toHaveLength(4);
  });

  it('is refused although one of them alone declared that it can be asked: it may have meant the other', async () => {
    const { one, other, child } = await shared([{}, { elicitation: {} }]);
    one.call(1, 'a__x');
    other.call(1, 'a__x');
    child.say(ELICIT);
    expect(child.received.last).toMatchObject({ id: 'q', error: { code: -32603 } });
    expect([...one.received.messages, ...other.received.messages]).toEqual([]);
  });

  it('asks the one whose call can make it ask, and not one that only completes a word', async () => {
    const { one, other, child } = await shared();
    one.call(1, 'a__x');
    other.request(1, 'completion/complete', { ref: { type: 'ref/prompt', name: 'a__p' }, argument: {} });
    child.say(ELICIT);
    expect(one.received.last).toMatchObject({ method: 'elicitation/create' });
  });
});

describe('a server behind a URL that asks on the answer to a call', () => {
  const CAPABILITIES = { elicitation: { form: {} } };

  it.each(['legacy', 'modern'] as const)(
    'F264: asks the client of that call, with two clients of the %s era',
    async (era) => {
      const { clock, connect, server } = await startGateway({
        servers: { a: { tools: ['x'], network: { fault: undefined } } },
      });
      const clients = [connect(), connect()];
      for (const client of clients) {
        if (era === 'legacy') client.greet('2025-11-25', CAPABILITIES);
        client.received.take();
      }
      await flush();
      for (const client of clients) {
        if (era === 'legacy') client.call(1, 'a__x');
        else client.modernRequest(1, 'tools/call', { name: 'a__x', arguments: {} }, CAPABILITIES);
      }
      const { child } = server('a');
      await until('the calls', () => child.calls.length === 2);
      for (const [index, { id }] of [...child.calls.entries()].reverse()) {
        child.sayDuring(id, { ...ELICIT, id: `q${index}` });
        const asked = () => clients.map(({ received }) => received.messages.length);
        await until('the question', () => {
          // Questions to a client without a session are collected for some time.
          clock.advance(10);
          return asked().some((count) => count > 0);
        });
        expect(asked()).toEqual(index === 1 ? [0, 1] : [1, 0]);
        const question = clients[index]?.received.take()[0];
        if (era === 'legacy') expect(question).toMatchObject({ method: 'elicitation/create' });
        else expect(question).toMatchObject({ id: 1, result: { resultType: 'input_required' } });
      }
    },
  );
});

describe('the news of a completed elicitation', () => {
  const URL_ELICIT = {
    ...ELICIT,
    params: { mode: 'url', message: '?', url: 'https://a.example', elicitationId: 'e1' },
  };
  const complete = (elicitationId: string) => ({
    jsonrpc: '2.0',
    method: 'notifications/elicitation/complete',
    params: { elicitationId },
  });

  it('is told to the client that was asked to do it, though its call is over', async () => {
    const { one, other, child } = await shared([{ elicitation: { url: {} } }, { elicitation: { url: {} } }]);
    one.call(1, 'a__x');
    child.say(URL_ELICIT);
    child.answer(0);
    one.received.take();
    child.say(complete('e1'));
    expect(one.received.last).toEqual(complete('e1'));
    expect(other.received.messages).toEqual([]);
  });

  it('is told to all when the asked client is unknown, because clients ignore unknown ids', async () => {
    const { one, other, child } = await shared([{ elicitation: { url: {} } }, { elicitation: { url: {} } }]);
    one.call(1, 'a__x');
    child.say(URL_ELICIT);
    child.say(complete('e2'));
    expect([one, other].map(({ received }) => received.last?.params.elicitationId)).toEqual(['e2', 'e2']);
  });

  it('is told to all when the id was too long to be remembered', async () => {
    const { one, other, child } = await shared([{ elicitation: { url: {} } }, { elicitation: { url: {} } }]);
    one.call(1, 'a__x');
    const elicitationId = 'e'.repeat(1_025);
    child.say({ ...URL_ELICIT, params: { ...URL_ELICIT.params, elicitationId } });
    child.say(complete(elicitationId));
    expect([one, other].map(({ received }) => received.last)).toEqual([
      complete(elicitationId),
      complete(elicitationId),
    ]);
  });
});
