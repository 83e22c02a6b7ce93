import { describe, expect, it } from 'vitest';
import { scriptGateway } from '../../support/scripted-gateway.js';

const UNKNOWN = { code: -32601, message: 'no such method' };

async function two(protocolVersion?: string) {
  const world = scriptGateway({ servers: { a: { tools: ['x'] }, b: { tools: ['y'] } } });
  await world.startAll();
  const client = world.connect();
  client.initialize(protocolVersion, { elicitation: {} });
  const [a, b] = [world.server('a').child, world.server('b').child];
  return { ...world, client, a, b, sources: () => client.received.sources };
}

function progress(progressToken: unknown) {
  return { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } };
}

const SAID = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: 1 } };

describe('the order of what a client is told', () => {
  it('is kept among all that one server says along its calls: answers, progress, log messages and server requests', async () => {
    const { client, a, b, clock, sources } = await two();
    client.call(1, 'a__x', { _meta: { progressToken: 't' } });
    client.call(2, 'b__y');
    a.say(progress(a.calls[0]?.id), SAID);
    a.say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: '?' } });
    a.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } });
    b.answer(0);
    a.answer(0);
    clock.advance(5);
    expect(client.received.messages.map(({ id, method }) => method ?? id)).toEqual([
      'notifications/progress',
      'notifications/message',
      'elicitation/create',
      'notifications/cancelled',
      2,
      1,
    ]);
    expect(sources()).toEqual(['a', 'a', 'a', 'a', 'b', 'a']);
  });

  it('is kept between a server and the gateway, which ends a call in its stead', async () => {
    const { client, server, sources } = await two();
    client.call(1, 'a__x');
    server('a').crash();
    expect(client.answerTo(1)?.result.isError).toBe(true);
    expect(sources()).toEqual(['a']);
  });

  it('is kept among all for what the gateway says itself, and for what a server says when nobody has called it', async () => {
    const { client, a, sources } = await two();
    client.request(1, 'ping');
    client.request(2, 'tools/list');
    client.call(3, 'nobody__z');
    a.say(SAID);
    expect(sources()).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('is kept among all for a request that two servers were asked for', async () => {
    const { client, a, b, sources } = await two();
    client.request(1, 'skills/list', { _meta: { progressToken: 't' } });
    a.say(progress(a.asked('skills/list')[0]?.id));
    a.reply('skills/list', UNKNOWN);
    b.reply('skills/list', { skills: [] });
    expect(sources()[0]).toBe('a');
    expect(
      sources()
        .slice(1)
        .every((source) => source === undefined),
    ).toBe(true);
  });

  it('is kept among all for the answers to a batch, and by server for what is said on the way to them', async () => {
    const { client, a, b, clock, sources } = await two('2025-03-26');
    const call = (id: number, name: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, _meta: { progressToken: id } },
    });
    client.say(JSON.stringify([call(1, 'a__x'), call(2, 'b__y')]));
    a.say(progress(a.calls[0]?.id));
    a.answer(0);
    b.answer(0);
    clock.advance(5);
    expect(client.received.messages.at(-1)).toHaveLength(2);
    expect(sources()).toEqual(['a', undefined]);
  });
});
