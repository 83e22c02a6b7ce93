import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../../src/host/observe/system-clock.js';
import type { RemoteSpec } from '../../../src/spec/server-spec.js';
import type { AccessHeaders } from '../../../src/upstream/http/access.js';
import { configuredAccess } from '../../../src/upstream/http/configured-access.js';
import { HttpDialer, type RemoteTarget } from '../../../src/upstream/http/http-dialer.js';
import { type EraName, ServerEra } from '../../../src/upstream/server-era.js';
import type { Dialed, ServerRequest, UpstreamConnection } from '../../../src/upstream/upstream-connection.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import type { Clock } from '../../../src/wire/timing/clock.js';
import { sampleSpec } from '../../servers/supervision/sample-spec.js';
import { dialerOptions } from '../../support/http-peer.js';
import { SILENT_LISTENER } from '../../support/in-memory-upstream.js';
import { connectInMemory, memoryAgent } from '../../support/memory-network.js';
import { type Message, requestOf } from '../../support/wire.js';
import { Listener } from '../stdio/bridging.js';

export interface Got {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  /** The message in the body; empty without one. */
  readonly message: Message;
  readonly response: ServerResponse;
}

type Answer = (got: Got) => unknown;

export const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 's', version: '1' },
};
const DISCOVERED = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } };
const servers: Server[] = [];
const dialed: Dialed[] = [];

/** A server on a port of its own, that the test plays. `answer` gets every request that the handshake does not answer. */
export async function serve(answer: Answer, era: EraName = 'legacy') {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const message = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      const { method = '', url = '', headers } = request;
      const one = { method, url, headers, message, response };
      got.push(one);
      if (answer(one) === undefined) shakeHands(one, era);
    });
  });
  server.on('error', () => {});
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  /** The requests with a message of this method, or with this HTTP method. */
  const of = (method: string) => got.filter((one) => one.message.method === method || one.method === method);
  return { server, origin, got, of };
}

/** What a server does that the test does not say. */
function shakeHands({ method, message, response }: Got, era: EraName): void {
  const { id } = message;
  if (method === 'DELETE') response.writeHead(204).end();
  else if (method === 'GET') response.writeHead(405).end();
  else if (message.method === 'initialize')
    json(response, { jsonrpc: '2.0', id, result: INITIALIZED }, { 'mcp-session-id': 'session-1' });
  else if (message.method === 'server/discover' && era === 'modern')
    json(response, { jsonrpc: '2.0', id, result: DISCOVERED });
  else if (id === undefined || message.method === undefined) response.writeHead(202).end();
  else if (message.method === 'ping') json(response, { jsonrpc: '2.0', id, result: {} });
  else response.writeHead(404).end();
}

/** Answers with JSON. */
export function json(response: ServerResponse, message: Message | string, headers = {}): true {
  response.writeHead(200, { 'content-type': 'application/json', ...headers });
  response.end(typeof message === 'string' ? message : JSON.stringify(message));
  return true;
}

/** Answers with a status and nothing else. */
export function status(response: ServerResponse, code: number, headers = {}): true {
  response.writeHead(code, headers).end();
  return true;
}

/** Answers with events, and leaves the stream open. */
export function events(response: ServerResponse, ...messages: (Message | string)[]): true {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const message of messages)
    response.write(typeof message === 'string' ? message : `data: ${JSON.stringify(message)}\n\n`);
  return true;
}

export interface DialOptions extends Partial<Pick<RemoteSpec, 'transport' | 'headers' | 'headersCommand'>> {
  readonly era?: EraName | 'auto';
  readonly paramsOf?: RemoteTarget['paramsOf'];
  readonly rereadTools?: RemoteTarget['rereadTools'];
  readonly maxFrameBytes?: number;
  /** Connects in memory, where all writes are read one by one. */
  readonly inMemory?: Server;
  readonly clock?: Clock;
}

/** Connects to a server, with all that comes of it written down. */
export async function dial(url: string, options: DialOptions = {}) {
  const {
    era = 'legacy',
    maxFrameBytes = 64 * 1024,
    paramsOf = () => [],
    rereadTools = async () => {},
    inMemory,
    clock = systemClock,
    ...spec
  } = options;
  const known = new ServerEra(era);
  const told: string[] = [];
  const log: string[] = [];
  const requests: ServerRequest[] = [];
  const notified: string[] = [];
  const secrets: string[] = [];
  const keepSecret = (headers: AccessHeaders) => {
    secrets.push(...Object.values(headers));
    return () => {};
  };
  const dialer = new HttpDialer({
    ...dialerOptions(clock),
    ...(inMemory && { createAgent: () => memoryAgent(() => connectInMemory(inMemory).near) }),
    openAccess: (remote) => {
      const access = configuredAccess(remote, { clock: systemClock, keepSecret });
      return { access, release: () => access.end() };
    },
    onInternalError: (error) => told.push(`internal error: ${error}`),
  });
  const { key, timeouts, restart } = sampleSpec();
  const launched = dialer.dial(
    {
      spec: { key, timeouts, restart, kind: 'remote', url, transport: 'auto', headers: {}, ...spec },
      generation: 1,
      profile: Promise.resolve({ clientInfo: { name: 'c', version: '1' }, capabilities: {} }),
      era: known,
      log: {
        add: (line) => log.push(line),
        addJunk: (_, reason) => log.push(`junk: ${reason}`),
        stderr: { freeSpace: new Uint8Array(1), filled: () => {} },
        end: () => {},
      },
      ...{ maxFrameBytes, maxUnwrittenBytes: 1024 * 1024, paramsOf, rereadTools },
    },
    {
      ...SILENT_LISTENER,
      request: (request) => requests.push(request),
      notification: ({ method }) => notified.push(method),
      lost: (fault, reason) => told.push(`lost: ${reason} (${fault})`),
      unfit: (reason) => told.push(`unfit: ${reason}`),
    },
  );
  dialed.push(launched);
  return { launched, outcome: await launched.connection, told, log, requests, notified, secrets, era: known };
}

/** A connection that must open. */
export async function connect(url: string, options?: DialOptions) {
  const opened = await dial(url, options);
  if (opened.outcome.kind === 'failed') throw new Error(opened.outcome.reason);
  const { connection } = opened.outcome;
  return { ...opened, connection, call: (args: object = {}) => call(connection, args) };
}

/** Sends a call. `done` resolves with its end in short. */
function call(connection: UpstreamConnection, args: object) {
  const listener = new Listener();
  let end: (told: string) => void = () => {};
  const done = new Promise<string>((resolve) => {
    end = resolve;
  });
  const settle = listener.settle.bind(listener);
  listener.settle = (outcome) => {
    settle(outcome);
    end(listener.told[0] ?? '');
  };
  const message = { jsonrpc: '2.0', id: 'c-1', method: 'tools/call', params: { name: 'read', arguments: args } };
  const sent = connection.send(
    new EnvelopeRequest(requestOf(message)),
    [],
    { idleMs: 1_000_000, maxMs: 1_000_000 },
    listener,
  );
  return { listener, sent, done };
}

/** Ends all connections and servers of a test. */
export async function endAll(): Promise<void> {
  await Promise.all(dialed.splice(0).map((one) => one.end({ termAfterMs: 0, killAfterMs: 0 })));
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
}
