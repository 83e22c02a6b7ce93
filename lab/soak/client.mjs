/**
 * An MCP client that trusts nothing: every line has to be valid UTF-8 and JSON, every answer the only one to something
 * that was asked, and progress of something that is under way. What is not so is in `faults`. It can do nothing, and
 * says so to whoever asks.
 */
export class Client {
  /** What a client must never see, as texts. */
  faults = [];
  /** Answers to what had been answered already or was never asked. */
  strays = 0;
  /** Answers that crossed the cancellation on their way. */
  answersAfterCancel = 0;
  notifications = 0;
  questions = 0;
  /** Called with each notification. */
  onNotification = () => {};
  #stdin;
  #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #unfinished = '';
  #outgoing = '';
  #isFlushDue = false;
  #lastId = 0;
  #waiting = new Map();
  #cancelled = new Set();
  /** Progress tokens of what was not answered, by ids. */
  #tokens = new Map();

  constructor({ stdin, stdout }) {
    this.#stdin = stdin;
    stdin.on('error', () => {}); // The end of the gateway follows, and that is what counts.
    stdout.on('data', (chunk) => this.#receive(chunk));
  }

  /** Requests without an answer. */
  get unanswered() {
    return this.#waiting.size;
  }

  /** How long the oldest of them waits. */
  get longestWaitMs() {
    for (const { askedAt } of this.#waiting.values()) return performance.now() - askedAt;
    return 0;
  }

  async initialize(capabilities = {}) {
    const clientInfo = { name: 'soak', version: '1' };
    await this.ask('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo });
    this.#send({ method: 'notifications/initialized' });
  }

  /** Asks and resolves with the result. */
  ask(method, params) {
    return new Promise((resolve, reject) => {
      this.request(method, params, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)));
    });
  }

  /** Calls a tool and resolves with the answer, whatever it is. */
  call(name, args) {
    return new Promise((resolve) => this.request('tools/call', { name, arguments: args }, resolve));
  }

  /** Asks; `onAnswer` is called once, if ever. Returns what `cancel` takes. */
  request(method, params, onAnswer) {
    this.#lastId += 1;
    this.#waiting.set(this.#lastId, { onAnswer, askedAt: performance.now() });
    if (params?._meta !== undefined) this.#tokens.set(this.#lastId, params._meta.progressToken);
    this.#send({ id: this.#lastId, method, params });
    return this.#lastId;
  }

  /** Takes a request back; there is no answer any more, or one that is under way. Returns whether it was in time. */
  cancel(id, params = {}) {
    if (!this.#waiting.delete(id)) return false;
    this.#cancelled.add(id);
    this.#send({ method: 'notifications/cancelled', params: { requestId: id, ...params } });
    return true;
  }

  /** What one turn of the event loop has to say leaves in one write. */
  #send(message) {
    this.#outgoing += `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    setImmediate(() => {
      this.#isFlushDue = false;
      this.#stdin.write(this.#outgoing);
      this.#outgoing = '';
    });
  }

  #receive(chunk) {
    let lines;
    try {
      lines = (this.#unfinished + this.#decoder.decode(chunk, { stream: true })).split('\n');
    } catch {
      this.faults.push('bytes that are not UTF-8');
      return;
    }
    this.#unfinished = lines.pop();
    for (const line of lines) this.#line(line);
  }

  #line(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      this.faults.push(`not JSON: ${line.slice(0, 200)}`);
      return;
    }
    if (message.method === undefined) this.#answer(message);
    else if (message.id === undefined) this.#notified(message, line);
    else this.#refuse(message);
  }

  #notified(message, line) {
    const { method, params } = message;
    this.notifications += 1;
    this.onNotification(message);
    if (method !== 'notifications/progress') return;
    if (![...this.#tokens.values()].includes(params?.progressToken)) this.faults.push(`progress of nothing: ${line}`);
  }

  #refuse({ id, method }) {
    this.questions += 1;
    this.#send({ id, error: { code: -32601, message: `Method not found: ${method}` } });
  }

  #answer(message) {
    const waiting = this.#waiting.get(message.id);
    if (waiting !== undefined) {
      this.#waiting.delete(message.id);
      this.#tokens.delete(message.id);
      waiting.onAnswer(message);
    } else if (this.#cancelled.delete(message.id)) {
      this.answersAfterCancel += 1;
    } else {
      this.strays += 1;
    }
  }
}

/**
 * How a call ended: `answered` by the server with `text`, with an `error`, or by the gateway as `not_sent`, `unknown`
 * or `failed` for a `reason`.
 */
export function outcomeOf({ result, error }) {
  if (error !== undefined) return { kind: 'error', reason: String(error.code) };
  const failure = result?._meta?.['trunkline/failure'];
  if (failure !== undefined) return { kind: failure.outcome, reason: failure.reason, server: failure.server };
  const text = result?.content?.[0]?.text;
  return result?.isError === true ? { kind: 'error', reason: text } : { kind: 'answered', text };
}
