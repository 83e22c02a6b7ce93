import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, openHttpGateway } from '../../support/differential/http-gateway.js';
import { CLI, type Message } from '../../support/gateway-process.js';
import { linkOwnPackages } from '../../support/own-packages.js';
import { processesWith, until } from '../../support/processes.js';

/** What a session is asked to do, once directly and once through Trunkline, where names have a prefix. */
const SCRIPTS: Record<string, (client: Client, prefix: string) => Promise<unknown>> = {
  'list prompts': async (client, prefix) => withoutPrefix((await client.listPrompts()).prompts, prefix),
  'list resources': (client) => client.listResources(),
  'list resource templates': (client) => client.listResourceTemplates(),
  'get a prompt without arguments': (client, prefix) => client.getPrompt({ name: `${prefix}simple-prompt` }),
  'get a prompt with arguments': (client, prefix) =>
    client.getPrompt({ name: `${prefix}args-prompt`, arguments: { city: 'Zürich', state: 'ZH' } }),
  'get a prompt that lacks an argument': (client, prefix) => fault(client.getPrompt({ name: `${prefix}args-prompt` })),
  'complete an argument of a prompt': (client, prefix) =>
    client.complete({
      ref: { type: 'ref/prompt', name: `${prefix}completable-prompt` },
      argument: { name: 'department', value: 'E' },
    }),
  'complete a variable of a template': async (client) => {
    const [template] = (await client.listResourceTemplates()).resourceTemplates;
    return client.complete({
      ref: { type: 'ref/resource', uri: template?.uriTemplate ?? '' },
      argument: { name: 'resourceId', value: '1' },
    });
  },
  'read a listed resource': async (client) => {
    const [resource] = (await client.listResources()).resources;
    return client.readResource({ uri: resource?.uri ?? '' });
  },
  'read a resource by its template': async (client) => {
    const { contents } = await client.readResource({ uri: 'demo://resource/dynamic/text/3' });
    return contents.map(({ uri, mimeType }) => ({ uri, mimeType }));
  },
  'read a resource that is not there': (client) => fault(client.readResource({ uri: 'demo://nothing/here' })),
  'set the log level': (client) => client.setLoggingLevel('warning'),
  'subscribe and unsubscribe': async (client) => {
    const uri = 'demo://resource/dynamic/text/1';
    return [await client.subscribeResource({ uri }), await client.unsubscribeResource({ uri })];
  },
  'call a tool that links to resources': (client, prefix) =>
    client.callTool({ name: `${prefix}get-resource-links`, arguments: { count: 3 } }),
  'call a tool that answers with an image': (client, prefix) => client.callTool({ name: `${prefix}get-tiny-image` }),
  'call a tool that answers structured': (client, prefix) =>
    client.callTool({ name: `${prefix}get-structured-content`, arguments: { location: 'Chicago' } }),
  'call a tool with annotations': (client, prefix) =>
    client.callTool({
      name: `${prefix}get-annotated-message`,
      arguments: { messageType: 'error', includeImage: true },
    }),
  'list tools, which depend on what the client can do': async (client, prefix) =>
    withoutPrefix(
      (await client.listTools()).tools.filter(({ name }) => !name.startsWith('trunkline__')),
      prefix,
    ),
  'call a tool that asks the client’s model': (client, prefix) =>
    client.callTool({ name: `${prefix}trigger-sampling-request`, arguments: { prompt: 'hello', maxTokens: 10 } }),
  'call a tool that asks the person': (client, prefix) =>
    client.callTool({ name: `${prefix}trigger-elicitation-request`, arguments: {} }),
  'call a tool that asks for the roots': (client, prefix) =>
    client.callTool({ name: `${prefix}get-roots-list`, arguments: {} }),
  'call a tool with arguments that do not fit': (client, prefix) =>
    client.callTool({ name: `${prefix}get-sum`, arguments: { a: 'one' } }),
};

const PACKAGE = '@modelcontextprotocol/server-everything';
const PREFIX = 'every__';

const folder = mkdtempSync(join(tmpdir(), 'trunkline-everything-'));
const hubs = join(folder, 'hubs');
const hubsThatRun = () => processesWith(`hub serve --place ${hubs}`);
const direct = capableClient();
let gateway: HttpGateway;

beforeAll(async () => {
  const config = join(folder, 'trunkline.yaml');
  writeFileSync(config, JSON.stringify({ servers: { every: { package: PACKAGE } }, gateway: { hubIdle: '1ms' } }));
  linkOwnPackages(folder);
  gateway = await openHttpGateway(config);
  await direct.connect(overPipes([programOf(PACKAGE)]));
});
afterAll(async () => {
  await direct.close();
  await gateway.close();
  await until('the hub ends', () => hubsThatRun().length === 0);
  rmSync(folder, { recursive: true, force: true });
});

describe.each(['stdio', 'stdio and a hub', 'HTTP'])(
  'server-everything does the same through Trunkline over %s as directly',
  (front) => {
    const relayed = capableClient();

    beforeAll(async () => {
      const file = join(folder, 'trunkline.yaml');
      const fronts: Record<string, () => Transport> = {
        stdio: () => overPipes([CLI, '--no-hub', '--config', file]),
        'stdio and a hub': () => overPipes([CLI, '--config', file], { TRUNKLINE_HUB: 'auto', TRUNKLINE_HUB_DIR: hubs }),
        HTTP: () => new StreamableHTTPClientTransport(new URL(gateway.url)) as Transport,
      };
      const connect = fronts[front];
      if (connect === undefined) throw new Error(`There is no way ${front}`);
      await relayed.connect(connect());
      await relayed.listTools();
      expect(hubsThatRun()).toHaveLength(front === 'stdio and a hub' ? 1 : 0);
    });
    afterAll(async () => {
      await relayed.close();
      await until('the hub ends', () => hubsThatRun().length === 0);
    });

    it.each(Object.entries(SCRIPTS))('when a client does this: %s', async (_, script) => {
      const expected = await script(direct, '');
      expect(expected).toBeDefined();
      expect(await script(relayed, PREFIX)).toEqual(expected);
    });

    it('when a subscribed resource changes', async () => {
      const uri = 'demo://resource/dynamic/text/1';
      const updates: string[] = [];
      const updated = new Promise<void>((resolve) => {
        relayed.fallbackNotificationHandler = async ({ method, params }: Message) => {
          if (method !== 'notifications/resources/updated') return;
          updates.push(params.uri);
          resolve();
        };
      });
      await relayed.subscribeResource({ uri });
      await relayed.callTool({ name: `${PREFIX}toggle-subscriber-updates` });
      await updated;
      await relayed.callTool({ name: `${PREFIX}toggle-subscriber-updates` });
      expect(updates[0]).toBe(uri);
    });

    it('when it logs', async () => {
      const logged = new Promise<Message>((resolve) => {
        relayed.fallbackNotificationHandler = async (notification: Message) => {
          if (notification.method === 'notifications/message') resolve(notification.params);
        };
      });
      await relayed.setLoggingLevel('debug');
      await relayed.callTool({ name: `${PREFIX}toggle-simulated-logging` });
      expect(await logged).toHaveProperty('level');
      await relayed.callTool({ name: `${PREFIX}toggle-simulated-logging` });
    });
  },
);

function overPipes(args: string[], more: Record<string, string> = {}): StdioClientTransport {
  const env = { ...getDefaultEnvironment(), ...more };
  return new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' });
}

/** The program of an installed package. */
function programOf(name: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
  const { bin } = createRequire(manifest)(manifest) as { bin: Record<string, string> };
  return join(dirname(manifest), Object.values(bin)[0] ?? '');
}

/** A client that can be asked for everything, and answers always the same. */
function capableClient(): Client {
  const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
  const client = new Client({ name: 'test', version: '1' }, { capabilities });
  client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => ({
    model: 'test-model',
    role: 'assistant',
    content: { type: 'text', text: `asked ${JSON.stringify(params.messages)}` },
  }));
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
    action: 'accept',
    content: { name: `answer to ${params.message}` },
  }));
  client.setRequestHandler(ListRootsRequestSchema, async () => ({
    roots: [{ uri: 'file:///home/test', name: 'Test' }],
  }));
  return client;
}

function withoutPrefix(entries: Message[], prefix: string): Message[] {
  return entries.map((entry) => ({ ...entry, name: entry.name.slice(prefix.length) }));
}

async function fault(answer: Promise<unknown>): Promise<unknown> {
  const error = await answer.then(
    () => 'no fault',
    (reason: Message) => reason,
  );
  return typeof error === 'string' ? error : { code: error.code, message: error.message, data: error.data };
}
