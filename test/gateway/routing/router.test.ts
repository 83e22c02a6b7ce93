import { describe, expect, it } from 'vitest';
import { type Offer, offering, type ServerScript, startGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

async function routing(servers: Readonly<Record<string, ServerScript>>) {
  const world = await startGateway({ servers });
  const client = world.connect().greet();
  const keys = Object.keys(servers);
  /** The servers that received the request, with the params of each. */
  const reached = (method: string): [key: string, params: Message][] =>
    keys.flatMap((key) => {
      const heard = world.server(key).child.asked(method);
      return heard.map(({ params }): [string, Message] => [key, params]);
    });
  const ask = (method: string, params?: Message) => {
    client.request('q', method, params);
    return client.received.take().find(({ id }) => id === 'q');
  };
  return { ...world, client, reached, ask };
}

function among(offers: Readonly<Record<string, Offer>>) {
  return routing(Object.fromEntries(Object.entries(offers).map(([key, offer]) => [key, offering(offer)])));
}

const FOUND = { contents: [{ uri: 'hidden://1', text: '' }] };

const FIELD: Readonly<Record<string, Offer>> = {
  a: {
    prompts: ['greet', 'only'],
    resources: ['file:///a.txt', 'https://a.example/1', 'mem:one'],
    templates: ['note://{id}', 'deep://{x}'],
  },
  b: {
    prompts: ['greet'],
    resources: ['file:///b.txt', 'https://b.example/1', 'mem:two'],
    templates: ['note://b/{id}', 'deep://{x}/mid/{y}/end'],
  },
  tools: {},
};

describe('a prompt', () => {
  it.each([
    ['a__greet', 'a', 'greet'],
    ['b__greet', 'b', 'greet'],
    ['b__unlisted', 'b', 'unlisted'],
    ['only', 'a', 'only'],
  ])('called %s is asked of %s as %s', async (name, key, original) => {
    const { ask, reached } = await among(FIELD);
    expect(ask('prompts/get', { name, arguments: { name } })).toBeUndefined();
    expect(reached('prompts/get')).toEqual([[key, { name: original, arguments: { name } }]]);
  });

  it.each(['greet', 'missing', 'z__greet', ''])('called %j is nobody’s', async (name) => {
    const { ask, reached } = await among(FIELD);
    expect(ask('prompts/get', { name })?.error).toEqual({
      code: -32602,
      message: expect.stringMatching(`^Unknown prompt: ${name}(?:$|\\.)`),
    });
    expect(reached('prompts/get')).toEqual([]);
  });

  it.each([undefined, {}, { name: 7 }, { name: null }])('without a name (%j) is refused', async (params) => {
    const { ask } = await among(FIELD);
    const message = 'prompts/get needs the name of a prompt, a string';
    expect(ask('prompts/get', params)?.error).toEqual({ code: -32602, message });
  });

  it('is not subject to what is said of tools', async () => {
    const { ask, reached } = await routing({ a: { ...offering({ prompts: ['p'] }), filter: { deny: ['*'] } } });
    ask('prompts/get', { name: 'a__p' });
    expect(reached('prompts/get')).toHaveLength(1);
  });
});

describe('a resource', () => {
  it.each([
    ['https://b.example/1', 'b', 'who lists it'],
    ['file:///b.txt', 'b', 'who lists it, of several with the same authority'],
    ['note://x', 'a', 'the template that it fits'],
    ['note://b/x', 'b', 'the template with the longest literal beginning'],
    ['deep://1/mid/2/end', 'a', 'the first of two templates with the same literal beginning'],
    ['https://a.example/2?q#f', 'a', 'the only one that lists something of its authority'],
  ])('%s is asked of %s: %s', async (uri, key) => {
    const { ask, reached } = await among(FIELD);
    expect(ask('resources/read', { uri })).toBeUndefined();
    expect(reached('resources/read')).toEqual([[key, { uri }]]);
  });

  it('that fits a template is asked of the server that lists it all the same', async () => {
    const { ask, reached } = await among({ a: { templates: ['x://{id}'] }, b: { resources: ['x://1'] } });
    ask('resources/read', { uri: 'x://1' });
    expect(reached('resources/read')).toEqual([['b', { uri: 'x://1' }]]);
  });

  it('goes to the only server that has resources, when nothing else tells', async () => {
    const { ask, reached } = await among({ a: { resources: ['x://1'] }, b: { prompts: ['p'] } });
    ask('resources/read', { uri: 'other://y' });
    expect(reached('resources/read')).toEqual([['a', { uri: 'other://y' }]]);
  });

  it('goes to the server that lists it though it is withheld from the list', async () => {
    const servers = { a: offering({ resources: [] }), b: offering({ resources: ['x://b'] }) };
    const lists = { ...servers.a.lists, 'resources/list': { resources: [{ uri: 'x://1' }] } };
    const { ask, reached } = await routing({ ...servers, a: { ...servers.a, lists } });
    ask('resources/read', { uri: 'x://1' });
    expect(reached('resources/read')).toEqual([['a', { uri: 'x://1' }]]);
  });

  it('reaches its server as the client wrote it', async () => {
    const { client, server } = await among(FIELD);
    client.say(
      '{"id":"c","params":{ "uri" : "file:\\/\\/\\/\\u0062.txt","n":1.0 },"jsonrpc":"2.0","method":"resources/read"}',
    );
    const sent = server('b').child.received.lines.at(-1);
    expect(sent).toContain('"params":{ "uri" : "file:\\/\\/\\/\\u0062.txt","n":1.0 }');
  });

  it.each(['file:///c.txt', 'https://c.example/1', 'mem:three', 'none://', 'deep', ''])(
    '%j that nobody has is not found',
    async (uri) => {
      const { client, server, reached } = await among(FIELD);
      client.request(1, 'resources/read', { uri });
      server('a').child.reply('resources/read', { code: -32002, message: 'not mine' });
      server('b').child.reply('resources/read', { code: -32602, message: 'nor mine' });
      expect(client.answerTo(1)?.error).toEqual({
        code: -32002,
        message: `Resource not found: ${uri}`,
        data: { uri },
      });
      expect(reached('resources/read').map(([key]) => key)).toEqual(['a', 'b']);
    },
  );

  it('that nobody has cannot be subscribed to, and no server hears of it', async () => {
    const { ask, reached } = await among(FIELD);
    expect(ask('resources/subscribe', { uri: 'none://' })?.error).toMatchObject({ code: -32002 });
    expect(reached('resources/subscribe')).toEqual([]);
  });

  it('that no list tells of is looked for in the order of the servers, and known from then on', async () => {
    const { client, server, reached } = await among(FIELD);
    client.request(1, 'resources/read', { uri: 'hidden://1' });
    server('a').child.reply('resources/read', { code: -32002, message: 'not mine' });
    server('b').child.reply('resources/read', FOUND);
    expect(client.answerTo(1)?.result).toEqual(FOUND);
    client.request(2, 'resources/read', { uri: 'hidden://1' });
    expect(reached('resources/read').map(([key]) => key)).toEqual(['a', 'b', 'b']);
  });

  it.each<Message>([
    { code: -32600, message: 'Unsupported resource type' },
    { code: -32603, message: 'disk full' },
    { code: 0, message: 'unknown' },
    { contents: [] },
    { contents: null },
    {},
  ])('that no list tells of is looked for at the next server after %j', async (other) => {
    const { client, server } = await among(FIELD);
    client.request(1, 'resources/read', { uri: 'hidden://1' });
    server('a').child.reply('resources/read', other);
    server('b').child.reply('resources/read', FOUND);
    expect(client.answerTo(1)?.result).toEqual(FOUND);
    client.request(2, 'resources/read', { uri: 'hidden://2' });
    for (const key of ['a', 'b']) server(key).child.reply('resources/read', other);
    expect(client.answerTo(2)?.error).toEqual({
      code: -32002,
      message: 'Resource not found: hidden://2',
      data: { uri: 'hidden://2' },
    });
  });

  it('F228: whose server asks for input is not looked for at the next server, and is asked of that server again', async () => {
    const modern = { hasBridge: true, isModern: true };
    const servers = {
      a: { ...offering({ resources: ['x://1'] }), ...modern },
      b: { ...offering({ resources: ['x://2'] }), ...modern },
    };
    const { client, server, reached } = await routing(servers);
    const capabilities = { elicitation: { form: {} } };
    const params = { uri: 'hidden://1' };
    client.modernRequest(1, 'resources/read', params, capabilities);
    server('a').child.reply('resources/read', { code: -32602, message: 'not mine' });
    const inputRequests = { who: { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } } };
    server('b').child.reply('resources/read', { resultType: 'input_required', inputRequests, requestState: 's' });
    const asked = client.answerTo(1)?.result;
    expect(asked).toMatchObject({ resultType: 'input_required' });
    expect(asked.inputRequests.who.params.message).toBe('Server "b" asks: Who?');
    const inputResponses = { who: { action: 'accept', content: {} } };
    const { requestState } = asked;
    client.modernRequest(2, 'resources/read', { ...params, inputResponses, requestState }, capabilities);
    expect(reached('resources/read').map(([key]) => key)).toEqual(['a', 'b', 'b']);
    expect(reached('resources/read')[2]?.[1]).toMatchObject({ inputResponses, requestState: 's' });
    server('b').child.reply('resources/read', FOUND);
    expect(client.answerTo(2)?.result).toMatchObject(FOUND);
  });

  it.each<Message>([
    { code: -32042, message: 'Sign in', data: { elicitations: [] } },
    { code: -32021, message: 'Elicitation is needed', data: { requiredCapabilities: { elicitation: {} } } },
  ])('whose server needs more of its client first, as in %j, is not looked for at the next server', async (error) => {
    const { client, server, reached } = await among(FIELD);
    client.request(1, 'resources/read', { uri: 'hidden://1' });
    server('a').child.reply('resources/read', error);
    expect(client.answerTo(1)?.error).toEqual(error);
    expect(reached('resources/read').map(([key]) => key)).toEqual(['a']);
  });

  it('that the likeliest server does not have is looked for at the others', async () => {
    const { client, server, reached } = await among({ c: { resources: [] }, ...FIELD });
    client.request(1, 'resources/read', { uri: 'https://b.example/2' });
    server('b').child.reply('resources/read', { code: -32002, message: 'not mine' });
    server('c').child.reply('resources/read', { code: -32002, message: 'not mine' });
    server('a').child.reply('resources/read', FOUND);
    expect(client.answerTo(1)?.result).toEqual(FOUND);
    expect(reached('resources/read')).toHaveLength(3);
  });

  it('that its owner cannot read is answered with the words of the owner, and no other server is asked', async () => {
    const { client, server, reached } = await among(FIELD);
    client.request(1, 'resources/read', { uri: 'file:///b.txt' });
    server('b').child.reply('resources/read', { code: -32603, message: 'disk full' });
    expect(client.answerTo(1)?.error).toEqual({ code: -32603, message: 'disk full' });
    expect(reached('resources/read').map(([key]) => key)).toEqual(['b']);
  });

  it('that only one server can have is answered with the words of that server', async () => {
    const { client, server } = await among({ a: { resources: [] }, tools: {} });
    client.request(1, 'resources/read', { uri: 'none://' });
    server('a').child.reply('resources/read', { code: -32600, message: 'Unsupported resource type' });
    expect(client.answerTo(1)?.error).toEqual({ code: -32600, message: 'Unsupported resource type' });
  });

  it('is not looked for any more when the client has cancelled', async () => {
    const { client, server, reached } = await among(FIELD);
    client.request(1, 'resources/read', { uri: 'hidden://1' });
    client.cancel(1);
    server('a').child.reply('resources/read', { code: -32002, message: 'not mine' });
    expect(reached('resources/read').map(([key]) => key)).toEqual(['a']);
    expect(client.answerTo(1)).toBeUndefined();
  });

  it.each([
    ['content', [{ type: 'resource_link', uri: 'hidden://1', name: 'n' }]],
    ['content', [{ type: 'resource', resource: { uri: 'hidden://1', text: '' } }]],
    ['contents', [{ uri: 'hidden://1', text: '' }]],
    ['messages', [{ role: 'user', content: { type: 'resource', resource: { uri: 'hidden://1', text: '' } } }]],
  ])('that a server spoke of in %s is asked of that server', async (member, entries) => {
    const servers = {
      a: offering({ resources: ['x://1'] }),
      b: { ...offering({ resources: ['x://2'] }), tools: ['t'] },
    };
    const { client, server, reached } = await routing(servers);
    client.call(1, 'b__t');
    server('b').child.answer(0, { [member]: entries });
    await flush();
    client.request(2, 'resources/read', { uri: 'hidden://1' });
    expect(reached('resources/read')).toEqual([['b', { uri: 'hidden://1' }]]);
  });

  it('that a server said was updated is asked of that server', async () => {
    const { client, server, reached } = await among(FIELD);
    server('b').child.say({ method: 'notifications/resources/updated', params: { uri: 'hidden://1' }, jsonrpc: '2.0' });
    client.request(2, 'resources/read', { uri: 'hidden://1' });
    expect(reached('resources/read')).toEqual([['b', { uri: 'hidden://1' }]]);
  });

  it('of a server that was given up is answered with what is wrong with that server, which is wanted again', async () => {
    const { client, server } = await among(FIELD);
    server('b').crash('parked');
    client.request(1, 'resources/read', { uri: 'file:///b.txt' });
    expect(client.answerTo(1)?.error).toMatchObject({ code: -32603, data: { reason: 'parked', server: 'b' } });
    expect(server('b').demands).toBe(1);
  });

  it.each([undefined, {}, { uri: 7 }, { uri: null }])('without a URI (%j) is refused', async (params) => {
    const { ask } = await among(FIELD);
    const message = 'resources/read needs a URI, a string';
    expect(ask('resources/read', params)?.error).toEqual({ code: -32602, message });
  });
});

describe('a template', () => {
  it.each([
    ['x://{a}', 'x://1', true],
    ['x://{a}', 'y://1', false],
    ['x://{a}/end', 'x://1/2/end', true],
    ['x://{a}/end', 'x://1/ends', false],
    ['x://{a}/mid/{b}', 'x://1/mid/2', true],
    ['x://{a}/mid/{b}', 'x:///mid/2', false],
    ['x://{a}/mid/{b}', 'x://1/2', false],
    ['x://{a}.{b}/end', 'x://1.2/end', true],
    ['x://fixed', 'x://fixed', true],
    ['x://fixed', 'x://fixed/more', false],
    ['x://a{?q,r}', 'x://a?q=1&r=2', true],
    ['x://(.*)+{a}', 'x://(.*)+1', true],
    ['x://(.*)+{a}', 'x://anything', false],
  ])('%s fits %s: %s', async (template, uri, isFit) => {
    const offers = { a: { templates: [template] }, b: { templates: ['other://{x}'] } };
    const { ask, reached } = await among(offers);
    ask('resources/subscribe', { uri });
    expect(reached('resources/subscribe')).toEqual(isFit ? [['a', { uri }]] : []);
  });
});

describe('a completion', () => {
  const COMPLETING = { tools: {}, prompts: {}, resources: {}, completions: {} };
  const offers = Object.fromEntries(
    Object.entries(FIELD).map(([key, offer]) => [key, { ...offer, capabilities: COMPLETING }]),
  );
  const argument = { name: 'a__greet', value: 'v' };

  it.each([
    ['b__greet', 'b', 'greet'],
    ['only', 'a', 'only'],
  ])('of the prompt %s is asked of %s for %s', async (name, key, original) => {
    const { ask, reached } = await among(offers);
    expect(ask('completion/complete', { ref: { type: 'ref/prompt', name }, argument })).toBeUndefined();
    expect(reached('completion/complete')).toEqual([[key, { ref: { type: 'ref/prompt', name: original }, argument }]]);
  });

  it.each([
    ['note://b/{id}', 'b'],
    ['note://{id}', 'a'],
    ['note://b/7', 'b'],
    ['file:///a.txt', 'a'],
  ])('of the template or URI %s is asked of %s', async (uri, key) => {
    const { ask, reached } = await among(offers);
    const params = { ref: { type: 'ref/resource', uri }, argument };
    ask('completion/complete', params);
    expect(reached('completion/complete')).toEqual([[key, params]]);
  });

  it('is empty from a server that completes nothing, which is not asked', async () => {
    const { ask, reached } = await among(FIELD);
    const answer = ask('completion/complete', { ref: { type: 'ref/prompt', name: 'a__greet' }, argument });
    expect(answer?.result).toEqual({ completion: { values: [], total: 0, hasMore: false } });
    expect(reached('completion/complete')).toEqual([]);
  });

  it.each([
    [{ type: 'ref/prompt', name: 'no' }, -32602, 'Unknown prompt: no'],
    [{ type: 'ref/prompt', name: 7 }, -32602, 'completion/complete needs the name of a prompt, a string'],
    [{ type: 'ref/resource', uri: 'none://{x}' }, -32002, 'Resource not found: none://{x}'],
    [{}, -32602, 'completion/complete needs a URI, a string'],
  ])('of %j is refused', async (ref, code, message) => {
    const { ask } = await among(offers);
    expect(ask('completion/complete', { ref, argument })?.error).toMatchObject({ code, message });
  });
});

describe('a method that we know nothing of', () => {
  it('goes to the only server there is, untouched', async () => {
    const { client, server } = await among({ a: {} });
    client.request(1, 'skills/list', { x: 1 });
    expect(server('a').child.asked('skills/list')[0]?.params).toEqual({ x: 1 });
    server('a').child.reply('skills/list', { skills: [] });
    expect(client.answerTo(1)?.result).toEqual({ skills: [] });
  });

  const UNKNOWN = { code: -32601, message: 'no such method' };

  it('is asked of the servers in their order, and of the one that knew it from then on', async () => {
    const { client, server, reached } = await among({ a: {}, b: {}, c: {} });
    client.request(1, 'skills/list', { x: 1 });
    server('a').child.reply('skills/list', UNKNOWN);
    server('b').child.reply('skills/list', { skills: [] });
    expect(client.answerTo(1)?.result).toEqual({ skills: [] });
    client.request(2, 'skills/list', { x: 1 });
    expect(reached('skills/list').map(([key]) => key)).toEqual(['a', 'b', 'b']);
  });

  it('is asked of the servers in their order each time if its name is too long to remember', async () => {
    const { client, server, reached } = await among({ a: {}, b: {} });
    const method = 'x/'.padEnd(257, 'y');
    client.request(1, method);
    server('a').child.reply(method, UNKNOWN);
    server('b').child.reply(method, {});
    client.request(2, method);
    expect(reached(method).map(([key]) => key)).toEqual(['a', 'a', 'b']);
  });

  it('is answered with any other error by the server that sent it, and no other server is asked', async () => {
    const { client, server, reached } = await among({ a: {}, b: {} });
    client.request(1, 'skills/run');
    server('a').child.reply('skills/run', { code: -32600, message: 'not so' });
    expect(client.answerTo(1)?.error).toEqual({ code: -32600, message: 'not so' });
    expect(reached('skills/run').map(([key]) => key)).toEqual(['a']);
  });

  it('goes to the server that answers it by the configuration, which alone is asked', async () => {
    const { ask, reached } = await routing({ a: {}, b: { methods: ['skills/*'] } });
    ask('skills/list');
    expect(reached('skills/list').map(([key]) => key)).toEqual(['b']);
  });

  it('is not found when no server knows it', async () => {
    const { client, server } = await among({ a: {}, b: {} });
    client.request(1, 'skills/list');
    for (const key of ['a', 'b']) server(key).child.reply('skills/list', UNKNOWN);
    expect(client.answerTo(1)?.error).toEqual({ code: -32601, message: 'Method not found: skills/list' });
  });

  it('is answered with what is wrong with a server that could have known it', async () => {
    const { client, server, clock } = await among({ a: {}, b: {} });
    server('a').crash();
    client.request(1, 'skills/list');
    server('b').child.reply('skills/list', UNKNOWN);
    clock.advance(5_000);
    expect(client.answerTo(1)?.error).toMatchObject({ code: -32603, data: { reason: 'restarting', server: 'a' } });
  });

  it('goes to the server that has the resource which it names', async () => {
    const { ask, reached } = await among(FIELD);
    ask('resources/lock', { uri: 'file:///b.txt' });
    expect(reached('resources/lock')).toEqual([['b', { uri: 'file:///b.txt' }]]);
  });
});
