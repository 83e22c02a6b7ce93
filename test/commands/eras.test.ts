import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { TOOLS } from '../fixtures/servers/everything-tools.mjs';
import type { Message } from '../support/gateway-process.js';
import { PATIENCE_MS } from '../support/processes.js';
import {
  type ClientEra,
  type ClientRecord,
  OWN_TOOL,
  type SdkClient,
  SdkPlace,
  type TransportName,
} from '../support/sdk-client.js';

const SERVERS = { legacy: 'everything.mjs', modern: 'everything-modern.mjs' };
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
/** A result of the modern era has these; one with the members below may be cached. */
const MODERN_MEMBERS = /^(resultType|ttlMs|cacheScope|inputRequests|requestState)$/;
const CACHEABLE = ['tools', 'prompts', 'resources', 'resourceTemplates', 'contents', 'supportedVersions'];
const WATCHED = 'test://watched-resource';

type Era = keyof typeof SERVERS;
/** Defines a test of what a client does. Where the client can do without Trunkline, it gets the same directly. */
type Script = (title: string, run: () => Promise<void>) => void;
type Tests = (peer: () => SdkClient, script: Script, era: ClientEra) => void;

/** Pairs of a server and a client, each with the tests that it has to pass. */
const CELLS: [server: Era, transport: TransportName, client: ClientEra, tests: Tests[]][] = [
  ['legacy', 'stdio', 'legacy', [requests, input, changes]],
  ['legacy', 'stdio', 'modern', [requests, input, changes]],
  ['legacy', 'stdio', 'auto', [requests]],
  ['legacy', 'HTTP', 'legacy', [requests, input, changes]],
  ['legacy', 'HTTP', 'modern', [requests, input, changes]],
  ['legacy', 'HTTP', 'auto', [requests]],
  ['modern', 'stdio', 'legacy', [requests, input, changes]],
  ['modern', 'stdio', 'modern', [requests, input, changes]],
  ['modern', 'stdio', 'auto', [requests]],
  ['modern', 'HTTP', 'legacy', [requests, input, changes]],
  ['modern', 'HTTP', 'modern', [requests, input, changes]],
  ['modern', 'HTTP', 'auto', [requests]],
];

const places = new Map<string, SdkPlace>();
/** One for each era of the servers; it speaks the same. */
const directClients = new Map<Era, Promise<SdkClient>>();
/** Records of clients without Trunkline, by the era and the script. */
const directRecords = new Map<string, Promise<ClientRecord>>();
afterAll(async () => {
  for (const place of places.values()) await place.dispose();
});

describe.each(CELLS)(
  'with a server of the %s era, over %s, a client of the %s era',
  (server, transport, era, tests) => {
    let peer: SdkClient;
    /** The client that runs the script. */
    let current: SdkClient;
    beforeAll(async () => {
      peer = await placeWith(server, transport).connect(era, transport, 'all__');
      current = peer;
      // Over stdio, the first list is that of the cache, which may be a second old, and so have a tool of the client before.
      const isGone = async () => expect(await listTools(peer)).not.toContain(peer.named('test_added_tool'));
      await vi.waitFor(isGone, PATIENCE_MS);
    });
    beforeEach(() => peer.forget());
    afterEach(() => {
      for (const message of peer.received) expectForm(message, peer.client.getProtocolEra());
    });
    afterAll(() => peer?.client.close());

    const script: Script = (title, run) => {
      it(title, async () => {
        await run();
        if (era !== 'auto' && era !== server) return;
        const recorded = directRecords.get(`${server} ${title}`) ?? recordDirectly(server, run);
        directRecords.set(`${server} ${title}`, recorded);
        expect(peer.record()).toEqual(inEraOf(peer, await recorded));
      });
    };
    async function recordDirectly(own: Era, run: () => Promise<void>): Promise<ClientRecord> {
      const direct = await directClient(own);
      direct.forget();
      current = direct;
      try {
        await run();
      } finally {
        current = peer;
      }
      return direct.record();
    }
    for (const define of tests) define(() => current, script, era);
  },
);

describe('with a server of both eras', () => {
  let place: SdkPlace;
  beforeAll(() => {
    const both = { program: fixture(SERVERS.modern), args: ['dual'] };
    place = new SdkPlace({ both, older: { ...both, era: 'legacy' } });
  });
  afterAll(() => place.dispose());

  it('speaks the modern era unless the configuration says otherwise', async () => {
    const peer = await place.connect('modern', 'stdio');
    for (const [server, revision] of [
      ['both', '2026-07-28'],
      ['older', '2025-11-25'],
    ]) {
      expect(await peer.call(`${server}__test_input_required_result_elicitation`)).toBe('Hello, Ada!');
      expect(await peer.call('trunkline__status', { server })).toContain(`protocol ${revision}`);
    }
  });
});

/** One for all clients of a transport: over HTTP, they share the gateway, and its first list is not a cached one. */
function placeWith(server: Era, transport: TransportName): SdkPlace {
  const name = `${server} ${transport}`;
  const place = places.get(name) ?? new SdkPlace({ all: { program: fixture(SERVERS[server]) } });
  places.set(name, place);
  return place;
}

/** The only error that the two eras number differently. */
function inEraOf({ client }: SdkClient, record: ClientRecord): ClientRecord {
  if (client.getProtocolEra() === 'legacy') return record;
  const answers = record.answers.map(([method, answer]): [string, Message] => {
    return [method, answer.code === -32002 ? { ...answer, code: -32602 } : answer];
  });
  return { ...record, answers };
}

/** A client that starts the server itself. */
function directClient(era: Era): Promise<SdkClient> {
  const client =
    directClients.get(era) ?? placeWith(era, 'stdio').connectDirectly(era, { program: fixture(SERVERS[era]) });
  directClients.set(era, client);
  return client;
}

function fixture(file: string): string {
  return fileURLToPath(new URL(`../fixtures/servers/${file}`, import.meta.url));
}

function requests(peer: () => SdkClient, script: Script, era: ClientEra): void {
  it('speaks the revision that it prefers', () => {
    expect(peer().client.getProtocolEra()).toBe(era === 'legacy' ? 'legacy' : 'modern');
  });

  script('lists the tools', async () => {
    const names = await listTools(peer());
    expect(names.filter((name) => name !== OWN_TOOL)).toEqual(TOOLS.map(({ name }) => peer().named(name)));
  });

  it('lists the tool of Trunkline last', async () => {
    expect((await listTools(peer())).at(-1)).toBe(OWN_TOOL);
  });

  script('calls a tool', async () => {
    expect(await peer().call('test_simple_text')).toBe('This is a simple text response for testing.');
    expect(await peer().call('test_multiple_content_types')).toBe('Multiple content types test:,image,resource');
  });

  script('gets the error of a tool', async () => {
    const { isError, content } = await peer().client.callTool({ name: peer().named('test_error_handling') });
    expect(isError).toBe(true);
    expect(content).toEqual([{ type: 'text', text: 'This tool intentionally returns an error for testing' }]);
  });

  script('gets an error for an unknown tool', async () => {
    await expect(peer().client.callTool({ name: peer().named('no_such_tool') })).rejects.toMatchObject({
      code: -32602,
    });
  });

  script('gets the progress of a call', async () => {
    // The SDK asks for progress only if there is a handler.
    await peer().client.callTool({ name: peer().named('test_tool_with_progress') }, { onprogress: () => {} });
    const steps = peer()
      .of('notifications/progress')
      .map(({ params }) => [params.progress, params.total]);
    expect(steps).toEqual([0, 50, 100].map((progress) => [progress, 100]));
  });

  script('cancels a call', async () => {
    const canceled = async () => Number(await peer().call('test_count_canceled'));
    const before = await canceled();
    const stop = new AbortController();
    const call = peer().client.callTool(
      { name: peer().named('test_wait') },
      { signal: stop.signal, onprogress: () => stop.abort(new Error('Enough')) },
    );
    await expect(call).rejects.toThrow('Enough');
    await expect.poll(canceled).toBe(before + 1);
    // The number of questions says nothing about the server.
    peer().forget();
  });

  script('reads a resource', async () => {
    const { contents } = await peer().client.readResource({ uri: 'test://template/7/data' });
    const text = '{"id":"7","templateTest":true,"data":"Data for ID: 7"}';
    expect(contents).toEqual([{ uri: 'test://template/7/data', mimeType: 'application/json', text }]);
  });

  script('gets an error for an unknown resource', async () => {
    const uri = 'test://no-such-resource';
    await expect(peer().client.readResource({ uri })).rejects.toMatchObject({ code: -32602, data: { uri } });
  });

  script('gets a prompt', async () => {
    const { messages } = await peer().client.getPrompt({
      name: peer().named('test_prompt_with_arguments'),
      arguments: { arg1: 'one', arg2: 'two' },
    });
    const text = "Prompt with arguments: arg1='one', arg2='two'";
    expect(messages).toEqual([{ role: 'user', content: { type: 'text', text } }]);
  });

  script('completes an argument', async () => {
    const { completion } = await peer().client.complete({
      ref: { type: 'ref/prompt', name: peer().named('test_prompt_with_arguments') },
      argument: { name: 'arg1', value: 'par' },
    });
    expect(completion.values).toEqual(['paris', 'park', 'party']);
  });

  script('gets the log messages of the level that it asks for', async () => {
    await logAt(peer(), 'warning');
    expect(peer().of('notifications/message')).toEqual([]);
    await logAt(peer(), 'info');
    expect(
      peer()
        .of('notifications/message')
        .map(({ params }) => params.data),
    ).toEqual(['Tool execution started', 'Tool processing data', 'Tool execution completed']);
  });
}

/** Input that servers need of the client in the middle of a request. */
function input(peer: () => SdkClient, script: Script): void {
  script('fills in a form', async () => {
    const text = await peer().call('test_elicitation', { message: 'Who are you?' });
    expect(text).toBe('User response: action=accept, content={"username":"ada","email":"ada@example.com"}');
    expect(peer().asked).toMatchObject([{ method: 'elicitation/create', params: { message: 'Who are you?' } }]);
  });

  script('opens an address', async () => {
    expect(await peer().call('test_url_elicitation')).toBe('Sign-in: action=accept');
    expect(peer().asked).toMatchObject([{ params: { mode: 'url', url: 'https://example.com/sign-in' } }]);
  });

  script('samples', async () => {
    expect(await peer().call('test_sampling', { prompt: 'Capital?' })).toBe('LLM response: Paris');
    expect(peer().asked).toMatchObject([
      { method: 'sampling/createMessage', params: { messages: [{ content: { text: 'Capital?' } }] } },
    ]);
  });

  script('lists its roots', async () => {
    expect(await peer().call('test_input_required_result_list_roots')).toBe('Roots: file:///home/ada');
    expect(peer().asked).toMatchObject([{ method: 'roots/list' }]);
  });

  script('answers in two rounds', async () => {
    expect(await peer().call('test_input_required_result_multi_round')).toBe('Ada likes blue');
    expect(peer().asked.map(({ params }) => params.message)).toEqual([
      'Step 1: What is your name?',
      'Step 2: Ada, what is your favorite color?',
    ]);
  });

  script('answers several requests at once', async () => {
    expect(await peer().call('test_input_required_result_multiple_inputs')).toBe('Paris, Ada! Roots: 1');
    expect(
      peer()
        .asked.map(({ method }) => method)
        .sort(),
    ).toEqual(['elicitation/create', 'roots/list', 'sampling/createMessage']);
  });

  script('answers what a prompt asks', async () => {
    const { messages } = await peer().client.getPrompt({ name: peer().named('test_input_required_result_prompt') });
    expect(messages).toMatchObject([{ content: { text: 'Use the following context: testing' } }]);
  });
}

function changes(peer: () => SdkClient, script: Script): void {
  script('learns that the tools changed', async () => {
    const stop = await listenTo(peer(), { toolsListChanged: true });
    const before = await listTools(peer());
    for (const isThere of [
      !before.includes(peer().named('test_added_tool')),
      before.includes(peer().named('test_added_tool')),
    ]) {
      peer().forget();
      await peer().call('test_trigger_tool_change');
      await expect.poll(() => peer().of('notifications/tools/list_changed')).toHaveLength(1);
      expect((await listTools(peer())).includes(peer().named('test_added_tool'))).toBe(isThere);
    }
    await stop();
  });

  script('learns that a resource changed', async () => {
    const stop = await listenTo(peer(), { resourceSubscriptions: [WATCHED] });
    await peer().call('test_trigger_resource_update');
    const updates = () => peer().of('notifications/resources/updated');
    await expect.poll(updates).toMatchObject([{ params: { uri: WATCHED } }]);
    await stop();
  });
}

/** Checks the form of a message to a client of this era. */
function expectForm({ method, id, result, error }: Message, era: 'legacy' | 'modern' | undefined): void {
  if (era === 'legacy') {
    expect(Object.keys(result ?? {})).not.toEqual(expect.arrayContaining([expect.stringMatching(MODERN_MEMBERS)]));
    expect(method).not.toBe('notifications/subscriptions/acknowledged');
    return;
  }
  expect(method !== undefined && id !== undefined, 'is a server request').toBe(false);
  expect([-32002, -32042]).not.toContain(error?.code);
  if (result === undefined) return;
  expect(result.resultType).toMatch(/^(complete|input_required)$/);
  if (CACHEABLE.some((member) => member in result)) {
    expect(result).toMatchObject({
      ttlMs: expect.any(Number),
      cacheScope: expect.stringMatching(/^(public|private)$/),
    });
  }
}

async function listTools({ client }: SdkClient): Promise<string[]> {
  const { tools } = await client.listTools(undefined, { cacheMode: 'refresh' });
  return tools.map(({ name }) => name);
}

/** Each era has its own way to ask for changes. Resolves with what ends it. */
async function listenTo(
  { client }: SdkClient,
  filter: { readonly toolsListChanged?: boolean; readonly resourceSubscriptions?: string[] },
): Promise<() => Promise<unknown>> {
  if (client.getProtocolEra() === 'modern') {
    const subscription = await client.listen(filter);
    expect(subscription.honoredFilter).toEqual(filter);
    return () => subscription.close();
  }
  const uris = filter.resourceSubscriptions ?? [];
  for (const uri of uris) await client.subscribeResource({ uri });
  return () => Promise.all(uris.map((uri) => client.unsubscribeResource({ uri })));
}

/** Calls a tool that writes to the log: the level is one of the session in the legacy era, one of the call in the modern. */
async function logAt(peer: SdkClient, level: 'info' | 'warning'): Promise<void> {
  const isModern = peer.client.getProtocolEra() === 'modern';
  if (!isModern) await peer.client.setLoggingLevel(level);
  await peer.call('test_tool_with_logging', {}, isModern ? { [LOG_LEVEL]: level } : undefined);
}
