// One server behind a URL that the test plays. The HTTP is real on both sides; the connections are streams in memory, so that
// `flush` brings all that was sent to the other side, and a clock of the test is the only time.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { configuredAccess } from '../../src/upstream/http/configured-access.js';
import { HttpDialer, type HttpDialerOptions } from '../../src/upstream/http/http-dialer.js';
import { legacyDialect } from '../../src/upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../../src/upstream/modern/era-dialect.js';
import { ServerEra } from '../../src/upstream/server-era.js';
import type {
  Dialed,
  DialOutcome,
  UpstreamConnection,
  UpstreamListener,
} from '../../src/upstream/upstream-connection.js';
import { BufferPool } from '../../src/wire/io/buffer-pool.js';
import { createLineMemory } from '../../src/wire/io/line-decoder.js';
import { MessageFeed } from '../../src/wire/io/message-feed.js';
import { Backpressure } from '../../src/wire/io/streams/backpressure.js';
import { FloodQueue } from '../../src/wire/io/streams/turn-reader.js';
import { unedited } from '../../src/wire/jsonrpc/message.js';
import type { Clock } from '../../src/wire/timing/clock.js';
import { sampleSpec } from '../servers/supervision/sample-spec.js';
import { SILENT_LISTENER } from './in-memory-upstream.js';
import { connectInMemory, memoryAgent } from './memory-network.js';
import { type PeerScript, ScriptedPeer } from './scripted-peer.js';
import { bytesOf, type Message, scan } from './wire.js';

const MIB = 1024 * 1024;

/** What a dialer needs, on a clock. */
export function dialerOptions(clock: Clock): Omit<HttpDialerOptions, 'openAccess' | 'onInternalError'> {
  return {
    ...{ clock, scan, backpressure: new Backpressure(), floods: new FloodQueue(clock), bufferPool: new BufferPool() },
    ...{ unfinishedLines: createLineMemory(Number.POSITIVE_INFINITY), messages: new MessageFeed(() => clock.now()) },
    dialect: new EraDialect({ legacy: legacyDialect, clock, mintId: () => 'minted' }),
  };
}

export interface HttpPeerOptions extends PeerScript {
  readonly clock: Clock;
  /** Capabilities of the clients, as the server is told. */
  readonly clientCapabilities?: Message;
  /** What is known of the server from earlier connections. */
  readonly era?: ServerEra;
  readonly network?: Network;
}

/** The network to a server, and what is in front of it, for all its connections. */
export interface Network {
  /** The fault of all requests until it is mended. */
  fault: HttpFault | undefined;
}

export const HTTP_FAULTS = ['reset', 'forgotten session', 'unauthorized', 'overloaded', 'offline'] as const;
export type HttpFault = (typeof HTTP_FAULTS)[number];

const STATUS = { 'forgotten session': 404, unauthorized: 401, overloaded: 503 } as const;

export class HttpPeer extends ScriptedPeer {
  /** Requests whose headers do not repeat the message as the revision wants it. */
  readonly mismatches: string[] = [];
  /** The session is unknown from now on. */
  isForgotten = false;
  readonly #network: Network;
  readonly #era: ServerEra;
  readonly #clock: Clock;
  readonly #isModern: boolean;
  readonly #capabilities: Message;
  readonly #server = createServer((request, response) => this.#serve(request, response));
  /** The answers that have not ended, by the ids of their requests. */
  readonly #answers = new Map<unknown, ServerResponse>();
  readonly #sockets = new Set<Duplex>();
  /** The stream for what belongs to no request. */
  #standing: ServerResponse | undefined;
  #largeId: unknown;
  #dialed: Dialed | undefined;
  #connection: UpstreamConnection | undefined;

  constructor({ clock, clientCapabilities = {}, era, network = { fault: undefined }, ...script }: HttpPeerOptions) {
    super(script);
    this.#clock = clock;
    this.#isModern = script.isModern ?? false;
    this.#era = era ?? new ServerEra(this.#isModern ? 'modern' : 'legacy');
    this.#network = network;
    this.#capabilities = clientCapabilities;
  }

  override async connect(generation = 1, events: Partial<UpstreamListener> = {}): Promise<UpstreamConnection> {
    const outcome = await this.dial(generation, events);
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    return outcome.connection;
  }

  async dial(generation: number, events: Partial<UpstreamListener>): Promise<DialOutcome> {
    const dialer = new HttpDialer({
      ...dialerOptions(this.#clock),
      createAgent: () => memoryAgent(() => this.#open()),
      openAccess: (spec) => ({
        access: configuredAccess(spec, { clock: this.#clock, keepSecret: () => () => {} }),
        release: () => {},
      }),
      onInternalError: (error) => {
        throw error;
      },
    });
    const { key, timeouts, restart } = sampleSpec();
    const url = 'http://localhost/mcp';
    this.#dialed = dialer.dial(
      {
        ...{ generation, maxFrameBytes: MIB, maxUnwrittenBytes: MIB, paramsOf: () => [], rereadTools: async () => {} },
        spec: { key, timeouts, restart, kind: 'remote', url, transport: 'http', headers: {} },
        profile: Promise.resolve({ clientInfo: {}, capabilities: this.#capabilities }),
        era: this.#era,
        log: {
          add: () => {},
          addJunk: () => {},
          stderr: { freeSpace: new Uint8Array(1), filled: () => {} },
          end: () => {},
        },
      },
      { ...SILENT_LISTENER, ...events },
    );
    const outcome = await this.#dialed.connection;
    if (outcome.kind === 'open') this.#connection = outcome.connection;
    return outcome;
  }

  override get connection(): UpstreamConnection {
    if (this.#connection === undefined) throw new Error('Nobody has connected');
    return this.#connection;
  }

  /** Sends each message on the answer to its request, and others on the stream for all, or on any that is open. */
  override say(...messages: (Message | string)[]): void {
    for (const message of messages) {
      const text = typeof message === 'string' ? message : JSON.stringify(message);
      const { id, method, params }: Message = JSON.parse(text);
      const request = method === undefined ? id : (params?.progressToken ?? params?._meta?.[SUBSCRIPTION]);
      const stream = this.#answers.get(request);
      if (method !== undefined || stream === undefined || stream === this.#standing) {
        this.#write(stream ?? this.#anyStream, text);
        continue;
      }
      this.#answers.delete(id);
      // Both forms of an answer, as servers choose.
      if (stream.headersSent || Number(id) % 2 === 0) this.#write(stream, text);
      else stream.writeHead(200, { ...HEAD, 'content-type': 'application/json' }).write(text);
      stream.end();
    }
  }

  /** Sends a message on the answer to a request. */
  override sayDuring(id: unknown, message: Message | string): void {
    this.#write(this.#answers.get(id), typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** A large request holds the bytes, since a body counts until it is answered. */
  override setReading(isReading: boolean): void {
    if (isReading) this.say({ jsonrpc: '2.0', id: this.#largeId, result: {} });
    else void this.connection.request(LARGE, { text: 'x'.repeat(MIB) }, { idleMs: 60_000, maxMs: 60_000 });
  }

  override canSpeak(request?: unknown): boolean {
    return request === undefined ? this.#anyStream !== undefined : this.#answers.has(request);
  }

  /** Breaks all connections. */
  reset(): void {
    this.#answers.clear();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Sends a comment on each open answer, as servers do that know of proxies. */
  keepAlive(): void {
    const open = [...this.#answers.values(), ...(this.#standing === undefined ? [] : [this.#standing])];
    for (const stream of open) {
      if (!stream.headersSent) stream.writeHead(200, HEAD);
      stream.write(': \n\n');
    }
  }

  /** Ends the session, as a stop of the server does. */
  async end(): Promise<void> {
    await this.#dialed?.end({ termAfterMs: 0, killAfterMs: 0 });
  }

  get #anyStream(): ServerResponse | undefined {
    return this.#standing ?? [...this.#answers.values()].at(-1);
  }

  #open(): Duplex | Error {
    if (this.#network.fault === 'offline') return Object.assign(new Error('offline'), { code: 'ECONNREFUSED' });
    const { near, far } = connectInMemory(this.#server);
    this.#sockets.add(far);
    far.once('close', () => this.#sockets.delete(far));
    return near;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const fault = this.isForgotten ? 'forgotten session' : this.#network.fault;
      if (fault === 'reset') request.socket.destroy();
      else if (fault !== undefined && fault !== 'offline') response.writeHead(STATUS[fault]).end();
      else if (request.method === 'POST') this.#take(Buffer.concat(chunks), request.headers, response);
      else if (request.method === 'GET' && !this.#isModern) this.#stand(response);
      else response.writeHead(405).end();
    });
  }

  #take(body: Buffer, headers: IncomingMessage['headers'], response: ServerResponse): void {
    const { id, method, params }: Message = JSON.parse(body.toString());
    if (method === 'server/discover' && !this.#isModern) return void response.writeHead(400).end();
    // The transport asks whether the session is known. All other pings have an id of the bridge.
    if (method === 'ping' && id === 0)
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"jsonrpc":"2.0","id":0,"result":{}}');
    const given = [headers['mcp-method'], decoded(headers['mcp-name']), headers['mcp-protocol-version']].join();
    const named = method === 'resources/read' ? params.uri : method === 'tools/call' ? params.name : undefined;
    if (this.#isModern && method !== undefined && given !== [method, named, '2026-07-28'].join())
      this.mismatches.push(`${given}: ${body}`);
    if (id === undefined || method === undefined) response.writeHead(202).end();
    else {
      // The stream of the discovery stays open, as that of a server that says more than was asked.
      if (method === 'server/discover' && this.#standing === undefined) this.#stand(response);
      this.#answers.set(id, response);
      response.once('close', () => this.#closed(id, response));
    }
    if (method === LARGE) this.#largeId = id;
    else this.received.send(unedited(body));
  }

  #stand(response: ServerResponse): void {
    this.#standing = response;
    response.writeHead(200, HEAD).flushHeaders();
    response.once('close', () => {
      if (this.#standing === response) this.#standing = undefined;
    });
  }

  /** Without a handshake, the end of an answer that has not come is the cancellation of its request. */
  #closed(id: unknown, response: ServerResponse): void {
    if (this.#answers.get(id) !== response) return;
    this.#answers.delete(id);
    if (!this.#isModern || this.#connection?.isClosed !== false) return;
    const notice = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } };
    this.received.send(unedited(bytesOf(JSON.stringify(notice))));
  }

  #write(stream: ServerResponse | undefined, text: string): void {
    if (stream === undefined) return;
    if (!stream.headersSent) stream.writeHead(200, HEAD);
    stream.write(`data: ${text}\n\n`);
  }
}

const LARGE = 'vendor/large';
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const HEAD = { 'content-type': 'text/event-stream', 'mcp-session-id': 'session-1' };

/** The value of a header that may be Base64 of UTF-8. */
function decoded(header: string | string[] | undefined): string | undefined {
  const [, text] = /^=\?base64\?(.*)\?=$/.exec(String(header)) ?? [];
  return text === undefined ? header?.toString() : Buffer.from(text, 'base64').toString();
}
