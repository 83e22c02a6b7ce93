// What a client of a real gateway notices when its session goes on at another process with the same key.
import { once } from 'node:events';
import * as http from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SessionRecords } from '../../../src/downstream/http/session-records.js';
import { until } from '../../support/processes.js';
import { type GatewayScript, offering } from '../../support/scripted-gateway.js';
import type { Message } from '../../support/wire.js';
import { EventReader } from './event-reader.js';
import { type ServedGateway, serveGateway } from './served-gateway.js';
import { initializeRequest, request, SharedRecords, TOKEN } from './serving.js';

const SERVERS = { files: { tools: ['read'], hello: { capabilities: { tools: { listChanged: true } } } } };

async function two(script: GatewayScript = { servers: SERVERS }, records?: SessionRecords) {
  return [
    await serveGateway({ ...script, instance: 'aaaaaaaaaa' }, undefined, records),
    await serveGateway({ ...script, instance: 'bbbbbbbbbb' }, undefined, records),
  ] as const;
}

const HEADERS = {
  authorization: `Bearer ${TOKEN}`,
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
};

async function post(front: ServedGateway, message: object, session: Record<string, string> = {}, path = '/mcp') {
  const options = { method: 'POST', headers: { ...HEADERS, ...session }, body: JSON.stringify(message) };
  const response = await fetch(`${front.url}${path}`, options);
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    answer: (text === '' ? {} : JSON.parse(text)) as Message,
  };
}

async function initialize(front: ServedGateway, capabilities: object = {}, path = '/mcp') {
  const message = initializeRequest('2025-11-25');
  const params = { ...message.params, capabilities };
  const { headers } = await post(front, { ...message, params }, {}, path);
  const session = { 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
  await post(front, { jsonrpc: '2.0', method: 'notifications/initialized' }, session, path);
  return session;
}

/** Opens a stream: that of a GET, or of a POST with this message. */
async function stream(front: ServedGateway, session: Record<string, string>, path = '/mcp', message?: object) {
  const method = message === undefined ? 'GET' : 'POST';
  const sent = http.request(`${front.url}${path}`, { method, headers: { ...HEADERS, ...session } });
  sent.end(message && JSON.stringify(message));
  const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
  onTestFinished(async () => void response.destroy());
  return new EventReader(response);
}

/** The next messages on a stream. Events without a message do not count. */
async function nextMessages(events: EventReader, count: number): Promise<Message[]> {
  const messages: Message[] = [];
  while (messages.length < count) {
    const event = await events.next();
    if (event === undefined) throw new Error('The stream has ended');
    if (event.data !== undefined && event.data !== '') messages.push(JSON.parse(event.data));
  }
  return messages;
}

describe('a client whose session goes on at another process', () => {
  it('calls tools as before, and learns that all lists may have changed', async () => {
    const [first, second] = await two();
    const session = await initialize(first);
    const listed = await post(second, request(1, 'tools/list'), session);
    expect(listed.answer.result.tools).toMatchObject([{ name: 'files__read' }]);
    const changes = await nextMessages(await stream(second, session), 3);
    expect(changes.map(({ method }) => method)).toEqual([
      'notifications/tools/list_changed',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
    ]);
    const called = post(second, request(2, 'tools/call', { name: 'files__read', arguments: {} }), session);
    const { child } = second.server('files');
    await until('the call has arrived', () => child.calls.length === 1);
    child.answer(0, { content: [] });
    expect((await called).answer).toMatchObject({ id: 2, result: { content: [] } });
  });

  it('learns at the endpoint of one server of the lists that this server declares', async () => {
    const [first, second] = await two();
    const session = await initialize(first, {}, '/mcp/files');
    const called = post(second, request(2, 'tools/call', { name: 'read', arguments: {} }), session, '/mcp/files');
    const { child } = second.server('files');
    await until('the call has arrived', () => child.calls.length === 1);
    child.answer(0, { content: [] });
    expect((await called).status).toBe(200);
    const events = await stream(second, session, '/mcp/files');
    child.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'now' } });
    expect((await nextMessages(events, 2)).map(({ method }) => method)).toEqual([
      'notifications/tools/list_changed',
      'notifications/message',
    ]);
  });

  it('cannot answer a server request of the earlier process in place of one of this process', async () => {
    const [first, second] = await two();
    const session = await initialize(first, { elicitation: {} });
    const call = request(1, 'tools/call', { name: 'files__read', arguments: {} });
    const elicited = async (front: ServedGateway) => {
      const opened = stream(front, session, '/mcp', call);
      const { child } = front.server('files');
      await until('the call has arrived', () => child.calls.length === 1);
      child.say({ jsonrpc: '2.0', id: 'e', method: 'elicitation/create', params: { message: 'Well?' } });
      const [elicitation] = await nextMessages(await opened, 1);
      return { child, id: elicitation?.id };
    };
    const earlier = await elicited(first);
    expect(earlier.id).toBe(1);
    const { child, id } = await elicited(second);
    const answer = (to: number) => post(second, { jsonrpc: '2.0', id: to, result: { action: 'accept' } }, session);
    expect((await answer(earlier.id)).status).toBe(202);
    expect((await answer(id)).status).toBe(202);
    // The server gets one answer, which is that to its own request.
    const answers = () => child.received.messages.filter((message) => message.id === 'e');
    await until('the answer has arrived', () => answers().length > 0);
    expect(answers()).toHaveLength(1);
    expect(id).toBeGreaterThan(1_000_000);
  });

  it('F351: keeps its log level and its subscriptions, and is told to read the resources again', async () => {
    const [uri, refused] = ['x://1', 'x://refused'];
    const capabilities = { logging: {}, resources: { subscribe: true } };
    const files = offering({ resources: [uri, refused], templates: [], capabilities });
    const [first, second] = await two({ servers: { files } }, new SharedRecords());
    const session = await initialize(first);
    const no = { code: -32_000, message: 'no' };
    await post(first, request(2, 'logging/setLevel', { level: 'error' }), session);
    for (const each of [uri, refused]) {
      const subscribed = post(first, request(3, 'resources/subscribe', { uri: each }), session);
      const { child } = first.server('files');
      await until('the server is asked', () => child.asked('resources/subscribe').at(-1)?.params.uri === each);
      child.reply('resources/subscribe', each === uri ? {} : no);
      await subscribed;
    }

    const events = await stream(second, session);
    const { child } = second.server('files');
    const asked = () => child.asked('resources/subscribe');
    await until('both subscriptions were repeated', () => asked().length === 2);
    expect(child.asked('logging/setLevel').map(({ params }) => params)).toEqual([{ level: 'error' }]);
    for (const { id, params } of asked())
      child.say({ jsonrpc: '2.0', id, ...(params.uri === refused ? { error: no } : { result: {} }) });
    const log = (level: string) => ({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level, data: level },
    });
    child.say(log('info'), log('error'));
    const told = (await nextMessages(events, 5)).slice(3);
    expect(told.map(({ params }) => params.data ?? params)).toEqual([{ uri }, 'error']);
    child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri, n: 1 } });
    expect(await nextMessages(events, 1)).toMatchObject([{ params: { uri, n: 1 } }]);
  });
});
