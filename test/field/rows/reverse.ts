// What servers ask their clients, and what they announce.
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { Message } from '../../support/wire.js';
import type { FieldClient } from '../legs.js';
import { type Play, type Speaker, tool, withoutServer } from '../play.js';
import { FAILS, type Row } from '../row.js';

const jsonrpc = '2.0';

/** A server that asks its client in each call, and answers with what it got. */
function asking(method: string, params?: unknown): Play {
  return {
    on: {
      'tools/call': ({ id }, server) =>
        server.say({ jsonrpc, id: `ask-${id}`, method, ...(params !== undefined && { params }) }),
      answer: ({ id, result, error }, server) => {
        const text = error === undefined ? JSON.stringify(result) : `refused with ${error.code}`;
        server.say({ jsonrpc, id: Number(String(id).slice(4)), result: { content: [{ type: 'text', text }] } });
      },
    },
  };
}

/** A client that does not support what the server asks for. */
function unsupported(what: string, method: string, params: unknown, answer = 'refused with -32601'): Row {
  return {
    quirk: `A server ${what}`,
    right: 'It gets the answer at once.',
    server: asking(method, params),
    ask: (asked) => asked.call(),
    direct: `echo: ${answer}`,
  };
}

interface Question {
  readonly capability: string;
  readonly method: string;
  readonly params?: unknown;
  readonly schema: unknown;
  readonly answer: unknown;
}

/** A client that supports what the server asks for, and gets all of it. */
function supported(what: string, { capability, method, params, schema, answer }: Question, right = BOTH): Row {
  return {
    quirk: `A server ${what}`,
    right,
    capabilities: { [capability]: capability === 'elicitation' ? { form: {}, url: {} } : {} },
    server: asking(method, params),
    ask: async (asked) => {
      let seen: unknown;
      asked.client.setRequestHandler(
        schema as never,
        ((request: Message) => {
          seen = request.params;
          return answer;
        }) as never,
      );
      const got = await asked.call();
      const words = withoutServer(JSON.stringify(seen));
      return `${got}; asked ${words === JSON.stringify(params) ? 'in these words' : words}`;
    },
  };
}

const BOTH = 'The question and the answer arrive as they are. The message for the person also names the server.';

const CHOICES = {
  message: 'Choose',
  requestedSchema: {
    type: 'object',
    properties: {
      many: { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }] }, default: ['a'] },
      one: { type: 'string', oneOf: [{ const: 'a', title: 'A' }] },
      old: { type: 'string', enum: ['a'], enumNames: ['A'] },
    },
  },
};
const PROMPT = {
  messages: [{ role: 'user', content: [{ type: 'text', text: 'q' }] }],
  includeContext: 'thisServer',
  maxTokens: 10,
};
const SAMPLE = { model: 'm', stopReason: 'vendor', role: 'assistant', content: { type: 'text', text: 'a' } };
const ELICITATION = { capability: 'elicitation', method: 'elicitation/create', schema: ElicitRequestSchema } as const;

/** A server that says this before it answers each call. */
function announcing(...messages: Message[]): Play {
  return {
    hello: { capabilities: { tools: {}, resources: { subscribe: true }, logging: {} } },
    resources: [{ uri: 'x:r', name: 'r' }],
    on: {
      'resources/subscribe': {},
      'tools/call': (request, server) => {
        server.say(...messages.map((message) => ({ jsonrpc, ...message })));
        setImmediate(() => server.soundly(request));
      },
    },
  };
}

/** What a client hears of a server that announces something in a call. An error of the client may end its connection. */
async function heard(asked: FieldClient): Promise<string> {
  const text = await asked.call('echo', {}, { onprogress: () => {} });
  for (let turns = 0; turns < 20; turns += 1) await nextTurn();
  if (asked.errors.length > 0) return `${FAILS}: ${asked.errors[0]?.message.split(':', 1)[0]}`;
  return `${text}; heard: ${asked.notified.map((method) => method.replace('notifications/', '')).join(' ') || 'nothing'}`;
}

function announced(quirk: string, what: string, ...messages: Message[]): Row {
  return { quirk, right: 'The client hears it.', server: announcing(...messages), ask: heard, direct: what };
}

/** Announces a list that has changed with the first call. */
function changing(list: string, entry: (name: string) => unknown): Play {
  const answer = (request: Message, server: Speaker) => {
    const isChanged = server.heard.some(({ method }) => method === 'tools/call');
    server.answer(request, { [list]: [entry('old'), ...(isChanged ? [entry('new')] : [])] });
  };
  return {
    hello: { capabilities: { tools: { listChanged: true }, [list]: { listChanged: true } } },
    on: {
      [`${list}/list`]: answer,
      'tools/call': (request, server) => {
        server.say({ jsonrpc, method: `notifications/${list}/list_changed` });
        server.soundly(request);
      },
    },
  };
}

export const REVERSE: readonly Row[] = [
  unsupported('asks for the roots of a client without roots', 'roots/list', undefined),
  unsupported('elicits from a client without elicitation', 'elicitation/create', CHOICES),
  unsupported('samples from a client without sampling', 'sampling/createMessage', PROMPT),
  unsupported('asks with a method that nobody knows', 'vendor/ask', {}),
  unsupported('pings in a call', 'ping', undefined, '{}'),
  {
    ...supported('asks for the roots', {
      ...{ capability: 'roots', method: 'roots/list', params: {}, schema: ListRootsRequestSchema },
      answer: { roots: [{ uri: 'file:///home/me' }] },
    }),
    direct: 'echo: {"roots":[{"uri":"file:///home/me"}]}; asked in these words',
  },
  {
    ...supported('elicits choices of all forms', {
      ...{ ...ELICITATION, params: CHOICES, answer: { action: 'accept', content: { many: ['a'], one: 'a' } } },
    }),
    direct: 'echo: {"action":"accept","content":{"many":["a"],"one":"a"}}; asked in these words',
  },
  {
    ...supported('elicits, and its client cancels with `content: null`', {
      ...{ ...ELICITATION, params: CHOICES, answer: { action: 'cancel', content: null } },
    }),
    direct: 'echo: {"action":"cancel"}; asked in these words',
  },
  {
    ...supported('elicits the visit of a page', {
      ...ELICITATION,
      params: { mode: 'url', message: 'm', elicitationId: 'e', url: 'https://login.example/' },
      answer: { action: 'accept' },
    }),
    direct: 'echo: {"action":"accept"}; asked in these words',
  },
  {
    ...supported('samples with its own context, and gets a reason of the vendor', {
      ...{ capability: 'sampling', method: 'sampling/createMessage', params: PROMPT },
      ...{ schema: CreateMessageRequestSchema, answer: SAMPLE },
    }),
    direct: `echo: ${JSON.stringify(SAMPLE)}; asked in these words`,
  },
  announced('A server logs in a call', 'echo: hello; heard: message', {
    method: 'notifications/message',
    params: { level: 'info', data: { a: 1 } },
  }),
  announced('A server logs with a level that nobody knows', 'echo: hello; heard: message', {
    method: 'notifications/message',
    params: { level: 'warn', data: 'x' },
  }),
  announced(
    'A server announces something of its own',
    'echo: hello; heard: vendor vendor/event',
    { method: 'notifications/vendor', params: { a: 1 } },
    { method: 'vendor/event' },
  ),
  ...['x:r', 'x:r/below'].map(
    (uri): Row => ({
      quirk: `The resource ${uri} changes, and the client has subscribed to x:r`,
      right: 'The client hears it.',
      server: announcing({ method: 'notifications/resources/updated', params: { uri } }),
      ask: async (asked) => {
        await asked.client.subscribeResource({ uri: 'x:r' });
        return await heard(asked);
      },
      direct: 'echo: hello; heard: resources/updated',
    }),
  ),
  {
    quirk: 'A server changes its tools in a call',
    right: 'The client hears it, and gets the new list.',
    server: changing('tools', (name) => tool(name)),
    ask: async (asked) => {
      await asked.tools();
      await asked.call('old');
      while (!asked.notified.includes('notifications/tools/list_changed')) await nextTurn();
      return await asked.tools();
    },
    direct: 'tools: old new',
  },
  {
    quirk: 'A server changes its prompts in a call',
    right: 'The client hears it, and gets the new list.',
    server: changing('prompts', (name) => ({ name })),
    ask: async (asked) => {
      await asked.prompts();
      await asked.call();
      while (!asked.notified.includes('notifications/prompts/list_changed')) await nextTurn();
      return await asked.prompts();
    },
    direct: 'prompts: old new',
  },
  {
    quirk: 'A server sends progress with a token of its own',
    right: 'The client does not hear it, because some clients end the connection then.',
    server: announcing({ method: 'notifications/progress', params: { progressToken: 'tool-call-1', progress: 0 } }),
    ask: heard,
    direct: 'fails: Received a progress notification for an unknown token',
    through: 'echo: hello; heard: nothing',
  },
  {
    quirk: 'A server sends progress after its answer',
    right: 'The client does not hear it, because some clients end the connection then.',
    server: {
      on: {
        'tools/call': (request, server) => {
          server.soundly(request);
          const { progressToken } = request.params._meta;
          server.say({ jsonrpc, method: 'notifications/progress', params: { progressToken, progress: 10 } });
        },
      },
    },
    ask: heard,
    direct: 'fails: Received a progress notification for an unknown token',
    through: 'echo: hello; heard: nothing',
  },
  {
    quirk: 'Calls that are cancelled never get an answer',
    right: 'They hold up no other call.',
    server: {
      on: {
        'tools/call': (request, server) => {
          if (request.params.arguments.text === 'now') server.soundly(request);
        },
      },
    },
    ask: async (asked) => {
      for (let count = 0; count < 200; count += 1) {
        const stopped = new AbortController();
        const call = asked.client.callTool({ name: 'echo', arguments: {} }, undefined, { signal: stopped.signal });
        await nextTurn();
        stopped.abort();
        await call.catch(() => {});
      }
      return await asked.call('echo', { text: 'now' });
    },
    direct: 'echo: now',
  },
  {
    quirk: 'Log levels are declared, and unknown',
    right: 'Clients can set one, and nothing else fails.',
    server: { hello: { capabilities: { tools: {}, logging: {} } } },
    ask: async (asked) => {
      await asked.client.setLoggingLevel('info');
      return await asked.call();
    },
    direct: 'fails: Method not found',
    through: 'echo: hello',
  },
];
