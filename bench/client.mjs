import { spawn } from 'node:child_process';

const TEXT = 'hello';
const END_WITHIN_MS = 5_000;

/**
 * The measuring client: starts an MCP server as a child process and does as little as possible besides, so that what
 * is measured is the server and what stands before it.
 */
export class Client {
  #child;
  #exit;
  #unfinished = '';
  #outgoing = '';
  #isReading = false;
  #lastId = 0;
  #waiting = new Map();
  /** Ends whatever is being waited for when the child ends or says something wrong. */
  #fail = () => {};

  constructor([command, ...args]) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exit = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.once('error', (error) => this.#fail(error));
    this.#child.once('exit', (code, signal) => this.#fail(new Error(`${args[0]} ended (${code ?? signal})`)));
    this.#child.stdin.on('error', () => {}); // An exit follows, and that is what counts.
    this.#child.stdout.setEncoding('utf8');
    this.#child.stdout.on('data', (text) => this.#receive(text));
  }

  async initialize() {
    const clientInfo = { name: 'bench', version: '1.0.0' };
    await this.#request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  }

  /** Says that the session is open, and waits until the tool can be called. */
  async open(tool) {
    this.#send(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
    const { tools } = await this.#request('tools/list', {});
    if (!tools.some(({ name }) => name === tool)) throw new Error(`There is no tool ${tool}`);
  }

  /** Calls a tool `count` times, `inFlight` at a time. Resolves with the milliseconds of each call and of the whole. */
  call(tool, { count, inFlight }) {
    const head = '{"jsonrpc":"2.0","id":';
    const tail = `,"method":"tools/call","params":{"name":"${tool}","arguments":{"text":"${TEXT}"}}}\n`;
    const durations = new Float64Array(count);
    let sent = 0;
    let answered = 0;
    return this.#operation((resolve) => {
      const startedAt = performance.now();
      const next = () => {
        const index = sent;
        sent += 1;
        const id = this.#nextId();
        const sentAt = performance.now();
        this.#waiting.set(id, ({ result }) => {
          const answeredAt = performance.now();
          if (result?.content?.[0]?.text !== TEXT) throw new Error('An answer is not the echo of its call');
          durations[index] = answeredAt - sentAt;
          answered += 1;
          if (sent < count) next();
          if (answered === count) resolve({ durations, elapsed: answeredAt - startedAt });
        });
        this.#send(head + id + tail);
      };
      while (sent < Math.min(inFlight, count)) next();
    });
  }

  /** Closes the child's stdin, as a host does, and waits until it has ended. */
  async close() {
    this.#fail = () => {};
    this.#child.stdin.end();
    const overdue = setTimeout(() => this.#child.kill('SIGKILL'), END_WITHIN_MS);
    await this.#exit;
    clearTimeout(overdue);
  }

  #request(method, params) {
    return this.#operation((resolve, reject) => {
      const id = this.#nextId();
      this.#waiting.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)));
      this.#send(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }

  #operation(run) {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      run(resolve, reject);
    });
  }

  #nextId() {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** What answers to one chunk cause to be sent goes out as one write. */
  #send(line) {
    this.#outgoing += line;
    if (!this.#isReading) this.#flush();
  }

  #flush() {
    if (this.#outgoing !== '') this.#child.stdin.write(this.#outgoing);
    this.#outgoing = '';
  }

  #receive(text) {
    this.#isReading = true;
    const lines = (this.#unfinished + text).split('\n');
    this.#unfinished = lines.pop();
    try {
      for (const line of lines) this.#take(JSON.parse(line));
    } catch (error) {
      this.#fail(error);
    }
    this.#isReading = false;
    this.#flush();
  }

  #take(message) {
    const settle = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    settle?.(message);
  }
}
