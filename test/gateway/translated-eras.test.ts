import { describe, expect, it } from 'vitest';
import { offering, type ServerScript, startGateway, toolOf } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const CAPABILITIES = { elicitation: { form: {}, url: {} } };

/** One server of this era, with a client of each era. */
async function withServer(era: 'legacy' | 'modern', script: ServerScript = {}, alone = false, revision = '2025-11-25') {
  const { clock, server, connect } = await startGateway({
    servers: { s: { hasBridge: true, isModern: era === 'modern', clientCapabilities: CAPABILITIES, ...script } },
  });
  const who = alone ? { server: 's' } : {};
  const [legacy, modern] = [connect(who), connect(who)];
  legacy.initialize(revision, CAPABILITIES);
  await flush();
  const ask = async (client: 'legacy' | 'modern', id: number, method: string, params: Message = {}) => {
    if (client === 'legacy') legacy.request(id, method, params);
    else modern.modernRequest(id, method, params, CAPABILITIES);
    await flush();
  };
  const reply = async (method: string, answer: Message) => {
    server('s').child.reply(method, answer);
    await flush();
  };
  const stop = () => server('s').moved('stopping');
  return { clock, child: server('s').child, legacy, modern, ask, reply, stop };
}

describe('an error about a resource', () => {
  const withResources = offering({ resources: [] });
  const uri = 'x://\u00fc';
  const missing = (code: number, data?: Message) => ({ code, message: 'gone', ...(data && { data }) });

  it.each([
    ['becomes the code that legacy clients know if it names the resource', missing(-32602, { uri, n: 1 }), -32002],
    ['stays if it names another resource', missing(-32602, { uri: 'x://other' }), -32602],
    ['stays if it names none', missing(-32602), -32602],
    ['stays if its code says something else', missing(-32603, { uri }), -32603],
  ])('of a modern server %s', async (_, error, code) => {
    const { legacy, modern, ask, reply } = await withServer('modern', withResources, true);
    await ask('legacy', 1, 'resources/read', { uri });
    await reply('resources/read', error);
    expect(legacy.answerTo(1)?.error).toEqual({ ...error, code });
    await ask('modern', 1, 'resources/read', { uri });
    await reply('resources/read', error);
    expect(modern.answerTo(1)?.error).toEqual(error);
  });

  it('of a legacy server becomes the code that modern clients know, with its data', async () => {
    const { legacy, modern, ask, reply } = await withServer('legacy', withResources, true);
    for (const client of ['legacy', 'modern'] as const) {
      await ask(client, 1, 'resources/read', { uri });
      await reply('resources/read', missing(-32002, { uri, n: 1 }));
    }
    expect(legacy.answerTo(1)?.error).toEqual(missing(-32002, { uri, n: 1 }));
    expect(modern.answerTo(1)?.error).toEqual(missing(-32602, { uri, n: 1 }));
  });
});

describe('a legacy server that wants a URL to be visited', () => {
  const elicitation = { mode: 'url', elicitationId: 'e1', url: 'https://a.test', message: 'Log in' };
  const error = { code: -32042, message: 'visit', data: { elicitations: [elicitation] } };

  it('is called again by a modern client that comes back, as at first, and a legacy client gets the error', async () => {
    const { child, legacy, modern, ask, reply } = await withServer('legacy', { tools: ['t'] });
    const call = { name: 's__t', arguments: { n: 1 } };
    await ask('modern', 1, 'tools/call', call);
    await reply('tools/call', error);
    const { inputRequests, requestState } = modern.answerTo(1)?.result ?? {};
    expect(Object.values<Message>(inputRequests).map(({ params }) => params.url)).toEqual(['https://a.test']);
    const inputResponses = { 'url-1': { action: 'accept' } };
    await ask('modern', 2, 'tools/call', { ...call, inputResponses, requestState });
    expect(child.calls.map(({ params }) => params)).toEqual(
      Array(2).fill({ name: 't', arguments: { n: 1 }, _meta: {} }),
    );
    await reply('tools/call', { content: [{ type: 'text', text: 'done' }] });
    expect(modern.answerTo(2)?.result).toMatchObject({
      resultType: 'complete',
      content: [{ type: 'text', text: 'done' }],
    });
    await ask('legacy', 1, 'tools/call', call);
    await reply('tools/call', error);
    const signed = { ...elicitation, message: 'Server "s" asks you to open a page of a.test: Log in' };
    expect(legacy.answerTo(1)?.error).toEqual({ ...error, data: { elicitations: [signed] } });
  });
});

describe('two calls of one modern client to a legacy server', () => {
  it('are told apart by which of them was sent or came back last', async () => {
    const { clock, child, modern, ask } = await withServer('legacy', { tools: ['t'] });
    const call = (n: number) => ({ name: 's__t', arguments: { n } });
    const elicit = async (id: string) => {
      const params = { message: id, requestedSchema: { type: 'object', properties: {} } };
      child.say({ jsonrpc: '2.0', id, method: 'elicitation/create', params });
      await flush();
      clock.advance(15);
    };
    await ask('modern', 1, 'tools/call', call(1));
    await elicit('first');
    await ask('modern', 2, 'tools/call', call(2));
    const { requestState } = modern.answerTo(1)?.result ?? {};
    const inputResponses = { 'input-1': { action: 'accept', content: {} } };
    await ask('modern', 3, 'tools/call', { ...call(1), inputResponses, requestState });
    await elicit('second');
    expect([modern.answerTo(2), modern.answerTo(3)?.result.inputRequests['input-2'].params.message]).toEqual([
      undefined,
      'Server "s" asks: second',
    ]);
    await ask('modern', 4, 'tools/call', call(3));
    await elicit('third');
    expect(modern.answerTo(4)?.result.resultType).toBe('input_required');
  });
});

describe('a tool whose output is no object', () => {
  const outputSchema = { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'number' } } };
  const rebased = { ...outputSchema, items: { $ref: '#/properties/result/$defs/n' } };
  const wrapped = { type: 'object', properties: { result: rebased }, required: ['result'] };
  const either = { anyOf: [{ type: 'object' }, { type: 'null' }] };
  const tools = [
    toolOf('list', { outputSchema }),
    toolOf('either', { outputSchema: either }),
    toolOf('plain', { outputSchema: { type: 'object' } }),
    toolOf('none'),
  ];
  const schemasOf = (answer: Message | undefined) =>
    Object.fromEntries(answer?.result.tools.map((tool: Message) => [tool.name, tool.outputSchema]));

  it('of a modern server is listed for modern clients as it is, and for legacy clients as an object', async () => {
    const { legacy, modern, ask } = await withServer('modern', { tools });
    await ask('legacy', 1, 'tools/list');
    await ask('modern', 1, 'tools/list');
    expect(schemasOf(legacy.answerTo(1))).toEqual({
      s__list: wrapped,
      s__either: { type: 'object', properties: { result: either }, required: ['result'] },
      s__plain: { type: 'object' },
      s__none: undefined,
    });
    expect(schemasOf(modern.answerTo(1))).toMatchObject({ s__list: outputSchema, s__either: either });
  });

  it.each([
    ['the server alone', {}],
    ['the server alone, with other names', { shapes: { rename: { list: 'other' } } }],
  ])('is listed the same for clients that see %s', async (_, script: ServerScript) => {
    const { legacy, modern, ask } = await withServer('modern', { tools, ...script }, true);
    await ask('legacy', 1, 'tools/list');
    await ask('modern', 1, 'tools/list');
    const name = script.shapes === undefined ? 'list' : 'other';
    expect(schemasOf(legacy.answerTo(1))).toMatchObject({ [name]: wrapped, plain: { type: 'object' } });
    expect(schemasOf(modern.answerTo(1))).toMatchObject({ [name]: outputSchema });
  });

  it.each([
    ['list', [1], { result: [1] }],
    ['either', { a: 1 }, { result: { a: 1 } }],
    ['either', null, { result: null }],
    ['plain', { a: 1 }, { a: 1 }],
    ['none', 5, { result: 5 }],
  ])('of a modern server: %s gives %j', async (tool, structuredContent, expected) => {
    for (const alone of [false, true]) {
      const { legacy, modern, ask, reply } = await withServer('modern', { tools }, alone);
      for (const client of ['legacy', 'modern'] as const) {
        await ask(client, 1, 'tools/call', { name: alone ? tool : `s__${tool}` });
        await reply('tools/call', { resultType: 'complete', content: [], structuredContent, ttlMs: 1 });
      }
      expect(legacy.answerTo(1)?.result).toEqual({ content: [], structuredContent: expected });
      expect(modern.answerTo(1)?.result.structuredContent).toEqual(structuredContent);
    }
  });

  it('F226: is the same in what a server answers while it is being stopped', async () => {
    const { legacy, ask, reply, stop } = await withServer('modern', { tools }, true);
    await ask('legacy', 1, 'tools/call', { name: 'list' });
    await ask('legacy', 2, 'tools/list');
    stop();
    await reply('tools/call', { resultType: 'complete', content: [], structuredContent: [1] });
    await reply('tools/list', { resultType: 'complete', tools: tools.map((tool) => JSON.parse(tool)) });
    expect(legacy.answerTo(1)?.result.structuredContent).toEqual({ result: [1] });
    expect(schemasOf(legacy.answerTo(2))).toMatchObject({ list: wrapped });
  });

  it('of a legacy server is listed only if it may be an object, and its results are objects for legacy clients', async () => {
    const { legacy, modern, ask, reply } = await withServer('legacy', { tools });
    for (const client of ['legacy', 'modern'] as const) {
      await ask(client, 1, 'tools/list');
      await ask(client, 2, 'tools/call', { name: 's__list' });
      await reply('tools/call', { content: [], structuredContent: [1] });
    }
    for (const [client, output] of [
      [legacy, { result: [1] }],
      [modern, [1]],
    ] as const) {
      expect(schemasOf(client.answerTo(1))).toEqual({
        s__either: { ...either, type: 'object' },
        s__plain: { type: 'object' },
        s__none: undefined,
      });
      expect(client.answerTo(2)?.result.structuredContent).toEqual(output);
    }
  });
});

describe('a feature that is newer than the revision of a client', () => {
  const link = { type: 'resource_link', name: 'n', uri: 'x://1' };
  const withPrompts = { ...offering({ prompts: ['p'] }), tools: ['t'] };
  const asks = [
    ['tools/call', 's__t', { content: [link] }, { content: [{ type: 'text', text: 'n: x://1' }] }],
    [
      'prompts/get',
      's__p',
      { messages: [{ role: 'user', content: link }] },
      { messages: [{ role: 'user', content: { type: 'text', text: 'n: x://1' } }] },
    ],
  ] as const;

  it.each(asks)('does not reach it from a modern server: %s', async (method, name, result, older) => {
    const { legacy, modern, ask, reply } = await withServer('modern', withPrompts, false, '2025-03-26');
    for (const client of ['legacy', 'modern'] as const) {
      await ask(client, 1, method, { name });
      await reply(method, { resultType: 'complete', ...result });
    }
    expect(legacy.answerTo(1)?.result).toEqual(older);
    expect(modern.answerTo(1)?.result).toMatchObject(result);
  });

  it.each(asks)('reaches it from a legacy server as it is: %s', async (method, name, result) => {
    const { legacy, ask, reply } = await withServer('legacy', withPrompts, false, '2024-11-05');
    await ask('legacy', 1, method, { name });
    await reply(method, result);
    expect(legacy.answerTo(1)?.result).toEqual(result);
  });

  it('is put into its words where a modern server asks its user', async () => {
    const { legacy, ask, reply } = await withServer('modern', { tools: ['t'] }, false, '2025-06-18');
    const choice = { type: 'string', oneOf: [{ const: 'r', title: 'Red' }] };
    const params = { message: 'Which?', requestedSchema: { type: 'object', properties: { choice } } };
    await ask('legacy', 1, 'tools/call', { name: 's__t' });
    await reply('tools/call', {
      resultType: 'input_required',
      inputRequests: { k: { method: 'elicitation/create', params } },
    });
    const asked = legacy.received.messages.find(({ method }) => method === 'elicitation/create');
    const older = { type: 'string', enum: ['r'], enumNames: ['Red'] };
    expect(asked?.params.requestedSchema.properties.choice).toEqual(older);
  });
});
