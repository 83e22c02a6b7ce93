import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Lines } from './lines.mjs';

const PROBE = import.meta.resolve('./probe.mjs');
const END_WITHIN_MS = 5_000;
const TEXT = 'hello';

/** What a program without a handshake states in each request, with as much of it as Claude Code has. */
const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'claude-code', version: '2.1.0', title: 'Claude Code' },
  'io.modelcontextprotocol/clientCapabilities': { roots: {}, elicitation: { form: {}, url: {} } },
};

/**
 * The measuring client: starts an MCP server as a child process and does as little as possible besides, so that what
 * is measured is the server and what stands before it.
 */
export class Client {
  #child;
  #exit;
  #lines = new Lines();
  #outgoing = '';
  #isReading = false;
  #lastId = 0;
  #waiting = new Map();
  #names = [];
  /** Members that every request has, by the client's era. */
  #params;
  #isClosing = false;
  /** Each ends something that is being waited for when the child ends or says something wrong. */
  #failures = new Set();

  /**
   * With `isProbed`, a Node program tells what it takes of the machine. `era` is the client's. `child` is what runs
   * already, if it does.
   */
  constructor([command, ...args], { isProbed = false, isQuiet = false, era = 'legacy', child } = {}) {
    this.#params = era === 'modern' ? { _meta: MODERN_META } : {};
    const stderr = isQuiet ? 'ignore' : 'inherit';
    this.#child =
      child ??
      (isProbed
        ? spawn(command, [`--import=${PROBE}`, ...args], { stdio: ['pipe', 'pipe', stderr, 'ipc'] })
        : spawn(command, args, { stdio: ['pipe', 'pipe', stderr] }));
    this.#exit = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.once('error', (error) => this.#fail(error));
    this.#child.once('exit', (code, signal) => this.#fail(new Error(`${command} ${args} ended (${code ?? signal})`)));
    this.#child.stdin.on('error', () => {}); // An exit follows, and that is what counts.
    this.#child.stdout.on('data', (chunk) => this.#receive(chunk));
  }

  /** Two clients of one process: the second one's pipe is descriptor 3, both ways. */
  static pair([command, ...args]) {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit', 'pipe'] });
    const pipe = child.stdio[3];
    const second = { stdin: pipe, stdout: pipe, once: child.once.bind(child), kill: child.kill.bind(child) };
    return [child, second].map((each) => new Client([command, ...args], { child: each }));
  }

  get #isModern() {
    return this.#params._meta !== undefined;
  }

  /** Without a handshake, asks what the server is. */
  async initialize() {
    if (this.#isModern) {
      resultOf(await this.#answer('server/discover', {}));
      return;
    }
    const clientInfo = { name: 'bench', version: '1.0.0' };
    const answer = await this.#answer('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    resultOf(answer);
  }

  /** Says that the session is open, and waits until so many tools are listed. */
  async open(count = 1) {
    if (!this.#isModern) this.#send(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
    const deadline = performance.now() + OPEN_WITHIN_MS;
    do {
      this.#names = (await this.list()).map(({ name }) => name);
      if (performance.now() > deadline) throw new Error(`Only ${this.#names.length} tools of ${count} are listed`);
    } while (this.#names.length < count);
  }

  /** All tools. */
  async list() {
    const tools = [];
    let cursor;
    do {
      const page = resultOf(await this.#answer('tools/list', cursor === undefined ? {} : { cursor }));
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  /**
   * The milliseconds until each page of tools was there. Only the ends of a large one are looked at: the garbage of
   * parsed ones would be collected while a later one is awaited, which takes longer than the page itself.
   */
  async timePages() {
    const durations = [];
    let cursor;
    do {
      const sentAt = performance.now();
      const answer = await this.#answer('tools/list', cursor === undefined ? {} : { cursor });
      durations.push(performance.now() - sentAt);
      cursor = isLarge(answer) ? NEXT_CURSOR.exec(answer.head + answer.end)?.[1] : resultOf(answer).nextCursor;
    } while (cursor !== undefined);
    return durations;
  }

  /** What stands before a server's tool in this client's list; a gateway that adds nothing shows it as it is. */
  toolNamed(tool, server) {
    const named = this.#names.filter((name) => name.endsWith(tool));
    const found = named.find((name) => name === tool || name.includes(server));
    if (found === undefined) throw new Error(`There is no tool ${tool} of ${server}`);
    return found;
  }

  /**
   * Calls `echo` `count` times, `inFlight` at a time, with `isApart` each in a write of its own. Resolves with the
   * milliseconds of each call and of the whole.
   */
  echo(tool, { count, inFlight, isApart }) {
    return this.call(tool, `{"text":"${TEXT}"}`, { count, inFlight, isApart, check: isEcho });
  }

  /**
   * Calls a tool, with `args` as JSON, `count` times or until `isOver`. `check` is given each answer, as an object or,
   * if that is large, a line.
   */
  call(tool, args, { count = Number.POSITIVE_INFINITY, inFlight = 1, isApart = false, isOver = () => false, check }) {
    const head = '{"jsonrpc":"2.0","id":';
    const more = this.#isModern ? `,${JSON.stringify(this.#params).slice(1, -1)}` : '';
    const tail = `,"method":"tools/call","params":{"name":"${tool}","arguments":${args}${more}}}\n`;
    const rest = tail.length < LARGE_CHARACTERS ? tail : Buffer.from(tail);
    const durations = [];
    let sent = 0;
    let answered = 0;
    return this.#operation((resolve) => {
      const startedAt = performance.now();
      const next = () => {
        sent += 1;
        const id = this.#nextId();
        const sentAt = performance.now();
        this.#waiting.set(id, (answer) => {
          const answeredAt = performance.now();
          if (!check(answer)) throw new Error(`An answer to ${tool} is not what it should be`);
          durations.push(answeredAt - sentAt);
          answered += 1;
          if (sent < count && !isOver()) next();
          if (answered === sent) resolve({ durations, elapsed: answeredAt - startedAt });
        });
        if (isApart) this.#child.stdin.write(head + id + tail);
        else if (rest === tail) this.#send(head + id + tail);
        else this.#sendLarge(head + id, rest);
      };
      while (sent < Math.min(inFlight, count)) next();
    });
  }

  /** What the probe knows: `cpu`, `resident`, `peak-resident`; `undefined` without one. */
  async ask(what) {
    if (this.#child.channel == null) return undefined;
    this.#child.send(what);
    const [answer] = await once(this.#child, 'message');
    return answer;
  }

  /** Closes the child's stdin, as a host does, and waits until it has ended. */
  async close() {
    this.#isClosing = true;
    this.#child.stdin.end();
    const overdue = setTimeout(() => this.#child.kill('SIGKILL'), END_WITHIN_MS);
    await this.#exit;
    clearTimeout(overdue);
  }

  #answer(method, params) {
    return this.#operation((resolve) => {
      const id = this.#nextId();
      this.#waiting.set(id, resolve);
      this.#send(`${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, ...this.#params } })}\n`);
    });
  }

  #operation(run) {
    return new Promise((resolve, reject) => {
      this.#failures.add(reject);
      const done = (settle) => (value) => {
        this.#failures.delete(reject);
        settle(value);
      };
      run(done(resolve), done(reject));
    });
  }

  #fail(error) {
    if (this.#isClosing) return;
    for (const reject of this.#failures) reject(error);
    this.#failures.clear();
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

  #sendLarge(head, rest) {
    this.#child.stdin.cork();
    this.#child.stdin.write(this.#outgoing + head);
    this.#child.stdin.write(rest);
    this.#child.stdin.uncork();
    this.#outgoing = '';
  }

  #flush() {
    if (this.#outgoing !== '') this.#child.stdin.write(this.#outgoing);
    this.#outgoing = '';
  }

  #receive(chunk) {
    this.#isReading = true;
    try {
      this.#lines.push(chunk, (line) => this.#take(typeof line === 'string' ? JSON.parse(line) : line));
    } catch (error) {
      this.#fail(error);
    }
    this.#isReading = false;
    this.#flush();
  }

  #take(answer) {
    const settle = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    settle?.(answer);
  }
}

const OPEN_WITHIN_MS = 60_000;
const LARGE_CHARACTERS = 16 * 1024;
const NEXT_CURSOR = /"nextCursor":"([^"]+)"/;

function isLarge(answer) {
  return typeof answer.text === 'function';
}

function resultOf(answer) {
  const { result, error } = isLarge(answer) ? JSON.parse(answer.text()) : answer;
  if (error) throw new Error(error.message);
  return result;
}

function isEcho({ result }) {
  return result?.content?.[0]?.text === TEXT;
}
