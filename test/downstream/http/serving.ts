import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import { onTestFinished } from 'vitest';
import { HTTP_SETTINGS, settingsOf } from '../../../src/config/schema/settings.js';
import type { HttpBind } from '../../../src/downstream/http/bind.js';
import type { HttpUsers } from '../../../src/downstream/http/caller.js';
import { FIXED_LIMITS, type HttpLimits } from '../../../src/downstream/http/limits.js';
import { SealedIds } from '../../../src/downstream/http/sealed-ids.js';
import { type Decorate, type HttpTransport, openHttpTransport } from '../../../src/downstream/http/server.js';
import type { SessionRecords, SessionState } from '../../../src/downstream/http/session-records.js';
import type { GatewayEvent } from '../../../src/host/observe/events/events.js';
import { FairMemory } from '../../../src/wire/io/shared-limit.js';
import { FakeClock } from '../../support/fake-clock.js';
import { type Message, scan } from '../../support/wire.js';
import { EventReader } from './event-reader.js';
import { ScriptedCore } from './scripted-core.js';

export const TOKEN = 'a-token-for-tests-of-sufficient-length';
export const OTHER_TOKEN = 'another-token-for-tests-long-enough-too';

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

export type Headers = Readonly<Record<string, string | undefined>>;

/** The limits of a gateway whose configuration sets none. */
export const DEFAULT_LIMITS: HttpLimits = { ...FIXED_LIMITS, ...settingsOf(HTTP_SETTINGS) };

/** Ids of a process with this name. All processes of the tests have the same keys unless a test says otherwise. */
export function idsOf(
  instance: string,
  { key = 1, now = () => 0 }: { key?: number; now?: () => number } = {},
): SealedIds {
  const keys = [Buffer.alloc(32, key)] as const;
  return new SealedIds({ sessionKeys: keys, eventKeys: keys, instance, now });
}

/** The records of sessions that all processes of a cluster share. */
export class SharedRecords implements SessionRecords {
  readonly states = new Map<string, SessionState | 'deleted'>();
  writes = 0;

  read(id: string): Promise<SessionState | 'deleted' | undefined> {
    return Promise.resolve(this.states.get(id));
  }

  write(id: string, { level, uris }: SessionState): void {
    this.writes += 1;
    this.states.set(id, { level, uris });
  }

  delete(id: string): Promise<void> {
    this.states.set(id, 'deleted');
    return Promise.resolve();
  }
}

/** A transport on a free port with a scripted core and a clock that stands still. */
export async function serving({
  limits = {},
  bind = {},
  requestBodies = new FairMemory(0),
  clock = new FakeClock(),
  ids = idsOf('aaaaaaaaaa', { now: () => clock.now() }),
  users,
  core = new ScriptedCore(),
  records,
  readMetrics,
  decorate,
}: {
  limits?: Partial<HttpLimits>;
  bind?: Partial<HttpBind>;
  requestBodies?: FairMemory;
  clock?: FakeClock;
  ids?: SealedIds;
  users?: HttpUsers;
  core?: ScriptedCore;
  records?: SessionRecords;
  readMetrics?: () => Promise<string>;
  decorate?: Decorate;
} = {}): Promise<Serving> {
  const events: GatewayEvent[] = [];
  const front = await openHttpTransport({
    core,
    clock,
    scan,
    bind: {
      host: '127.0.0.1',
      port: 0,
      tokens: [TOKEN, OTHER_TOKEN],
      noAuth: false,
      allowedHosts: [],
      allowedOrigins: [],
      ...bind,
    },
    limits: { ...DEFAULT_LIMITS, ...limits },
    requestBodies,
    ids,
    records,
    users,
    readMetrics,
    decorate,
    events: { wants: () => true, emit: (event) => events.push(event) },
  });
  const served = new Serving({ front, core, clock, events, ids });
  onTestFinished(() => served.close());
  return served;
}

/** Opens a transport, and a session at it. */
export async function inSession(revision?: string, options?: Parameters<typeof serving>[0]) {
  const http = await serving(options);
  return { http, session: await http.initialize(revision) };
}

type Parts = Pick<Serving, 'front' | 'core' | 'clock' | 'events' | 'ids'>;

export class Serving {
  readonly front: HttpTransport;
  readonly core: ScriptedCore;
  readonly clock: FakeClock;
  readonly events: GatewayEvent[];
  readonly ids: SealedIds;
  readonly #sockets = new Set<net.Socket>();

  constructor({ front, core, clock, events, ids }: Parts) {
    this.front = front;
    this.core = core;
    this.clock = clock;
    this.events = events;
    this.ids = ids;
  }

  /** The id of an event of this process, without the requests of its stream. */
  eventId(stream: number, seq: number): string {
    return `${stream}.${seq}.${this.ids.instance}`;
  }

  /** Headers of a well-behaved client. Set a header to `undefined` to leave it out. */
  headers(more: Headers = {}): http.OutgoingHttpHeaders {
    const headers: Headers = {
      host: `127.0.0.1:${this.front.port}`,
      authorization: `Bearer ${TOKEN}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...more,
    };
    return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  }

  /** The head of a request, exactly as it is sent. */
  head(method: string, more: Headers = {}): string {
    const headers = Object.entries(this.headers(more)).map(([name, value]) => `${name}: ${value}\r\n`);
    return `${method} /mcp HTTP/1.1\r\n${headers.join('')}\r\n`;
  }

  /** Sends a request on a connection of its own; resolves with the head of the response. */
  async begin(method: string, path: string, headers: Headers, body?: string | Buffer): Promise<http.IncomingMessage> {
    const request = http.request({
      host: '127.0.0.1',
      port: this.front.port,
      agent: false,
      method,
      path,
      headers: this.headers(headers),
    });
    request.on('socket', (socket) => this.#sockets.add(socket));
    // An error after the response has begun ends the reading of the response, too.
    request.on('error', () => {});
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return response;
  }

  async send(method: string, path: string, headers: Headers = {}, body?: string | Buffer): Promise<Answer> {
    return readAnswer(await this.begin(method, path, headers, body));
  }

  post(message: Message | string, headers: Headers = {}, path = '/mcp'): Promise<Answer> {
    return this.send('POST', path, headers, typeof message === 'string' ? message : JSON.stringify(message));
  }

  async postForEvents(message: Message | string, headers: Headers = {}): Promise<EventReader> {
    const body = typeof message === 'string' ? message : JSON.stringify(message);
    return new EventReader(await this.begin('POST', '/mcp', headers, body));
  }

  async listen(headers: Headers): Promise<EventReader> {
    return new EventReader(await this.begin('GET', '/mcp', headers));
  }

  /** Begins a session; resolves with the headers that belong to it. */
  async initialize(
    revision = '2025-06-18',
    headers: Headers = {},
    path = '/mcp',
  ): Promise<{ 'mcp-session-id': string }> {
    const answer = await this.post(initializeRequest(revision), headers, path);
    const id = answer.headers['mcp-session-id'];
    if (typeof id !== 'string') throw new Error(`No session: ${answer.status} ${answer.text}`);
    return { 'mcp-session-id': id };
  }

  /** A connection for arbitrary bytes. */
  async connect(): Promise<net.Socket> {
    const socket = net.connect(this.front.port, '127.0.0.1');
    socket.on('error', () => {});
    this.#sockets.add(socket);
    await once(socket, 'connect');
    return socket;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.front.close();
  }
}

export function initializeRequest(protocolVersion: string): Message {
  return {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  };
}

export function request(id: number | string, method = 'tools/call', params: Message = {}): Message {
  return { jsonrpc: '2.0', id, method, params };
}

export function notification(method: string, params: Message = {}): Message {
  return { jsonrpc: '2.0', method, params };
}

export async function readAnswer(response: http.IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() };
}

/** All bytes until the other side closes. */
export async function readToEnd(socket: net.Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!socket.closed) await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}
