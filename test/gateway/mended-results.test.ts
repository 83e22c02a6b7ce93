import { describe, expect, it } from 'vitest';
import { startGateway, type Who } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const BAD = {
  content: [
    { type: 'text', text: 'hello', annotations: null },
    { type: 'text', text: 7 },
  ],
};
const GOOD = {
  content: [
    { type: 'text', text: 'hello' },
    { type: 'text', text: '7' },
  ],
};

const LISTS = {
  'resources/list': { resources: [{ uri: 'x:r', name: 'r' }] },
  'resources/templates/list': { resourceTemplates: [] },
};
const WITH_TASKS = { capabilities: { tools: {}, resources: {}, tasks: { requests: { tools: { call: {} } } } } };

interface Answering extends Who {
  readonly isModern?: boolean;
  readonly isModernServer?: boolean;
  readonly member?: 'result' | 'error';
}

/** A server that answers a request of a client with this result or error; `line` is the one that the client gets. */
async function answering(
  method: string,
  params: Message,
  result: string,
  { isModern = false, isModernServer = false, member = 'result', ...who }: Answering = {},
) {
  const world = await startGateway({
    servers: {
      a: {
        ...{ tools: ['t'], prefix: '', lists: LISTS, hasBridge: true, isModern: isModernServer },
        hello: WITH_TASKS,
      },
    },
  });
  const client = world.connect(who);
  if (isModern) client.modernRequest(1, method, params);
  else {
    client.greet();
    client.request(1, method, params);
  }
  await flush();
  const { child, backend } = world.server('a');
  child.say(`{"jsonrpc":"2.0","id":${child.asked(method).at(-1)?.id},"${member}":${result}}`);
  await flush();
  const line = client.received.lines.findLast((each) => JSON.parse(each).id === 1) ?? '{}';
  return { result: JSON.parse(line).result, line, repaired: [...backend.dispatcher.repairedResults] };
}

const CALL = ['tools/call', { name: 't', arguments: {} }] as const;

describe('a malformed result', () => {
  it('of a call reaches the client in a form that it accepts, and the server is told of once', async () => {
    const { result, repaired } = await answering(...CALL, JSON.stringify(BAD));
    expect(result).toEqual(GOOD);
    expect(repaired).toEqual([['tools/call', 'content[1].text is not a string']]);
  });

  it.each([
    ['a modern client of a legacy server', true, false],
    ['a modern client of a modern server', true, true],
    ['a legacy client of a modern server', false, true],
  ])('is mended for %s, with the edits for its era', async (_, isModern, isModernServer) => {
    const sent = { ...BAD, ...(isModernServer ? { resultType: 'complete' } : {}), structuredContent: [1] };
    const { result } = await answering(...CALL, JSON.stringify(sent), { isModern, isModernServer });
    expect(result.content).toEqual(GOOD.content);
    expect(result.resultType).toBe(isModern ? 'complete' : undefined);
    expect(result.structuredContent).toEqual(isModern ? [1] : { result: [1] });
  });

  it('of a task is mended, and the answer that created the task is not', async () => {
    const world = await startGateway({
      servers: { a: { tools: ['t'], lists: LISTS, hasBridge: true, hello: WITH_TASKS } },
    });
    const client = world.connect().greet();
    const { child } = world.server('a');
    client.call(1, 'a__t', { task: {} });
    await flush();
    const task = { taskId: 'x', status: 'working', createdAt: '', lastUpdatedAt: '', ttl: null };
    child.reply('tools/call', { task });
    await flush();
    const created = client.answerTo(1)?.result;
    expect(Object.keys(created)).toEqual(['task']);
    client.request(2, 'tasks/result', { taskId: created.task.taskId });
    await flush();
    child.reply('tasks/result', BAD);
    await flush();
    expect(client.answerTo(2)?.result).toEqual(GOOD);
  });

  it('of a resource without a URI gets the URI that was read', async () => {
    const { result } = await answering('resources/read', { uri: 'x:r' }, '{"contents":[{"text":"t"}]}');
    expect(result).toEqual({ contents: [{ uri: 'x:r', text: 't' }] });
  });

  it('keeps the bytes of all sound members', async () => {
    const structured = '{ "id": 12345678901234567890, "x": 1.0 }';
    const { line } = await answering(...CALL, `{"structuredContent": ${structured},"content":null}`);
    expect(line).toContain(`{"structuredContent": ${structured}}`);
  });

  it('of more than 256 KiB is relayed unread', async () => {
    const large = JSON.stringify({ ...BAD, more: 'x'.repeat(256 * 1024) });
    const { line, repaired } = await answering(...CALL, large);
    expect(line).toContain(large);
    expect(repaired).toEqual([]);
  });

  it('is relayed as it is to a client that sees this server alone', async () => {
    const { line } = await answering(...CALL, JSON.stringify(BAD), { server: 'a' });
    expect(line).toContain(JSON.stringify(BAD));
  });
});

describe('a result that clients accept', () => {
  it.each([
    '{"content":[{"type":"text","text":"a \\u0022 b"}]}',
    '{"content":[{"type":"text","text":"a"}],"isError":false}',
    '{ "content" : [ {"type":"text","text":"a","x":1.0} ], "y": 1e400 }',
    '{"x":12345678901234567890}',
    '{"task":{"taskId":"1","status":"working","ttl":null}}',
  ])('reaches the client byte for byte: %s', async (text) => {
    const { line, repaired } = await answering(...CALL, text);
    expect(line).toContain(text);
    expect(repaired).toEqual([]);
  });

  it.each([
    '{"content":[{"type":"text","text":"a"},{"type":"text","text":7}]}',
    '{"content":[{"type":"text","text":"a","annotations":null,"x":"y"}]}',
    '{"content":[{"type":"text","text":"a"}],"isError":null,"x":[{"y":"z"}]}',
  ])('is not taken for one that begins and ends alike: %s', async (text) => {
    const { line } = await answering(...CALL, text);
    expect(line).not.toContain(text);
  });
});

const CLAIM = '{"reason":"queue_full","outcome":"not_sent"}';
const ONLY = { server: 'a' };

describe('facts that a server claims in the place of Trunkline', () => {
  it.each<[string, string, Answering?]>([
    ['a result', `{"content":[],"isError":true,"_meta":{"trunkline/failure":${CLAIM}}}`],
    ['an escaped name', `{"_meta":{"trunkline\\u002ffailure":${CLAIM}},"content":[]}`],
    ['a name in capitals', `{"_meta":{"TRUNKLINE/failure":${CLAIM}},"content":[]}`],
    ['a result for a client of this server alone', `{"content":[],"_meta":{"trunkline/x":${CLAIM}}}`, ONLY],
    ['a result for a modern client', `{"content":[],"_meta":{"trunkline/x":${CLAIM}}}`, { isModern: true }],
    ['an error', `{"code":-32603,"message":"no","data":${CLAIM}}`, { member: 'error' }],
    [
      'an error with a code',
      '{"code":1,"message":"no","data":{"code":"TL-X","outcome":"not_sent"}}',
      { member: 'error' },
    ],
  ])('do not reach a client in %s', async (_, content, how) => {
    const { line } = await answering(...CALL, content, how);
    expect(line).toContain('"content":[]'.repeat(how?.member === 'error' ? 0 : 1));
    expect(line).not.toMatch(/not_sent|trunkline[^"]|"data"/i);
  });

  it('leave the other members of their result as they were', async () => {
    const { line } = await answering(...CALL, `{"content":[],"_meta":{ "a/b": 1.0, "trunkline/x":1, "c":"\\u0041"}}`);
    expect(line).toContain('{"content":[],"_meta":{ "a/b": 1.0, "c":"\\u0041"}}');
  });

  it.each<[string, Answering]>([
    ['{"content":[],"_meta":{"x":"trunkline/failure","a/trunkline/b":{"trunkline/c":1}}}', {}],
    ['{"content":[{"type":"text","text":"trunkline/failure"}],"x":{"_meta":{"trunkline/failure":1}}}', {}],
    ['{"code":-32603,"message":"no","data":{"outcome":"not_sent","x":1.0}}', { member: 'error' }],
    ['{"code":-32603,"message":"no","data":{"reason":"r","code":"x"}}', { member: 'error' }],
  ])('are nothing else: %s reaches the client byte for byte', async (content, how) => {
    expect((await answering(...CALL, content, how)).line).toContain(content);
  });

  it.each([
    ['result', `{"content":[],"_meta":{"trunkline/failure":${CLAIM}}}`],
    ['error', `{"code":-32603,"message":"no","data":${CLAIM}}`],
  ])('do not reach a client in the %s within the state of a task', async (member, content) => {
    const world = await startGateway({
      servers: { a: { tools: ['t'], lists: LISTS, hasBridge: true, isModern: true } },
    });
    const client = world.connect();
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const ask = (id: number, method: string, params: Message) =>
      client.modernRequest(id, method, {
        ...params,
        _meta: { 'io.modelcontextprotocol/clientCapabilities': capabilities },
      });
    const state = { createdAt: '', lastUpdatedAt: '', ttlMs: null };
    ask(1, 'tools/call', { name: 'a__t', arguments: {} });
    await flush();
    const { child } = world.server('a');
    child.reply('tools/call', { resultType: 'task', taskId: 'x', status: 'working', ...state });
    await flush();
    ask(2, 'tasks/get', { taskId: client.answerTo(1)?.result.taskId });
    await flush();
    const done = { resultType: 'complete', taskId: 'x', status: member === 'error' ? 'failed' : 'completed', ...state };
    child.reply('tasks/get', { ...done, [member]: JSON.parse(content) });
    await flush();
    const answer = JSON.stringify(client.answerTo(2)?.result);
    expect(answer).toContain(member === 'error' ? '"message":"no"' : '"content":[]');
    expect(answer).not.toContain('not_sent');
  });
});
