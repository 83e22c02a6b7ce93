// A stand-in for the model of a client, because a real one needs an account. It speaks the APIs of Anthropic, OpenAI and
// Gemini as far as a client needs, and calls the tools that it is told to call.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

/** The end of every conversation. */
const DONE = 'The stand-in is done.';

/**
 * A conversation about some calls, one after the other: `calls` are `{ name, arguments }`. `before` is awaited before each
 * call, with its index. `seen` has the names of the tools that the client last offered, and `results` the texts that it got.
 */
export class Model {
  seen = [];
  results = [];
  #calls;
  #before;
  #pending;
  /** The tool that was loaded last, in a client that shows only names until its model has searched. */
  #searched;
  #server;

  constructor(calls, before = async () => {}) {
    this.#calls = calls;
    this.#before = before;
  }

  async start() {
    this.#server = createServer((request, response) => {
      void this.#serve(request, response).catch((error) => response.destroy(error));
    });
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request, response) {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const api = Object.values(APIS).find(({ path }) => path.test(request.url));
    if (api === undefined || request.method !== 'POST') {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
      return;
    }
    const asked = JSON.parse(body);
    const action = await this.#next(api, asked);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(api.answer(action, asked));
  }

  /** The call or the text that comes next. A client that repeats a request gets the same call again. */
  async #next(api, asked) {
    const offered = api.offered(asked);
    // Clients also ask for titles and the like, without tools.
    if (!offered.some(({ name }) => name.includes('trunkline'))) return { text: DONE };
    this.seen = offered.map(({ name }) => name);
    if (this.#pending !== undefined) {
      const result = api.resultOf(asked, this.#pending.id);
      if (result === undefined) return this.#pending;
      if (!this.#pending.isSearch) this.results.push(result);
      this.#pending = undefined;
    }
    const call = this.#calls[this.results.length];
    if (call === undefined) return { text: DONE };
    const tool = offered.find(({ name }) => name.endsWith(call.name));
    if (tool === undefined) return { text: `${call.name} is not offered.` };
    const id = `call_${randomUUID().replaceAll('-', '')}`;
    if (tool.isDeferred && this.#searched !== tool.name) {
      this.#searched = tool.name;
      const search = { query: `select:${tool.name}`, max_results: 5 };
      this.#pending = { id, tool: { name: 'ToolSearch' }, arguments: search, isSearch: true };
    } else {
      await this.#before(this.results.length);
      this.#pending = { id, tool, arguments: call.arguments };
    }
    return this.#pending;
  }
}

/** For each API: the tools in a request, the result of a call in it, and the stream of an answer. */
const APIS = {
  anthropic: {
    path: /^\/v1\/messages(\?|$)/,
    /** Claude Code names tools in a text until its model has searched them. */
    offered: ({ tools = [], messages }) => {
      const named = tools.map(({ name }) => ({ name }));
      const texts = messages.flatMap(({ content }) =>
        Array.isArray(content) ? content.map(({ text }) => text) : content,
      );
      const deferred = texts.flatMap((text) => text?.match(/^mcp__\S+$/gm) ?? []);
      const loaded = new Set(named.map(({ name }) => name));
      return [...named, ...new Set(deferred.filter((name) => !loaded.has(name)))].map((each) =>
        typeof each === 'string' ? { name: each, isDeferred: true } : each,
      );
    },
    resultOf: ({ messages }, id) => {
      const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
      return textIn(blocks.find(({ type, tool_use_id: of }) => type === 'tool_result' && of === id)?.content);
    },
    answer: ({ text, id, tool, arguments: args }, { model }) => {
      const block =
        tool === undefined ? { type: 'text', text: '' } : { type: 'tool_use', id, name: tool.name, input: {} };
      const delta =
        tool === undefined
          ? { type: 'text_delta', text }
          : { type: 'input_json_delta', partial_json: JSON.stringify(args) };
      const usage = { input_tokens: 1, output_tokens: 1 };
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], usage };
      const stop = { stop_reason: tool === undefined ? 'end_turn' : 'tool_use', stop_sequence: null };
      return events([
        { type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } },
        { type: 'content_block_start', index: 0, content_block: block },
        { type: 'content_block_delta', index: 0, delta },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: stop, usage },
        { type: 'message_stop' },
      ]);
    },
  },
  openai: {
    path: /^\/v1\/responses(\?|$)/,
    /** The tools of a server are together in a namespace. */
    offered: ({ tools = [] }) =>
      tools.flatMap(({ name, type, tools: inner = [] }) =>
        type === 'namespace'
          ? inner.map((tool) => ({ name: `${name}__${tool.name}`, namespace: name, inner: tool.name }))
          : [{ name: name ?? type }],
      ),
    resultOf: ({ input }, id) =>
      textIn(input.find(({ type, call_id: of }) => type === 'function_call_output' && of === id)?.output),
    answer: ({ text, id, tool, arguments: args }) => {
      const item =
        tool === undefined
          ? { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }
          : {
              ...{ type: 'function_call', call_id: id, arguments: JSON.stringify(args) },
              ...(tool.namespace === undefined ? { name: tool.name } : { name: tool.inner, namespace: tool.namespace }),
            };
      const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
      return events([
        { type: 'response.created', response: { id: 'resp_1' } },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { id: 'resp_1', usage } },
      ]);
    },
  },
  gemini: {
    path: /:streamGenerateContent/,
    offered: ({ tools = [] }) =>
      tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => ({ name }))),
    /** Its calls may have no ids. A request that repeats has no result at its end. */
    resultOf: ({ contents }) => {
      const result = contents.at(-1)?.parts?.find(({ functionResponse }) => functionResponse !== undefined);
      return result && JSON.stringify(result.functionResponse.response);
    },
    answer: ({ text, tool, arguments: args }) => {
      const part = tool === undefined ? { text } : { functionCall: { name: tool.name, args } };
      const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
      const content = { role: 'model', parts: [part] };
      return `data: ${JSON.stringify({ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata })}\n\n`;
    },
  },
};

function events(list) {
  return list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

/** `undefined` if there is no result. */
function textIn(content) {
  if (content === undefined) return undefined;
  return typeof content === 'string' ? content : JSON.stringify(content);
}
