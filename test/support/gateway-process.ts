// The built CLI over stdio, as a host starts it, and a client that sees every byte of stdout.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dataIn } from './platform.js';
import { endRun, PATIENCE_MS, type ProcessEntry, processesWith } from './processes.js';

export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
export const LAB = fileURLToPath(new URL('../fixtures/servers/lab.mjs', import.meta.url));

/** A message as it came, and as JSON. */
export interface Received {
  readonly raw: string;
  readonly message: Message;
  /** Milliseconds on the clock of `performance.now()`. */
  readonly at: number;
}

/** Between two requests for the status: the processor is left to what the test waits for. */
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape.
export type Message = Record<string, any>;

export interface StartOptions {
  /** Entries as in the configuration; without `command` or `package` the lab server, or `program`, runs with `args`. */
  readonly servers: Record<string, Record<string, unknown>>;
  readonly gateway?: Record<string, unknown>;
  /** Further members of the configuration. */
  readonly config?: Record<string, unknown>;
  /** `RUN` in them is the folder of the run. */
  readonly args?: readonly string[];
  /** Command that starts the CLI, given its command line; such as a shell that sets limits first. */
  readonly via?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The folder of an earlier run, whose configuration and cache this run uses. */
  readonly folder?: string;
  /** In a session and process group of its own, as a terminal would start it. */
  readonly detached?: boolean;
  /** Lines may be no messages, because a message was cut off: they are in `broken`. */
  readonly mayBreak?: boolean;
}

/** How long a first list waits for servers. The default is too short for a busy machine, on which it would lack some. */
export const STARTUP_WAIT = '30s';

/** The built CLI and a client that sees every byte of it: what is sent and received is text, so that nothing is repaired on the way. */
export class GatewayProcess {
  /** Every line of stdout, in order. */
  readonly received: Received[] = [];
  /** The lines that are no messages, if there may be some. */
  readonly broken: string[] = [];
  readonly #mayBreak: boolean;
  readonly folder: string;
  /** The configuration. */
  readonly file: string;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<string, (received: Received) => void>();
  readonly #exited: Promise<number | null>;
  #stderr = '';
  #partial: Buffer[] = [];
  #lastId = 0;

  private constructor(options: StartOptions) {
    const { servers, gateway = {}, args = [], via = [], env = {}, detached = false, folder } = options;
    this.#mayBreak = options.mayBreak ?? false;
    // Part of every command line below, so that what is left of a run can be found.
    this.folder = folder ?? mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
    this.file = join(this.folder, 'trunkline.yaml');
    this.configure(servers, gateway, options.config);
    const own = args.map((arg) => arg.replaceAll('RUN', this.folder));
    const [program = '', ...parameters] = [...via, process.execPath, CLI, '--config', this.file, ...own];
    this.#process = spawn(program, parameters, {
      env: { ...process.env, ...dataIn(join(this.folder, 'data')), ...env },
      detached,
    });
    this.#process.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#process.stderr.on('data', (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    this.#process.stdin.on('error', () => {});
    this.#exited = new Promise((resolve) => this.#process.once('exit', (code) => resolve(code)));
  }

  /** Starts it and, unless told not to, shakes hands. */
  static async start(options: StartOptions, { handshake = true } = {}): Promise<GatewayProcess> {
    const gateway = new GatewayProcess(options);
    if (handshake) await gateway.initialize();
    return gateway;
  }

  /** Writes the configuration, in one step as careful editors do. */
  configure(servers: StartOptions['servers'], gateway: StartOptions['gateway'] = {}, config: object = {}): void {
    const entries = Object.entries(servers).map(([key, entry]) => {
      if ('command' in entry || 'package' in entry || 'url' in entry) return [key, entry];
      const { program = LAB, args: given = [], ...rest } = entry;
      return [key, { ...rest, command: 'node', args: [program, ...(given as string[]), `run=${this.folder}`] }];
    });
    const patient = { startupWait: STARTUP_WAIT, ...gateway };
    this.writeConfig(JSON.stringify({ ...config, servers: Object.fromEntries(entries), gateway: patient }));
  }

  /** The same with any text. */
  writeConfig(text: string): void {
    writeFileSync(`${this.file}.new`, text);
    renameSync(`${this.file}.new`, this.file);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get exited(): Promise<number | null> {
    return this.#exited;
  }

  async initialize(protocolVersion = '2025-11-25', capabilities: object = {}): Promise<Received> {
    const clientInfo = { name: 'test', version: '1' };
    const received = await this.request('initialize', { protocolVersion, capabilities, clientInfo });
    this.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    return received;
  }

  /** One line, as it is. */
  send(line: string): void {
    this.write(`${line}\n`);
  }

  /** Any text. */
  write(text: string): void {
    this.#process.stdin.write(text);
  }

  /** Resolves with the answer; `params` may be text that is JSON already. */
  request(method: string, params?: unknown, id: string = String(++this.#lastId)): Promise<Received> {
    const body = typeof params === 'string' ? params : JSON.stringify(params ?? {});
    const answered = new Promise<Received>((resolve) => this.#waiting.set(id, resolve));
    this.send(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${body}}`);
    return answered;
  }

  call(name: string, args: Message = {}): Promise<Received> {
    return this.request('tools/call', { name, arguments: args });
  }

  async listTools(): Promise<Message[]> {
    return (await this.request('tools/list')).message.result.tools;
  }

  /** Everything that the status tells of one server. */
  async status(server: string): Promise<Message> {
    return (await this.call('trunkline__status', { server })).message.result.structuredContent.servers[0];
  }

  /** The overview of all servers, which has only what differs from healthy, once it is as it should be. */
  async untilStatus(what: string, isSo: (status: Message) => boolean): Promise<Message> {
    const overview = async () => (await this.call('trunkline__status')).message.result.structuredContent;
    return await this.#once(what, overview, isSo);
  }

  /** Everything that the status tells of one server, once it is as it should be. */
  async untilServer(server: string, what: string, isSo: (status: Message) => boolean): Promise<Message> {
    return await this.#once(`${server}: ${what}`, () => this.status(server), isSo);
  }

  async untilState(server: string, state: string): Promise<Message> {
    return await this.untilServer(server, `is ${state}`, (status) => status.state === state);
  }

  /** Empties `received`, so that a test that shares the gateway sees only what comes from now on. */
  forget(): void {
    this.received.length = 0;
  }

  notifications(method: string): Received[] {
    return this.received.filter(({ message }) => message.method === method);
  }

  /** Closes stdin, as a host does, and waits for the end; resolves with the exit code. */
  async close(): Promise<number | null> {
    const code = await this.end();
    rmSync(this.folder, { recursive: true, force: true });
    return code;
  }

  /** The same, and leaves its folder there for the next run. */
  async end(): Promise<number | null> {
    this.#process.stdin.end();
    return await this.#exited;
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  pauseReading(): void {
    this.#process.stdout.pause();
  }

  /** Bytes that wait on our side of the pipe while reading is paused. */
  get unreadBytes(): number {
    return this.#process.stdout.readableLength;
  }

  resumeReading(): void {
    this.#process.stdout.resume();
  }

  /** The running processes of this run. */
  leftovers(): ProcessEntry[] {
    return processesWith(this.folder);
  }

  /** To be called at the end of each test, whatever became of it. */
  async dispose(): Promise<void> {
    await this.end();
    await endRun(this.folder);
  }

  async #once(what: string, look: () => Promise<Message>, isSo: (status: Message) => boolean): Promise<Message> {
    for (const deadline = performance.now() + PATIENCE_MS; performance.now() < deadline; ) {
      const status = await look();
      if (isSo(status)) return status;
      await pause();
    }
    throw new Error(`Waited in vain: ${what}; stderr:\n${this.#stderr}`);
  }

  #read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      const pieces = [...this.#partial, chunk.subarray(start, end)];
      this.#partial = [];
      this.#receive(Buffer.concat(pieces).toString());
      start = end + 1;
    }
    this.#partial.push(chunk.subarray(start));
  }

  #receive(raw: string): void {
    if (this.#mayBreak && !isJson(raw)) {
      this.broken.push(raw);
      return;
    }
    const received = { raw, message: JSON.parse(raw) as Message, at: performance.now() };
    this.received.push(received);
    if (received.message.method !== undefined) return;
    const id = JSON.stringify(received.message.id);
    this.#waiting.get(id)?.(received);
    this.#waiting.delete(id);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
