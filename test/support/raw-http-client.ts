// The built CLI over HTTP, and clients that record every message as it comes. Use it for tests of sessions and messages;
// `http-place.ts` is for tests of access.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLI, type Message } from './gateway-process.js';
import { killAll, type ProcessEntry, processesWith, until } from './processes.js';

export interface HttpGatewayOptions {
  /** Entries as in the configuration; `program` is a script that Node runs. */
  readonly servers: Record<string, Record<string, unknown> & { readonly program: string }>;
  readonly gateway?: Record<string, unknown>;
  /** Where the user's data is stored, if not in the folder of the run. */
  readonly dataHome?: (folder: string) => string;
  readonly args?: readonly string[];
}

/** The built CLI over HTTP, in a folder of its own, with clients that see every byte. */
export class HttpGateway {
  readonly folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  readonly #clients: RawHttpClient[] = [];
  readonly #environment: Record<string, string | undefined>;
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;
  #stderr = '';

  private constructor({
    servers,
    gateway = {},
    dataHome = (folder) => join(folder, 'data'),
    args = [],
  }: HttpGatewayOptions) {
    const entries = Object.entries(servers).map(([key, { program, ...entry }]) => {
      // The folder is part of every command line, so that what is left of a run can be found.
      return [
        key,
        { ...entry, command: 'node', args: [program, ...((entry.args as string[]) ?? []), `run=${this.folder}`] },
      ];
    });
    const file = join(this.folder, 'trunkline.yaml');
    writeFileSync(file, JSON.stringify({ servers: Object.fromEntries(entries), gateway }));
    this.#environment = { ...process.env, XDG_DATA_HOME: dataHome(this.folder) };
    this.#args = ['--config', file, '--http', '127.0.0.1:0', ...args];
  }

  static async start(options: HttpGatewayOptions): Promise<HttpGateway> {
    const gateway = new HttpGateway(options);
    try {
      await gateway.start();
    } catch (error) {
      // Nobody gets to know it who could end it.
      gateway.#process?.kill('SIGTERM');
      throw error;
    }
    return gateway;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The address that the gateway prints when it listens. */
  get url(): string {
    return /^Trunkline serves (http:\/\/\S+\/mcp)\b/m.exec(this.#stderr)?.[1] ?? '';
  }

  /** What clients have to send. */
  get token(): string {
    return readFileSync(this.dataFile('token'), 'utf8').trim();
  }

  /** A file of the user's data. */
  dataFile(name: string): string {
    return join(this.folder, 'data', 'trunkline', name);
  }

  /** Starts it, and again after `stop`; resolves when it listens. */
  async start(): Promise<void> {
    this.#stderr = '';
    const running = spawn(process.execPath, [CLI, ...this.#args], {
      env: this.#environment,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    running.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.#process = running;
    await until('it listens', () => this.url !== '' || running.exitCode !== null);
    if (this.url === '') throw new Error(`It ended with ${running.exitCode}:\n${this.#stderr}`);
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.leave();
    this.#process?.kill('SIGTERM');
    await until('every process of the run is gone', () => this.processes().length === 0);
  }

  /** A client that has not said anything yet. `key` is the server that it wants to see alone. */
  client(key?: string): RawHttpClient {
    const token = this.#args.includes('--no-auth') ? undefined : this.token;
    const client = new RawHttpClient(key === undefined ? this.url : `${this.url}/${key}`, token);
    this.#clients.push(client);
    return client;
  }

  /** A client that is initialized. */
  async handshake(hello: Hello = {}, key?: string): Promise<RawHttpClient> {
    const client = this.client(key);
    await client.initialize(hello);
    return client;
  }

  /** Ends the session of every client, so that the next test that shares the gateway is alone with it. */
  async endSessions(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.end()));
  }

  /** The running processes of this run, or those among them that have `text` in their command line. */
  processes(text = ''): ProcessEntry[] {
    return processesWith(this.folder).filter(({ args }) => args.includes(text));
  }

  /** To be called at the end of each test, whatever became of it. */
  async dispose(): Promise<void> {
    try {
      await this.stop();
    } finally {
      killAll(this.folder);
      rmSync(this.folder, { recursive: true, force: true });
    }
  }
}

/** What a client sends in `initialize`. */
export interface Hello {
  readonly name?: string;
  readonly revision?: string;
  readonly capabilities?: object;
  /** Whether it opens a GET stream, as most clients do. */
  readonly listens?: boolean;
}

/** One session over HTTP. Server requests and notifications are recorded as they come, from every stream. */
export class RawHttpClient {
  /** Everything but answers, in order. */
  readonly received: Message[] = [];
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #gone = new AbortController();
  #session: string | undefined;
  #lastId = 0;

  constructor(url: string, token: string | undefined) {
    this.#url = url;
    this.#token = token;
  }

  /** Shakes hands; resolves with the answer, which may be an error. */
  async initialize({
    name = 'test',
    revision = '2025-11-25',
    capabilities = {},
    listens = true,
  }: Hello = {}): Promise<Message> {
    const clientInfo = { name, version: '1' };
    const answer = await this.request('initialize', { protocolVersion: revision, capabilities, clientInfo });
    if (answer.error !== undefined) return answer;
    await this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    if (listens) await this.listen();
    return answer;
  }

  /** Sends a request; resolves with its answer, as JSON or from the stream that it came in. */
  async request(method: string, params: object = {}): Promise<Message> {
    this.#lastId += 1;
    const id = this.#lastId;
    const response = await this.post({ jsonrpc: '2.0', id, method, params });
    this.#session ??= response.headers.get('mcp-session-id') ?? undefined;
    let answer: Message | undefined;
    await readMessages(response, (message) => {
      if (message.id === id && message.method === undefined) answer = message;
      else this.received.push(message);
    });
    if (answer === undefined) throw new Error(`No answer to ${method}: ${response.status}`);
    return answer;
  }

  /** The text of a tool's result. */
  async call(name: string, args: object = {}): Promise<string> {
    const { result, error } = await this.request('tools/call', { name, arguments: args });
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return result.content[0].text;
  }

  /** Sends a notification, or an answer. */
  async send(message: Message): Promise<void> {
    const response = await this.post(message);
    if (response.status !== 202) throw new Error(`Not accepted: ${response.status} ${await response.text()}`);
  }

  post(message: Message): Promise<Response> {
    return this.#fetch('POST', JSON.stringify(message));
  }

  /** Opens the GET stream. */
  async listen(): Promise<void> {
    const response = await this.#fetch('GET');
    if (response.status !== 200) throw new Error(`Cannot listen: ${response.status}`);
    // Rejects when we leave.
    readMessages(response, (message) => this.received.push(message)).catch(() => {});
  }

  /** Ends the session. */
  async end(): Promise<void> {
    await this.#fetch('DELETE');
    this.leave();
  }

  /** Goes without a word. */
  leave(): void {
    this.#gone.abort();
  }

  /** Resolves with the first message of this method that came and was not taken yet. */
  async next(method: string): Promise<Message> {
    await until(`${method} comes`, () => this.received.some((message) => message.method === method));
    const at = this.received.findIndex((message) => message.method === method);
    return this.received.splice(at, 1)[0] ?? {};
  }

  #fetch(method: string, body?: string): Promise<Response> {
    const headers = {
      accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
      ...(this.#session === undefined ? {} : { 'mcp-session-id': this.#session }),
    };
    return fetch(this.#url, { method, headers, body: body ?? null, signal: this.#gone.signal });
  }
}

/** Calls `take` with each message of a response, be it JSON or a stream of events. */
async function readMessages(response: Response, take: (message: Message) => void): Promise<void> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    take((await response.json()) as Message);
    return;
  }
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const data = event
        .split('\n')
        .find((line) => line.startsWith('data: '))
        ?.slice(6);
      if (data !== undefined && data !== '') take(JSON.parse(data) as Message);
    }
  }
}
