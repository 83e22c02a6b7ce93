// The built CLI over HTTP, in a folder of its own, with the official client, with a client that records every message, and
// with raw requests.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import * as http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect } from 'vitest';
import { dataFolder } from '../../src/state/user-files.js';
import { HttpWire } from './differential/http-wire.js';
import { CLI, LAB, type Message, STARTUP_WAIT } from './gateway-process.js';
import { dataIn } from './platform.js';
import { endRun, type ProcessEntry, processesWith, until } from './processes.js';

/** Headers of a request; one that is `undefined` is left out. */
export type Headers = Readonly<Record<string, string | undefined>>;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServeOptions {
  /** Program that runs instead of the built CLI. */
  readonly program?: string;
  readonly servers?: Record<string, object>;
  readonly gateway?: object;
  readonly address?: readonly string[];
  readonly args?: readonly string[];
  /** In place of `servers` and `gateway`: the configuration file. */
  readonly config?: string;
}

/** Without a method it is a POST, without a path to all servers. */
export interface RawRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Headers;
  readonly body?: string | Buffer;
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

/**
 * A folder for one test, which holds the configuration and the user's data, and all that runs in it: the built CLI as it
 * serves HTTP, and clients.
 */
export class Place {
  /** Part of every command line, so that what is left of a run can be found. */
  readonly folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  readonly environment = {
    ...process.env,
    ...{ ...dataIn(this.file('data')), HOME: this.folder, TRUNKLINE_HUB_DIR: this.file('h') },
  };
  readonly #clients: Client[] = [];
  readonly #running: Running[] = [];

  file(name: string): string {
    return join(this.folder, name);
  }

  get tokenFile(): string {
    const { platform } = process;
    return join(dataFolder({ env: this.environment, home: this.folder, platform }), 'token');
  }

  get token(): string {
    return readFileSync(this.tokenFile, 'utf8').trim();
  }

  server(program: string, ...args: string[]): { readonly command: string; readonly args: string[] } {
    return { command: 'node', args: [program, ...args, `run=${this.folder}`] };
  }

  lab(...args: string[]): object {
    return this.server(LAB, ...args);
  }

  /** Returns the arguments that name the configuration. Without another value in `gateway`, SIGTERM waits for no call. */
  configure(servers: Record<string, object>, gateway: object = {}): string[] {
    const file = this.file('trunkline.yaml');
    writeFileSync(file, JSON.stringify({ servers, gateway: { drain: '0s', startupWait: STARTUP_WAIT, ...gateway } }));
    return ['--config', file];
  }

  /** Resolves when it listens. */
  async serve({
    program,
    servers = { lab: this.lab() },
    gateway = {},
    address = ['--http', '127.0.0.1:0'],
    args = [],
    config,
  }: ServeOptions = {}): Promise<Running> {
    const configured = config === undefined ? this.configure(servers, gateway) : ['--config', config];
    const running = this.start([...configured, ...address, ...args], program);
    await running.untilListening();
    return running;
  }

  /** Runs the CLI to its end. */
  async run(args: readonly string[]): Promise<Finished> {
    const running = this.start(args);
    running.process.stdin.end();
    return await running.finished;
  }

  async connect(running: Running): Promise<Client> {
    const client = new Client({ name: 'test', version: '1' });
    this.#clients.push(client);
    const headers = { authorization: `Bearer ${this.token}` };
    const transport = new StreamableHTTPClientTransport(new URL(running.url), { requestInit: { headers } });
    // Its `sessionId` lacks the `undefined` that our strictness asks for.
    await client.connect(transport as Parameters<Client['connect']>[0]);
    return client;
  }

  /** Begins a session whose messages are all recorded. */
  async handshake(running: Running, hello: Hello = {}): Promise<RawHttpClient> {
    const client = new RawHttpClient(running.url, this.token);
    await client.initialize(hello);
    return client;
  }

  /** Begins a session; resolves with the header that belongs to it. */
  async initialize(running: Running): Promise<{ 'mcp-session-id': string }> {
    const response = await this.post(running, INITIALIZE);
    const session = { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' };
    const accepted = await this.post(running, { jsonrpc: '2.0', method: 'notifications/initialized' }, session);
    expect([response.status, accepted.status]).toEqual([200, 202]);
    return session;
  }

  post(running: Running, message: object, headers: Headers = {}): Promise<Response> {
    return fetch(running.url, { method: 'POST', headers: this.headers(headers), body: JSON.stringify(message) });
  }

  /** Status of the answer to `initialize`. */
  async statusOf(running: Running, headers: Headers): Promise<number> {
    return (await this.send(running, { headers, body: JSON.stringify(INITIALIZE) })).status;
  }

  /** Sends anything on a connection of its own; unlike `fetch`, this can claim any `Host`. */
  async send(running: Running, { method = 'POST', path = '/mcp', headers = {}, body }: RawRequest): Promise<Answer> {
    const request = http.request({
      host: '127.0.0.1',
      port: running.port,
      path,
      method,
      agent: false,
      headers: this.headers(headers),
    });
    // An answer that comes before all was sent may break the connection off.
    request.on('error', () => {});
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() };
  }

  /** Headers of any well-behaved client. Set a header to `undefined` to leave it out. */
  headers(more: Headers = {}): Record<string, string> {
    const headers: Headers = {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(existsSync(this.tokenFile) ? { authorization: `Bearer ${this.token}` } : {}),
      ...more,
    };
    return Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => !!entry[1]));
  }

  /** The running processes of this place. */
  leftovers(): ProcessEntry[] {
    return processesWith(this.folder);
  }

  /** Ends everything, and fails when something did not end in an orderly way. */
  async dispose(): Promise<void> {
    try {
      await Promise.all(this.#clients.map((client) => client.close()));
      for (const { process: running } of this.#running) running.kill('SIGTERM');
    } finally {
      await endRun(this.folder);
    }
    await Promise.all(this.#running.map(({ finished }) => finished));
  }

  /** Starts the CLI, or another program, with these arguments. */
  start(args: readonly string[], program = CLI, env: Readonly<Record<string, string>> = {}): Running {
    const running = new Running(spawn(process.execPath, [program, ...args], { env: { ...this.environment, ...env } }));
    this.#running.push(running);
    return running;
  }
}

/** The built CLI while it runs. */
export class Running {
  readonly process: ChildProcessWithoutNullStreams;
  readonly finished: Promise<Finished>;
  #stdout = '';
  #stderr = '';

  constructor(child: ChildProcessWithoutNullStreams) {
    this.process = child;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    child.stdin.on('error', () => {});
    this.finished = new Promise((resolve) => {
      child.once('close', (code) => resolve({ code, stdout: this.#stdout, stderr: this.#stderr }));
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The address that the gateway prints when it listens. */
  get url(): string {
    return /^Trunkline serves (https?:\/\/\S+\/mcp)\b/m.exec(this.#stderr)?.[1] ?? '';
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async untilListening(): Promise<void> {
    await until('it listens', () => this.url !== '' || this.process.exitCode !== null);
    if (this.url === '') throw new Error(`It ended with ${this.process.exitCode}:\n${this.#stderr}`);
  }

  async untilReady(): Promise<void> {
    await expect.poll(async () => (await this.probe('/readyz')).status).toBe(200);
  }

  async probe(path: string): Promise<{ status: number; text: string }> {
    const response = await fetch(new URL(path, this.url));
    return { status: response.status, text: await response.text() };
  }

  /** Sends a request to stdin; resolves with the answer. */
  async say(request: Message): Promise<Message> {
    this.process.stdin.write(`${JSON.stringify(request)}\n`);
    let answer: Message | undefined;
    await until(`an answer to ${request.id}`, () => {
      const lines = this.#stdout.split('\n').slice(0, -1);
      answer = lines.map((line) => JSON.parse(line) as Message).find(({ id }) => id === request.id);
      return answer !== undefined;
    });
    return answer ?? {};
  }
}

/** Members of a client's `initialize`. */
export interface Hello {
  readonly name?: string;
  readonly revision?: string;
  readonly capabilities?: object;
}

/** One session over HTTP. Server requests and notifications are recorded as they come, from every stream. */
export class RawHttpClient {
  /** Everything but answers, in order. */
  readonly received: Message[] = [];
  readonly #wire: HttpWire;
  readonly #answers = new Map<unknown, Message>();
  #lastId = 0;

  constructor(url: string, token: string) {
    const take = (text: string) => {
      const message = JSON.parse(text) as Message;
      if (message.method === undefined) this.#answers.set(message.id, message);
      else this.received.push(message);
    };
    this.#wire = new HttpWire(url, take, token);
  }

  /** Shakes hands, and opens the GET stream. */
  async initialize({ name = 'test', revision = '2025-11-25', capabilities = {} }: Hello = {}): Promise<void> {
    const clientInfo = { name, version: '1' };
    await this.request('initialize', { protocolVersion: revision, capabilities, clientInfo });
    await this.#wire.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    await this.#wire.listen();
  }

  /** Sends a request; resolves with its answer. */
  async request(method: string, params: object = {}): Promise<Message> {
    this.#lastId += 1;
    const id = this.#lastId;
    await this.#wire.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    const answer = this.#answers.get(id);
    if (answer === undefined) throw new Error(`No answer to ${method}`);
    return answer;
  }

  /** Answers a server request. */
  async respond(id: unknown, result: object): Promise<void> {
    await this.#wire.send(JSON.stringify({ jsonrpc: '2.0', id, result }));
  }

  /** The text of a tool's result. */
  async call(name: string, args: object = {}): Promise<string> {
    const { result, error } = await this.request('tools/call', { name, arguments: args });
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return result.content[0].text;
  }

  /** Ends the session. */
  async end(): Promise<void> {
    await this.#wire.close();
  }

  /** Resolves with the first message of this method that came and was not taken yet. */
  async next(method: string): Promise<Message> {
    await until(`${method} comes`, () => this.received.some((message) => message.method === method));
    const at = this.received.findIndex((message) => message.method === method);
    return this.received.splice(at, 1)[0] ?? {};
  }
}
