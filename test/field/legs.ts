// The two legs of a row: an official client and the played server, with nothing between them, and with Trunkline.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  Client as Client2,
  StreamableHTTPClientTransport as Http2,
  ReadBuffer as ReadBuffer2,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { ReadBuffer } from '@modelcontextprotocol/sdk/shared/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { pino } from 'pino';
import { vi } from 'vitest';
import { GatewayProcess } from '../../src/app/gateway-process.js';
import { createEraChooser, createPlatform } from '../../src/app/platform.js';
import { openStdioTransport } from '../../src/downstream/stdio/stdio-transport.js';
import { readInto } from '../../src/wire/io/streams/read-into.js';
import { loadAnyConfig } from '../support/load-config.js';
import { dataIn } from '../support/platform.js';
import type { Message } from '../support/wire.js';
import { type Front, FrontClient, openFront, openSdkFront } from './front.js';
import { type HttpPlay, type ListeningPlay, listen } from './http-play.js';
import { guarded, LoginOfSdk, logIn } from './login.js';
import { type Play, type PlayedPipes, playServer, soundResult, tool } from './play.js';
import { PlayedDialer } from './played-dialer.js';
import { FAILS, NO_ANSWER, type Row } from './row.js';

/** The bytes of a connection, seen from the client. */
interface Pipes {
  /** From the client. */
  readonly input: PassThrough;
  /** To the client. */
  readonly output: PassThrough;
}

/** An official client, and the questions that most rows ask. */
export class FieldClient {
  readonly client: Client;
  /** Notifications that came, by method. */
  readonly notified: string[] = [];
  /** Members of errors that the SDK reports outside of requests. */
  readonly errors: Error[] = [];
  /** Without it, requests wait for the timeout of the SDK. */
  readonly #isOver: () => Promise<void>;

  constructor(client: Client, isOver: () => Promise<void>) {
    this.client = client;
    this.#isOver = isOver;
    client.fallbackNotificationHandler = async ({ method }) => void this.notified.push(method);
    client.onerror = (error) => this.errors.push(error);
  }

  /** Resolves with the answer. Rejects if the connection has become quiet without one. */
  async get<T>(answer: Promise<T>): Promise<T> {
    answer.catch(() => {});
    const isOver = this.#isOver().then(() => {
      throw new Error('no answer');
    });
    return await Promise.race([answer, isOver]);
  }

  /** The names of the tools, without those of Trunkline's own. */
  async tools(): Promise<string> {
    const { tools } = await this.get(this.client.listTools());
    return `tools: ${
      tools
        .map(({ name }) => name)
        .filter(isOfServer)
        .join(' ') || 'none'
    }`;
  }

  /** The text that a call of a tool gives. */
  async call(name = 'echo', args: Message = {}, options: Message = {}): Promise<string> {
    const { content, isError } = await this.get(this.client.callTool({ name, arguments: args }, undefined, options));
    const text = (content as Message[]).map((block) => block.text ?? block.type).join(' ');
    return `${name}: ${isError === true ? `${FAILS}: ` : ''}${text}`;
  }

  async prompts(): Promise<string> {
    const { prompts } = await this.get(this.client.listPrompts());
    return `prompts: ${prompts.map(({ name }) => name).join(' ') || 'none'}`;
  }

  async resources(): Promise<string> {
    const { resources } = await this.get(this.client.listResources());
    return `resources: ${resources.map(({ uri }) => uri).join(' ') || 'none'}`;
  }

  async templates(): Promise<string> {
    const { resourceTemplates } = await this.get(this.client.listResourceTemplates());
    return `templates: ${resourceTemplates.map(({ uriTemplate }) => uriTemplate).join(' ') || 'none'}`;
  }
}

function isOfServer(name: string): boolean {
  return !name.startsWith('trunkline__');
}

/** The user of a row without `ask`. */
async function lookAround(client: FieldClient): Promise<string> {
  return `${await client.tools()}; ${await client.call()}`;
}

/** A client that sends bytes of its own. */
export class Wire {
  /** Lines that came, as values. */
  readonly lines: Message[] = [];
  readonly #pipes: Pipes;
  readonly #isOver: () => Promise<void>;
  #rest = '';
  #onLine = () => {};

  constructor(pipes: Pipes, isOver: () => Promise<void>) {
    this.#pipes = pipes;
    this.#isOver = isOver;
    pipes.output.setEncoding('utf8').on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.lines.push(JSON.parse(line));
      this.#onLine();
    });
  }

  /** Writes bytes as they are. */
  write(bytes: string | Uint8Array): void {
    this.#pipes.input.write(bytes);
  }

  say(...messages: unknown[]): void {
    for (const message of messages) this.write(`${JSON.stringify(message)}\n`);
  }

  end(): void {
    this.#pipes.input.end();
  }

  /** Resolves with the first message that fits, or with `undefined` once the connection is quiet. */
  async find(fits: (message: Message) => boolean): Promise<Message | undefined> {
    let isQuiet = false;
    const found = () => this.lines.find(fits);
    const quiet = this.#isOver().then(() => {
      isQuiet = true;
    });
    while (found() === undefined && !isQuiet) {
      const line = new Promise<void>((resolve) => {
        this.#onLine = resolve;
      });
      await Promise.race([line, quiet]);
    }
    return found();
  }

  /** What a request was answered with. */
  async answer(id: unknown): Promise<string> {
    const answer = await this.find((message) => message.id === id && message.method === undefined);
    if (answer === undefined) return `${FAILS}: no answer`;
    const { result, error } = answer;
    if (error !== undefined) return `${FAILS}: ${error.code}`;
    if (result.tools !== undefined)
      return `tools: ${result.tools
        .map(({ name }: Message) => name)
        .filter(isOfServer)
        .join(' ')}`;
    return result.content === undefined ? 'answered' : `echo: ${result.content[0].text}`;
  }

  /** The handshake of a usual client. */
  async hello(protocolVersion: unknown = '2025-11-25'): Promise<string> {
    this.say({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion, ...CLIENT } });
    const hello = await this.answer(0);
    this.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return hello;
  }
}

const CLIENT = { capabilities: {}, clientInfo: { name: 'field', version: '1' } };

/** Bytes of both directions through the transport of an official client, as `StdioClientTransport` has them for a process. */
class PipeTransport {
  onmessage?: (message: Message) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  readonly #pipes: Pipes;

  constructor(pipes: Pipes, buffer: Pick<ReadBuffer, 'append' | 'clear'> & { readMessage(): unknown }) {
    this.#pipes = pipes;
    const read = () => {
      for (;;) {
        try {
          const message = buffer.readMessage();
          if (message === null) return;
          this.onmessage?.(message as Message);
        } catch (error) {
          this.onerror?.(error as Error);
        }
      }
    };
    pipes.output.on('data', (chunk: Buffer) => {
      try {
        buffer.append(chunk);
        read();
      } catch (error) {
        this.onerror?.(error as Error);
        void this.close();
      }
    });
    pipes.output.once('close', () => this.onclose?.());
  }

  async start(): Promise<void> {}

  async send(message: unknown): Promise<void> {
    if (this.#pipes.input.writable) this.#pipes.input.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    this.#pipes.input.end();
    this.#pipes.output.destroy();
  }
}

/** Turns of the event loop without a byte after which nothing more comes: in memory, nothing waits for a timer. */
const QUIET_TURNS = 20;

/** Returns a function whose promise resolves when no stream has moved for some turns. */
function quietOf({ input, output }: Pipes): () => Promise<void> {
  let moves = 0;
  const moved = () => {
    moves += 1;
  };
  return async () => {
    // A stream flows from its first listener on. The first ones are those of the client and the server, which ask for this.
    for (const stream of [input, output]) if (!stream.listeners('data').includes(moved)) stream.on('data', moved);
    for (let [turns, before] = [0, moves]; turns < QUIET_TURNS; turns += 1) {
      await nextTurn();
      if (moves !== before) [turns, before] = [0, moves];
    }
  };
}

/** A wait that is longer than any row takes. The promise of a test that fails ends with its process. */
const FOREVER = () => new Promise<void>(() => {});

/** Runs rows directly, and through one gateway in this process that has a server for each row. */
export class Field {
  readonly #folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  readonly #rows: readonly Row[];
  readonly #listening: ListeningPlay[] = [];
  /** Why logins failed. */
  readonly #failedLogins = new Map<Row, string>();
  #composition: GatewayProcess | undefined;
  #front: Front | undefined;

  constructor(rows: readonly Row[]) {
    this.#rows = rows;
  }

  /**
   * The outcome with nothing between client and server. Over HTTP, a row that gets no answer directly ends with `through`, since
   * only its timeout would end it.
   */
  async direct(row: Row, through: Promise<unknown>): Promise<string> {
    const pipes: Pipes = { input: new PassThrough(), output: new PassThrough() };
    if (row.client !== undefined) {
      const server = sdkServer(row.server ?? {});
      await server.connect(new StdioServerTransport(pipes.input, pipes.output));
      const outcome = await row.client(new Wire(pipes, quietOf(pipes)));
      await server.close();
      return outcome;
    }
    if (row.front !== undefined) {
      const opened = await openSdkFront(() => sdkServer(row.server ?? {}));
      const outcome = await asked(row.front, opened.url);
      await opened.close();
      return outcome;
    }
    const http = httpOf(row);
    if (http !== undefined) {
      const listening = await listen(http);
      try {
        const isOver = row.direct === NO_ANSWER ? () => through.then(() => {}) : FOREVER;
        return await this.#askOverHttp(row, new URL(`${listening.origin}/mcp`), isOver);
      } finally {
        await listening.close();
      }
    }
    const played: PlayedPipes = { stdin: pipes.input, stdout: pipes.output, stderr: new PassThrough() };
    playServer(row.server ?? {}, 1, played, () => pipes.output.destroy());
    return await ask(row, pipes, quietOf(pipes));
  }

  /** Starts the gateway for all rows. */
  async start(): Promise<void> {
    // The vault of logins is in the folder of the user's data.
    for (const [name, value] of Object.entries(dataIn(this.#folder))) vi.stubEnv(name, value);
    const plays = new Map<string, Play>();
    const servers = await Promise.all(
      this.#rows.map(async (row, index) => {
        const key = keyOf(index);
        const http = httpOf(row);
        if (http === undefined) {
          plays.set(key, row.server ?? {});
          // The client that asks for the status has to see the process that answered the row.
          const sharing = row.status === undefined ? {} : { sharing: 'all' };
          return [key, { command: process.execPath, prefix: '', ...sharing, ...row.entry }];
        }
        const listening = await listen(http);
        this.#listening.push(listening);
        return [key, { url: `${listening.origin}/mcp`, prefix: '', ...row.entry }];
      }),
    );
    const earlier = this.#rows.flatMap(({ before }, index) => {
      if (before === undefined) return [];
      plays.set(earlierThan(keyOf(index)), before);
      return [[earlierThan(keyOf(index)), { command: process.execPath, prefix: '' }]];
    });
    const views = this.#rows.map(({ before }, index) => {
      const key = keyOf(index);
      return [key, { servers: before === undefined ? [key] : [earlierThan(key), key] }];
    });
    const file = join(this.#folder, 'trunkline.yaml');
    // All servers start at once, which may take longer on a busy machine than a client usually waits for the first list.
    const gateway = { startupWait: '30s' };
    const config = { gateway, servers: Object.fromEntries([...earlier, ...servers]), views: Object.fromEntries(views) };
    writeFileSync(file, JSON.stringify(config));
    const environment = { ...process.env, HOME: this.#folder };
    const loaded = loadAnyConfig(file, { env: environment, nodePath: process.execPath });
    await Promise.all(
      this.#rows.map(async (row) => {
        const failure = row.login && (await logIn(loaded, this.#key(row)));
        if (failure !== undefined) this.#failedLogins.set(row, failure);
      }),
    );
    this.#composition = new GatewayProcess({
      config: loaded,
      platform: createPlatform(),
      logger: pino({ level: 'silent' }),
      environment,
      runFolder: join(this.#folder, 'run'),
      approvals: {
        approvalsFolder: join(this.#folder, 'approvals'),
        withheldFolder: join(this.#folder, 'withheld'),
        purpose: 'serve',
      },
      openStdio: (options) => new PlayedDialer(options, plays),
    });
    await this.#composition.start();
    if (this.#rows.some(({ front }) => front !== undefined))
      this.#front = await openFront(this.#composition, new Set(this.#rows.map((_, index) => keyOf(index))));
  }

  /** The outcome with Trunkline between client and server. */
  async through(row: Row): Promise<string> {
    const failedLogin = this.#failedLogins.get(row);
    if (failedLogin !== undefined) return `${FAILS}: ${failedLogin}`;
    if (row.front !== undefined) return await asked(row.front, new URL(`/mcp/v/${this.#key(row)}`, this.#front?.url));
    const pipes = this.#connect(row);
    if (row.client === undefined) return await ask(row, pipes, FOREVER);
    return await row.client(new Wire(pipes, FOREVER));
  }

  /** What the status tool says about the server of a row. */
  async status(row: Row): Promise<string> {
    const client = new Client(CLIENT.clientInfo);
    await client.connect(new PipeTransport(this.#connect(row), new ReadBuffer()) as never);
    const { content } = await client.callTool({ name: 'trunkline__status', arguments: { server: this.#key(row) } });
    await client.close();
    return (content as Message[]).map(({ text }) => text).join('\n');
  }

  async end(): Promise<void> {
    await this.#front?.close();
    await this.#composition?.stop({ termAfterMs: 100, killAfterMs: 200 });
    await Promise.all(this.#listening.map((listening) => listening.close()));
    vi.unstubAllEnvs();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #key(row: Row): string {
    return keyOf(this.#rows.indexOf(row));
  }

  /** The bytes of a client that sees the server of this row. */
  #connect(row: Row): Pipes {
    if (this.#composition === undefined) throw new Error('The gateway has not started');
    const { gateway, platform } = this.#composition;
    const pipes: Pipes = { input: new PassThrough(), output: new PassThrough() };
    openStdioTransport({
      read: (reader) => readInto(pipes.input, reader),
      output: pipes.output,
      scan: platform.scan,
      chooseEra: createEraChooser(platform, gateway, { name: 'trunkline', version: '1' }),
      principal: 'local',
      view: this.#key(row),
      origin: undefined,
      messages: platform.messages,
      onInternalError: platform.internalErrors.onInternalError,
      backpressure: platform.backpressure,
      maxLineBytes: 64 * 1024 * 1024,
      clock: platform.clock,
      onEnd: () => pipes.output.destroy(),
    });
    return pipes;
  }

  async #askOverHttp(row: Row, url: URL, isOver: () => Promise<void>): Promise<string> {
    const login = row.login && new LoginOfSdk();
    const open = () =>
      row.sdk === 2
        ? new Http2(url, { ...(login && { authProvider: login }) })
        : new StreamableHTTPClientTransport(url, { ...(login && { authProvider: login }) });
    const first = open();
    const outcome = await askWith(row, first, isOver);
    if (login?.back === undefined) return outcome;
    // The person has logged in.
    try {
      await first.finishAuth((await login.back).searchParams.get('code') ?? '');
    } catch (error) {
      return `${FAILS}: ${firstLine(error)}`;
    }
    return await askWith(row, open(), isOver);
  }
}

/** The played server behind a URL. */
function httpOf({ http, login }: Row): HttpPlay | undefined {
  return login === undefined ? http : guarded(login);
}

async function asked(ask: (client: FrontClient) => Promise<string>, url: URL): Promise<string> {
  const client = new FrontClient(url);
  try {
    return await ask(client);
  } finally {
    client.close();
  }
}

function keyOf(index: number): string {
  return `row${index + 1}`;
}

function earlierThan(key: string): string {
  return `before-${key}`;
}

async function ask(row: Row, pipes: Pipes, isOver: () => Promise<void>): Promise<string> {
  return await askWith(row, new PipeTransport(pipes, row.sdk === 2 ? new ReadBuffer2() : new ReadBuffer()), isOver);
}

async function askWith(row: Row, transport: object, isOver: () => Promise<void>): Promise<string> {
  // The clients of both generations have the methods that rows use.
  const Made = row.sdk === 2 ? Client2 : Client;
  const client = new Made(CLIENT.clientInfo, { capabilities: { ...row.capabilities } }) as Client;
  const asked = new FieldClient(client, isOver);
  try {
    await asked.get(client.connect(transport as never));
    return await (row.ask ?? lookAround)(asked);
  } catch (error) {
    return `${FAILS}: ${firstLine(error)}`;
  } finally {
    await client.close();
  }
}

/** The errors of zod have many lines, and those of one generation differ from those of the other. */
function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  if (/^\s*\[/.test(text) || text.startsWith('Invalid result')) return 'the SDK rejects the answer';
  return text.split('\n', 1)[0]?.replace(/^MCP error -?\d+: /, '') ?? '';
}

/** A server of the official SDK with one tool, for clients that send bytes of their own. */
function sdkServer(play: Play): Server {
  const server = new Server({ name: 'played', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool('echo')] }) as never);
  server.setRequestHandler(CallToolRequestSchema, (request) => soundResult(play, request) as never);
  return server;
}
