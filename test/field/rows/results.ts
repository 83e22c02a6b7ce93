// Results and errors, with members that clients reject, and members that a gateway could lose.
import type { Message } from '../../support/wire.js';
import type { FieldClient } from '../legs.js';
import { type Play, tool, withoutServer } from '../play.js';
import type { Row } from '../row.js';

const WHOLE = 'It reaches the client as it is.';
const JUDGED = 'Results that clients accept reach the client as they are.';
const MENDED = 'The client gets the result, because the call has taken effect. A malformed part becomes a text.';
const REJECTED = 'fails: the SDK rejects the answer';
const TEXT = { type: 'text', text: 'hello' };

/** A call with this result, of which the client gets all members. */
function resulting(quirk: string, result: unknown, direct: string, right = JUDGED): Row {
  const ask = async ({ client }: FieldClient) => JSON.stringify(await client.callTool({ name: 'echo', arguments: {} }));
  return { quirk, right, server: { result }, ask, direct };
}

/** The same with a result that the client rejects directly. */
function mended(quirk: string, result: unknown, through: unknown, status?: RegExp): Row {
  const row = { ...resulting(quirk, result, REJECTED, MENDED), through: JSON.stringify(through) };
  return status === undefined ? row : { ...row, status };
}

function text(words: string): Message {
  return { type: 'text', text: words };
}

/** The text that stands for a part of a result. */
function asJson(part: unknown, fault: string): string {
  return `[Trunkline shows this part as JSON, because clients reject its form (${fault}): ${JSON.stringify(part)}]`;
}

/** The block that stands for a malformed one. */
function shown(block: unknown, fault: string): Message {
  return text(asJson(block, fault));
}

/** A call that fails with this code and data. */
function failing(code: number): Row {
  const data = { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://login.example/', message: 'm' }] };
  return {
    quirk: `A call fails with ${code} and data`,
    right: WHOLE,
    server: {
      on: {
        'tools/call': ({ id }, server) =>
          server.say({ jsonrpc: '2.0', id, error: { code, message: 'Log in first', data } }),
      },
    },
    ask: (asked) =>
      asked.call().catch((error) => `${error.code} ${error.message} ${withoutServer(JSON.stringify(error.data))}`),
    direct: `${code} MCP error ${code}: Log in first ${JSON.stringify(data)}`,
  };
}

/** A client that reads a resource of a server that reads whatever is asked. */
function reading(quirk: string, uri: string, listed: Play = {}): Row {
  return {
    quirk,
    right: WHOLE,
    server: {
      resources: [],
      ...listed,
      on: {
        'resources/read': (request, server) =>
          server.answer(request, { contents: [{ uri: request.params.uri, text: 'read' }] }),
      },
    },
    ask: (asked) => read(asked, uri),
    direct: JSON.stringify([{ uri, text: 'read' }]),
  };
}

async function read({ client }: FieldClient, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  return JSON.stringify(contents);
}

/** A resource with these contents. */
function contents(quirk: string, of: Message): Row {
  const whole = [{ uri: 'x:r', ...of }];
  const server = { resources: [{ uri: 'x:r', name: 'r' }], on: { 'resources/read': { contents: whole } } };
  const ask = (asked: FieldClient) => read(asked, 'x:r');
  return { quirk, right: JUDGED, server, ask, direct: JSON.stringify(whole) };
}

/** The same with contents that the client rejects directly. */
function mendedContents(quirk: string, of: Message, through: Message): Row {
  return {
    ...contents(quirk, of),
    right: MENDED,
    direct: REJECTED,
    through: JSON.stringify([{ uri: 'x:r', ...through }]),
  };
}

/** A client that completes an argument. The server completes it with what it was asked. */
function completing(quirk: string, ref: Message, more: Message = {}): Row {
  const params = { ref, argument: { name: 'b', value: '1' }, ...more };
  return {
    quirk: `A client completes an argument of ${quirk}`,
    right: 'The server that has it completes it.',
    server: {
      hello: { capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} } },
      prompts: [{ name: 'p', arguments: [{ name: 'b' }] }],
      templates: [{ uriTemplate: 'x://{a}/{b}', name: 't' }],
      on: {
        'completion/complete': (request, server) =>
          server.answer(request, { completion: { values: [JSON.stringify(request.params)], total: 1 } }),
      },
    },
    ask: async ({ client }) => (await client.complete(params as never)).completion.values.join(' '),
    direct: JSON.stringify(params),
  };
}

/** A client that gets a prompt, which shows what the server was asked. */
function prompting(quirk: string, more: Message): Row {
  const params = { name: 'p', ...more };
  return {
    quirk: `A client gets a prompt ${quirk}`,
    right: WHOLE,
    server: {
      prompts: [{ name: 'p', arguments: [{ name: 'a' }] }],
      on: {
        'prompts/get': (request, server) => {
          const content = { type: 'text', text: JSON.stringify(request.params) };
          server.answer(request, { messages: [{ role: 'user', content }] });
        },
      },
    },
    ask: async ({ client }) => {
      const { messages } = await client.getPrompt(params as never);
      return messages.map(({ content }) => (content as Message).text).join(' ');
    },
    direct: JSON.stringify(params),
  };
}

const ERROR = { type: 'error', text: 'no such account' };
const NOTHING = { mimeType: 'text/plain' };
const IMAGE = { type: 'image', data: 'AAAA' };

const METADATA = {
  title: 'T',
  icons: [{ src: 'data:image/png;base64,AA==' }],
  outputSchema: { type: 'object', additionalProperties: { type: 'array' } },
  annotations: { title: 'A', readOnlyHint: true },
  execution: { taskSupport: 'optional' },
  _meta: { 'x.example/key': 1, serverName: 'time' },
};

const DRAFT_7 = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' };

export const RESULTS: readonly Row[] = [
  resulting(
    'A result is an object without `content`',
    { task: 'x', bullets: [1] },
    '{"content":[],"task":"x","bullets":[1]}',
  ),
  resulting(
    'A result is one level too deep',
    { toolResult: { content: [TEXT] } },
    `{"content":[],"toolResult":{"content":[${JSON.stringify(TEXT)}]}}`,
  ),
  mended(
    'The structured content of a result is a text',
    { content: [TEXT], structuredContent: 'deleted' },
    { content: [TEXT], structuredContent: { result: 'deleted' } },
    /results repaired: .*tools\/call \(/,
  ),
  mended(
    'A result has a block that nobody knows',
    { content: [ERROR, TEXT], isError: true },
    { content: [shown(ERROR, 'type is not known'), TEXT], isError: true },
  ),
  mended('A text of a result is a number', { content: [{ type: 'text', text: 7 }] }, { content: [text('7')] }),
  mended('The content of a result is a text', { content: 'hello' }, { content: [TEXT] }),
  mended('The content of a result is one block', { content: TEXT }, { content: [TEXT] }),
  mended('The content of a result has a text', { content: ['hello', TEXT] }, { content: [TEXT, TEXT] }),
  mended('An image has no media type', { content: [IMAGE] }, { content: [shown(IMAGE, 'mimeType is not a string')] }),
  mended(
    'The data of an image is a URL',
    { content: [{ ...IMAGE, mimeType: 'image/png', data: 'data:image/png;base64,AAAA' }] },
    { content: [{ ...IMAGE, mimeType: 'image/png' }] },
  ),
  mended(
    'The optional members of a result are null',
    { content: [{ ...TEXT, annotations: null, _meta: null }], structuredContent: null, isError: null },
    { content: [TEXT] },
  ),
  mended(
    'A result says with a text that it failed',
    { content: [TEXT], isError: 'true' },
    { content: [TEXT], isError: true },
  ),
  resulting(
    'A result has metadata, and members that nobody knows',
    { content: [{ ...TEXT, _meta: { a: 1 } }], vendor: [1] },
    JSON.stringify({ content: [{ ...TEXT, _meta: { a: 1 } }], vendor: [1] }),
    WHOLE,
  ),
  resulting(
    'A text of a result has a priority with a fraction',
    { content: [{ ...TEXT, annotations: { priority: 0.6 } }] },
    JSON.stringify({ content: [{ ...TEXT, annotations: { priority: 0.6 } }] }),
  ),
  mended(
    'A text of a result has an audience that nobody knows',
    { content: [{ ...TEXT, annotations: { audience: ['system'], priority: 1 } }] },
    { content: [{ ...TEXT, annotations: { priority: 1 } }] },
  ),
  {
    quirk: 'A tool with an output schema answers without structured content',
    right: JUDGED,
    server: { tools: [tool('echo', { outputSchema: { type: 'object' } })] },
    ask: async (asked) => `${await asked.tools()}; ${await asked.call()}`,
    direct: 'fails: Tool echo has an output schema but did not return structured content',
  },
  ...([1, 2] as const).map(
    (sdk): Row => ({
      quirk: 'The output schema of a tool is of draft 7',
      right: 'It reaches the client as it is, and works.',
      sdk,
      server: {
        tools: [tool('echo', { outputSchema: DRAFT_7 })],
        result: { content: [TEXT], structuredContent: { a: 1 } },
      },
    }),
  ),
  {
    quirk: 'A tool has metadata of all kinds',
    right: WHOLE,
    server: { tools: [tool('echo', METADATA)] },
    ask: async ({ client }) => {
      const { tools } = await client.listTools();
      const [listed] = tools.filter(({ name }) => name === 'echo') as Message[];
      return JSON.stringify(Object.keys(METADATA).map((name) => listed?.[name]));
    },
    direct: JSON.stringify(Object.values(METADATA)),
  },
  ...['immich.search.metadata', 'github/git_commit', 'имя', 'a b', 'x'.repeat(130)].map(
    (name): Row => ({
      quirk: `A tool has the name \`${name.slice(0, 30)}\``,
      right: 'Its list shows a name that all models take, and its own name works, too.',
      server: { tools: [tool(name)] },
      ask: (asked) => asked.call(name),
      direct: `${name}: hello`,
    }),
  ),
  ...[-32_042, -32_002, -32_001, -1, 7].map(failing),
  contents('A resource is binary', { mimeType: 'application/gzip', blob: 'H4sIAAAA' }),
  contents('A resource is an empty text', { mimeType: 'text/plain', text: '' }),
  mendedContents('A resource has neither text nor bytes', NOTHING, {
    ...NOTHING,
    text: asJson({ uri: 'x:r', ...NOTHING }, 'has neither text nor blob'),
  }),
  mendedContents('The text of a resource is an object', { text: { a: 1 } }, { text: '{"a":1}' }),
  {
    quirk: 'The messages of a prompt have roles of models, texts for blocks, and several blocks',
    right: MENDED,
    server: {
      prompts: [{ name: 'p' }],
      on: {
        'prompts/get': {
          messages: [
            { role: 'system', content: 'hello' },
            { role: 'assistant', content: [TEXT, TEXT] },
          ],
        },
      },
    },
    ask: async ({ client }) => JSON.stringify((await client.getPrompt({ name: 'p' })).messages),
    direct: REJECTED,
    through: JSON.stringify(['user', 'assistant', 'assistant'].map((role) => ({ role, content: TEXT }))),
  },
  reading('A template ends with a query', 'data://123?format=xml', {
    templates: [{ uriTemplate: 'data://{id}{?format}', name: 't' }],
  }),
  reading('A template has no scheme', '/search/a%20b', {
    templates: [{ uriTemplate: '/search/{query}', name: 't' }],
  }),
  reading('A template has a path of many parts', 'repo://o/r/contents/a/b', {
    templates: [{ uriTemplate: 'repo://{owner}/{repo}/contents{/path*}', name: 't' }],
  }),
  reading('A client reads a resource that is in no list', 'ags://capabilities/current-host'),
  completing(
    'a template, with what is known',
    { type: 'ref/resource', uri: 'x://{a}/{b}' },
    { context: { arguments: { a: 'one' } } },
  ),
  completing('a prompt', { type: 'ref/prompt', name: 'p' }),
  prompting('without arguments', {}),
  prompting('with an empty argument', { arguments: { a: '' } }),
  prompting('with arguments that are no texts', { arguments: { a: 1, b: true, c: null } }),
  {
    quirk: 'Prompts are declared, and their list is unknown',
    right: 'The server counts as one without prompts, and its tools work.',
    server: {
      hello: { capabilities: { tools: {}, prompts: {} } },
      on: {
        'prompts/list': ({ id }, server) => server.say({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'no' } }),
      },
    },
    ask: async (asked) => `${await asked.prompts()}; ${await asked.tools()}; ${await asked.call()}`,
    direct: 'fails: no',
    through: 'prompts: none; tools: echo; echo: hello',
  },
];
