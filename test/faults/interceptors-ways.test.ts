// All ways on which a message could get past the interceptors of its server.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { asking } from '../../src/extras/asking/index.js';
import { interceptors } from '../../src/extras/interceptors/index.js';
import { largeResults } from '../../src/extras/large-results/index.js';
import type { Clock } from '../../src/wire/timing/clock.js';
import { LAB } from '../support/gateway-process.js';
import { hurryingClock } from '../support/hurrying-clock.js';
import { failureOf, type InProcessClient, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';
import type { Message } from '../support/wire.js';

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/servers/${name}`, import.meta.url));
const hooks = (phase: string, ...events: string[]) => [{ events, phase }];

/** A guard that writes every `secret` in capitals, in all events and phases. */
const UPPER = [
  { name: 'up', type: 'mutation', does: 'upper', hooks: [...hooks('request', '*'), ...hooks('response', '*')] },
];
const UPPER_RESULTS = [{ name: 'up', type: 'mutation', does: 'upper', hooks: hooks('response', '*') }];
/** A guard that refuses results and questions with two exclamation marks. */
const NO_MARK = [
  {
    name: 'mark',
    type: 'validation',
    does: 'deny-x',
    hooks: [...hooks('response', 'tools/call'), ...hooks('request', 'elicitation/create')],
  },
];
const DENY = [{ name: 'no', type: 'validation', does: 'deny', hooks: hooks('response', 'tools/call') }];

interface World {
  readonly server?: string;
  readonly list?: readonly object[];
  readonly entry?: Message;
  readonly config?: Message;
  readonly guards?: Message;
  readonly gateway?: Message;
  readonly clock?: Clock;
}

function start({ server = LAB, list = UPPER, entry = {}, config = {}, guards, gateway, clock }: World) {
  const guard = {
    command: 'node',
    args: [fixture('guard.mjs'), `interceptors=${JSON.stringify(list)}`, 'seen=RUN/seen', 'run=RUN'],
    interceptorTimeout: '60s',
  };
  const it = { command: 'node', args: [server, 'run=RUN'], ...(guards ?? { interceptors: ['guard'] }), ...entry };
  const features = [interceptors, asking, largeResults];
  const more = { gateway: { startupWait: '30s', ...gateway }, ...(clock && { clock }) };
  return InProcessGateway.start({ servers: { it, guard }, features, config, ...more });
}

const seen = (gateway: InProcessGateway) =>
  gateway.lines('seen').map((line) => {
    const { event, phase } = JSON.parse(line);
    return `${event} ${phase}`;
  });

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: { form: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};
const modern = (client: InProcessClient, method: string, params: Message) =>
  client.request(method, { ...params, _meta: META });

describe('interceptors', () => {
  it('see the questions in results of 2026-07-28, and the answers that come with the next request', async () => {
    const gateway = start({ server: fixture('asking.mjs') });
    const client = gateway.open();
    const { result } = await modern(client, 'tools/call', { name: 'it__ask', arguments: {} });
    expect(result).toMatchObject({ resultType: 'input_required' });
    expect(result.inputRequests.who.params.message).toBe('Server "it" asks: the SECRET?');
    const inputResponses = { who: { action: 'accept', content: { key: 'my secret' } } };
    const again = { name: 'it__ask', arguments: {}, inputResponses, requestState: result.requestState };
    expect(textOf((await modern(client, 'tools/call', again)).result)).toContain('my SECRET');
    expect(seen(gateway)).toEqual([
      'tools/call request',
      'elicitation/create request',
      'elicitation/create response',
      'tools/call request',
      'tools/call response',
    ]);
  });

  it('see the questions of a server of 2026-07-28 to a client with a handshake', async () => {
    const gateway = start({ server: fixture('asking.mjs') });
    const client = await gateway.connect({ elicitation: { form: {} } });
    const call = client.call('it__ask');
    await until('the client is asked', () => client.notifications('elicitation/create').length === 1);
    const [question] = client.notifications('elicitation/create');
    expect(question?.params.message).toBe('Server "it" asks: the SECRET?');
    client.say({ jsonrpc: '2.0', id: question?.id, result: { action: 'accept', content: { key: 'secret' } } });
    expect(textOf(await call)).toContain('"key":"SECRET"');
    expect(seen(gateway).filter((each) => each.startsWith('elicitation'))).toHaveLength(2);
  });

  it('see the questions of a server with a handshake to a client of 2026-07-28', async () => {
    // The answer is kept for a minute.
    const gateway = start({ clock: hurryingClock(10) });
    const client = gateway.open();
    const params = { message: 'the secret?', requestedSchema: { type: 'object', properties: {} } };
    const call = { name: 'it__ask', arguments: { method: 'elicitation/create', params } };
    const { result } = await modern(client, 'tools/call', call);
    const [key] = Object.keys(result.inputRequests);
    expect(result.inputRequests[key ?? ''].params.message).toBe('Server "it" asks: the SECRET?');
    const inputResponses = { [key ?? '']: { action: 'accept', content: { key: 'secret' } } };
    const end = await modern(client, 'tools/call', { ...call, inputResponses, requestState: result.requestState });
    expect(textOf(end.result)).toContain('SECRET');
    expect(seen(gateway).filter((each) => each.startsWith('elicitation'))).toHaveLength(2);
  });

  it('see the result of a task when its client reads the state, and when Trunkline waits for it', async () => {
    const gateway = start({ server: fixture('asking.mjs') });
    const client = gateway.open();
    const { result: task } = await modern(client, 'tools/call', { name: 'it__task', arguments: {} });
    expect(task).toMatchObject({ resultType: 'task' });
    const { result: state } = await modern(client, 'tasks/get', { taskId: task.taskId });
    expect(state).toMatchObject({ status: 'completed', taskId: task.taskId });
    expect(textOf(state.result)).toBe('the SECRET of a task');
    const other = await gateway.connect();
    expect(textOf(await other.call('it__task'))).toBe('the SECRET of a task');
  });

  it('see a new task of revision 2025-11-25, and its result', async () => {
    const gateway = start({ server: fixture('tasks-sdk.mjs') });
    const client = await gateway.connect({ tasks: {} });
    const { result } = await client.request('tools/call', { name: 'it__count', arguments: {}, task: { ttl: 60_000 } });
    const { taskId } = result.task;
    expect((await client.request('tasks/result', { taskId })).result).toHaveProperty('content');
    expect(seen(gateway)).toEqual(['tools/call request', 'tools/call response', 'tools/call response']);
  });

  it('see a result that its server calls a question', async () => {
    const gateway = start({ server: fixture('asking.mjs'), list: DENY });
    const { result } = await modern(gateway.open(), 'tools/call', { name: 'it__smuggle', arguments: {} });
    expect(failureOf(result)).toMatchObject({ reason: 'intercepted' });
    expect(JSON.stringify(result)).not.toContain('smuggled');
  });

  const times = '"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000';
  const task = `"resultType":"task","taskId":"t","status":"working",${times}`;
  const evil = '{"message":"!!","requestedSchema":{"type":"object","properties":{}}}';
  const asks = (input: string) => `"resultType":"input_required","inputRequests":{"q":{${input}}}`;
  it.each([
    `"result":{${task},"statusMessage":"!!"}`,
    `"result":{${task},"_meta":{"io.modelcontextprotocol/model-immediate-response":"!!"}}`,
    '"result":{"resultType":"other","output":"!!"}',
    '"result":{"resultType":"input_required","inputRequests":{},"toolResult":"!!"}',
    '"result":{"resultType":"input_required","inputRequests":["!!"]}',
    `"result":{${asks(`"method":"elicitation/create","params":${evil}`)}}`,
    `"result":{${asks(`"method":"elicitation/create","params":{"message":"ok"},"params":${evil}`)}}`,
    `"result":{${asks(`"method":"roots/list","method":"elicitation/create","params":${evil}`)}}`,
    `"result":{${asks(`"method":"elicitation/create","params":{"message":"ok"},"note":"!!"`)}}`,
    `"result":{${asks('"method":"roots/list","params":{"note":"!!"}')}}`,
    `"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://x.test","message":"!!"}]}}`,
  ])('see every member of an answer: %s', async (answer) => {
    const gateway = start({ server: fixture('asking.mjs'), list: NO_MARK });
    const got = await modern(gateway.open(), 'tools/call', { name: 'it__raw', arguments: { answer } });
    expect(JSON.stringify(got)).toContain('TL-CALL-INTERCEPTED');
    expect(JSON.stringify(got)).not.toContain('!!');
  });

  it.each([
    `"status":"working","statusMessage":"!!"`,
    `"status":"completed","result":{"content":[{"type":"text","text":"!!"}]}`,
    `"status":"completed","result":{"content":[]},"result":{"content":[{"type":"text","text":"!!"}]}`,
    `"status":"completed","result":{"content":[{"type":"text","text":"ok","Text":"!!"}]}`,
  ])('see every member of the state of a task: %s', async (members) => {
    const gateway = start({ server: fixture('asking.mjs'), list: NO_MARK });
    const client = gateway.open();
    const state = `"result":{"resultType":"complete","taskId":"t",${times},${members}}`;
    const call = { name: 'it__raw', arguments: { answer: `"result":{${task}}`, state } };
    const { result } = await modern(client, 'tools/call', call);
    const got = await modern(client, 'tasks/get', { taskId: result.taskId });
    expect(got.error.data).toMatchObject({ reason: 'intercepted' });
    expect(JSON.stringify(got)).not.toContain('!!');
  });

  it('keep the digits of numbers that they do not change', async () => {
    const gateway = start({ server: fixture('asking.mjs'), list: UPPER_RESULTS });
    const client = gateway.open();
    const content = '"content":[{"type":"text","text":"secret"}]';
    const answer = `"result":{"resultType":"complete",${content},"structuredContent":{"a":[{"n":9007199254740993,"s":"secret"}]}}`;
    await modern(client, 'tools/call', { name: 'it__raw', arguments: { answer } });
    expect(client.received.lines.join()).toContain('"structuredContent":{"a":[{"n":9007199254740993,"s":"SECRET"}]}');
  });

  it('may not point a link to another resource', async () => {
    const gateway = start({ server: fixture('asking.mjs'), list: UPPER_RESULTS });
    const answer =
      '"result":{"resultType":"complete","content":[{"type":"resource_link","name":"x","uri":"file:///secret"}]}';
    const { result } = await modern(gateway.open(), 'tools/call', { name: 'it__raw', arguments: { answer } });
    expect(textOf(result)).toContain('changed `uri`');
  });

  it('see the whole of a result that is cut for the client, also the part that it can read later', async () => {
    const gateway = start({ entry: { results: { max: '2KiB' } } });
    const client = await gateway.connect();
    const cut = textOf(await client.call('it__big', { mark: 'secret ', bytes: 70_000 }));
    expect(cut.length).toBeLessThan(4_000);
    expect(cut).not.toContain('secret');
    const [, uri] = /uri "([^"]+)"/.exec(cut) ?? [];
    const { result } = await client.request('resources/read', { uri });
    expect(JSON.stringify(result)).toContain('SECRET');
    expect(JSON.stringify(result)).not.toContain('secret ');
  });

  it('see calls through the search mode', async () => {
    const gateway = start({ list: DENY, gateway: { mode: 'search' } });
    const client = await gateway.connect();
    const result = await client.call('trunkline__call_tool', { name: 'it__echo', arguments: {} });
    expect(failureOf(result)).toMatchObject({ reason: 'intercepted' });
  });

  it('of a view look at the calls of its clients only', async () => {
    const config = { views: { v: { interceptors: ['guard'] } }, clients: { test: 'v' } };
    const gateway = start({ list: DENY, config, guards: {} });
    const client = await gateway.connect();
    expect(failureOf(await client.call('it__echo'))).toMatchObject({ rule: 'interceptor guard/no' });
    const other = gateway.open();
    const clientInfo = { name: 'other', version: '1' };
    await other.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    expect(await other.call('it__echo')).not.toHaveProperty('isError');
  });

  it('see no question of Trunkline itself, and a person is asked about what the server will get', async () => {
    const rules = JSON.parse('[{ "tools": ["echo"], "then": "ask" }]');
    const gateway = start({ entry: { rules } });
    const client = await gateway.connect({ elicitation: { form: {} } });
    const call = client.call('it__echo', { text: 'secret' });
    await until('the person is asked', () => client.notifications('elicitation/create').length === 1);
    const [question] = client.notifications('elicitation/create');
    expect(question?.params.message).toContain('SECRET');
    client.say({ jsonrpc: '2.0', id: question?.id, result: { action: 'accept', content: { answer: 'yes' } } });
    expect(textOf(await call)).toContain('SECRET');
    expect(seen(gateway)).toEqual(['tools/call request', 'tools/call response']);
  });

  it('cannot make arguments that a rule denies', async () => {
    const list = [{ name: 'up', type: 'mutation', does: 'upper', hooks: hooks('request', 'tools/call') }];
    const rules = JSON.parse('[{ "tools": ["echo"], "args": { "path": ["/etc/SECRET-*"] }, "then": "deny" }]');
    const gateway = start({ list, entry: { rules } });
    const client = await gateway.connect();
    expect(failureOf(await client.call('it__echo', { path: '/etc/secret-x' }))).toMatchObject({ reason: 'denied' });
  });
});
