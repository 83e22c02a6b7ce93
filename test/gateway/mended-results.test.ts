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

/** A server that answers a request of a client with this result; `answer` is the line that the client gets. */
async function answering(
  method: string,
  params: Message,
  result: string,
  { isModern = false, isModernServer = false, ...who }: Who & { isModern?: boolean; isModernServer?: boolean } = {},
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
  child.say(`{"jsonrpc":"2.0","id":${child.asked(method).at(-1)?.id},"result":${result}}`);
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
