import { describe, expect, it } from 'vitest';
import { startGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const ASKED_WITHIN_MS = 15;

describe('a question of a server that works on no call, to a client without a session', () => {
  it.each([
    ['elicitation/create', { message: 'Your password?', requestedSchema: { type: 'object', properties: {} } }],
    ['sampling/createMessage', { messages: [], maxTokens: 1 }],
  ])('F218: fails, and is not asked as if another server did: %s', async (method, params) => {
    const world = await startGateway({ servers: { a: { tools: ['t'] }, b: { tools: ['t'] } } });
    const [asking, called] = [world.server('a').child, world.server('b').child];
    const client = world.connect();
    client.modernRequest('call', 'tools/call', { name: 'b__t' }, { elicitation: { form: {} }, sampling: {} });
    asking.say({ jsonrpc: '2.0', id: 'q', method, params });
    world.clock.advance(ASKED_WITHIN_MS);
    await flush();
    expect(asking.received.last).toMatchObject({ id: 'q', error: { code: -32603 } });
    called.answer(0, { content: [] });
    await flush();
    expect(client.answerTo('call')?.result).toMatchObject({ resultType: 'complete', content: [] });
  });
});
