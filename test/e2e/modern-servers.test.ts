import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type Message } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

const program = (name: string) => fileURLToPath(new URL(`../fixtures/servers/${name}.mjs`, import.meta.url));
const CAPABILITIES = { elicitation: {}, sampling: {}, roots: { listChanged: true } };

let gateway: GatewayProcess;
afterEach(() => gateway.dispose());

function textOf({ message }: { readonly message: Message }): string {
  return message.result.content[0].text;
}

/** Waits for a request of the server, and answers it. */
async function give(method: string, result: Message): Promise<Message> {
  await until(method, () => gateway.notifications(method).length > 0);
  const [asked] = gateway.notifications(method);
  gateway.send(JSON.stringify({ jsonrpc: '2.0', id: asked?.message.id, result }));
  return asked?.message.params;
}

describe('a server of the official SDK that refuses initialize', () => {
  it('serves a client with a handshake: calls, input, lists, subscriptions', async () => {
    const servers = { m: { program: program('modern-small') } };
    gateway = await GatewayProcess.start({ servers }, { handshake: false });
    await gateway.initialize('2025-06-18', CAPABILITIES);
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('m__echo');

    const { args, envelope } = JSON.parse(textOf(await gateway.call('m__echo', { n: 1 })));
    expect(args).toEqual({ n: 1 });
    expect(envelope).toEqual({
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {
        ...{ elicitation: {}, sampling: {}, roots: {} },
        extensions: { 'io.modelcontextprotocol/tasks': {} },
      },
    });

    const greeted = gateway.call('m__greet');
    expect(await give('elicitation/create', { action: 'accept', content: { name: 'Ada' } })).toMatchObject({
      message: 'Who?',
    });
    await give('sampling/createMessage', { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hi' } });
    expect(textOf(await greeted)).toBe('Hi, Ada');

    expect((await gateway.request('resources/subscribe', { uri: 'memo://note' })).message.result).toEqual({});
    await gateway.call('m__change');
    await until('the update', () => gateway.notifications('notifications/resources/updated').length > 0);
    const [updated] = gateway.notifications('notifications/resources/updated');
    expect(updated?.message.params).toEqual({ uri: 'memo://note' });
    await until('the other list', () => gateway.notifications('notifications/tools/list_changed').length > 0);
    expect((await gateway.listTools()).some(({ name }) => name.startsWith('m__new_'))).toBe(true);
    expect(await gateway.status('m')).toMatchObject({ protocolVersion: '2026-07-28', generation: 1, restarts: 0 });
  });
});

describe('a server that exits when it is asked for its era', () => {
  it('F148: is started again at once, without a failure, and is not asked in the next run', async () => {
    const servers = { s: { program: program('strict') } };
    gateway = await GatewayProcess.start({ servers });
    // The first list waits for that start as for any other.
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('s__answer');
    const first = await gateway.untilState('s', 'ready');
    expect(first).toMatchObject({ generation: 2, restarts: 0, lastFailure: null, protocolVersion: '2025-06-18' });
    await gateway.end();
    const { folder } = gateway;
    const handshake = ['initialize', 'notifications/initialized', 'tools/list'];
    const lines = () => readFileSync(join(folder, 'heard'), 'utf8').trim().split('\n');
    expect(lines()).toEqual(['server/discover', ...handshake]);

    gateway = await GatewayProcess.start({ servers, folder });
    expect(await gateway.untilState('s', 'ready')).toMatchObject({ generation: 1 });
    expect(lines().slice(4)).toEqual(handshake);
  });
});
