/** How calls and their answers begin, whatever comes before an id in them. */
const HEAD = '{"jsonrpc":"2.0","id":';
const ANSWER = ',"result":{"content":[{"type":"text","text":"hello"}]}}\n';
const callOf = (tool) => `,"method":"tools/call","params":{"name":"${tool}","arguments":{"text":"hello"}}}\n`;
const CALL = callOf('echo');

/**
 * A client in the same process, which does as little as possible besides comparing every answer with what it should be.
 * What answers to one chunk cause to be sent goes out as one chunk, in the next turn of the event loop.
 */
export class InsideClient {
  #call;
  #send;
  #lastId = 0;
  /** Answers come in the order of the calls. */
  #answered = 0;
  #until = 0;
  #asked;
  #resolve;

  constructor(tool, send) {
    this.#call = callOf(tool);
    this.#send = send;
  }

  /** Shakes hands, and waits until there are tools. */
  async open() {
    const clientInfo = { name: 'bench', version: '1.0.0' };
    await this.#ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    this.#say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const { tools } = await this.#ask('tools/list', {});
    if (tools.length === 0) throw new Error('There is no tool to call');
  }

  /** Calls `count` times, `inFlight` at a time. */
  async call(count, inFlight) {
    this.#until = this.#lastId + count;
    await new Promise((resolve) => {
      this.#resolve = resolve;
      this.#next(Math.min(count, inFlight));
    });
  }

  receive(chunk) {
    const text = chunk.latin1Slice();
    let at = 0;
    let count = 0;
    while (at < text.length) {
      const answer = `${HEAD}${this.#answered + 1}${ANSWER}`;
      if (this.#asked === undefined && text.startsWith(answer, at)) {
        this.#answered += 1;
        count += 1;
        at += answer.length;
      } else {
        const end = text.indexOf('\n', at);
        this.#take(text.slice(at, end));
        at = end + 1;
      }
    }
    this.#next(Math.min(count, this.#until - this.#lastId));
    if (count > 0 && this.#answered === this.#until) this.#resolve();
  }

  #next(count) {
    if (count === 0) return;
    let calls = '';
    for (let sent = 0; sent < count; sent += 1) {
      this.#lastId += 1;
      calls += `${HEAD}${this.#lastId}${this.#call}`;
    }
    setImmediate(this.#send, Buffer.from(calls, 'latin1'));
  }

  #take(line) {
    const { id, method, result } = JSON.parse(line);
    if (method !== undefined) return;
    if (this.#asked === undefined || id !== this.#lastId || result === undefined) {
      throw new Error(`Not the answer to call ${this.#answered + 1}: ${line}`);
    }
    const settle = this.#asked;
    this.#asked = undefined;
    this.#answered = id;
    settle(result);
  }

  #ask(method, params) {
    return new Promise((resolve) => {
      this.#asked = resolve;
      this.#lastId += 1;
      this.#say({ jsonrpc: '2.0', id: this.#lastId, method, params });
    });
  }

  #say(message) {
    setImmediate(this.#send, Buffer.from(`${JSON.stringify(message)}\n`));
  }
}

/** A server in the same process: answers all that came in one chunk with one, in the next turn of the event loop. */
export class InsideServer {
  #send;

  constructor(send) {
    this.#send = send;
  }

  receive(chunk) {
    const text = chunk.latin1Slice();
    let answers = '';
    let at = 0;
    while (at < text.length) {
      const idEnd = text.indexOf(',', at + HEAD.length);
      if (text.startsWith(HEAD, at) && text.startsWith(CALL, idEnd)) {
        answers += `${text.slice(at, idEnd)}${ANSWER}`;
        at = idEnd + CALL.length;
      } else {
        const end = text.indexOf('\n', at);
        answers += answerTo(JSON.parse(text.slice(at, end)));
        at = end + 1;
      }
    }
    if (answers !== '') setImmediate(this.#send, Buffer.from(answers, 'latin1'));
  }
}

function answerTo({ id, method, params }) {
  if (id === undefined) return '';
  const result = RESULTS[method]?.(params);
  const error = { code: -32601, message: 'Method not found' };
  return `${JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) })}\n`;
}

const RESULTS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'tiny', version: '1.0.0' },
  }),
  'tools/list': () => ({
    tools: [
      {
        name: 'echo',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      },
    ],
  }),
  ping: () => ({}),
};
