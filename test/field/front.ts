// What a client sends over HTTP: to a server of the official SDK, and to Trunkline.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Server as SdkServer } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { GatewayProcess } from '../../src/app/gateway-process.js';
import { createEraChooser } from '../../src/app/platform.js';
import { createHttpClients } from '../../src/downstream/http/http-client.js';
import { openHttpTransport } from '../../src/downstream/http/server.js';
import { DEFAULT_LIMITS, idsOf } from '../downstream/http/serving.js';
import type { Message } from '../support/wire.js';
import { FAILS } from './row.js';

/** A page that a person has allowed. */
export const PAGE = 'https://page.example';

type Headers = Readonly<Record<string, string | undefined>>;

/** An endpoint that serves until it is closed. */
export interface Front {
  readonly url: URL;
  close(): Promise<void>;
}

/** Serves a server of the official SDK, whose sessions have no owner. */
export async function openSdkFront(makeServer: () => SdkServer): Promise<Front> {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
  await makeServer().connect(transport as never);
  const listener = createServer((asked, response) => {
    if (asked.url === '/mcp') void transport.handleRequest(asked, response);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => {
    listener.listen(0, '127.0.0.1', resolve);
  });
  const close = async () => {
    listener.closeAllConnections();
    await transport.close();
    await new Promise((resolve) => listener.close(resolve));
  };
  return { url: new URL(`http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`), close };
}

/** Serves the gateway of all rows, without tokens, as the server of the official SDK has none. */
export async function openFront({ gateway, platform }: GatewayProcess, views: ReadonlySet<string>): Promise<Front> {
  const { url, close } = await openHttpTransport({
    ...platform,
    events: { wants: () => false, emit: () => {} },
    core: createHttpClients({
      ...platform,
      chooseEra: createEraChooser(platform, gateway, { name: 'trunkline', version: '1' }),
      hasServer: (key) => gateway.pool.has(key),
      hasView: (name) => views.has(name),
      isReady: () => true,
      endSubscriptions: () => gateway.endSubscriptions(),
      principals: () => gateway.pool.principals,
      endKept: (principal) => gateway.pool.endKept(principal),
    }),
    bind: { host: '127.0.0.1', port: 0, tokens: [], noAuth: true, allowedHosts: [], allowedOrigins: [PAGE] },
    limits: DEFAULT_LIMITS,
    ids: idsOf('field'),
  });
  return { url: new URL(url), close };
}

/** A client of HTTP that sends whatever it wants. */
export class FrontClient {
  readonly #url: URL;
  readonly #opened: IncomingMessage[] = [];
  #session: Headers = {};

  constructor(url: URL) {
    this.#url = url;
  }

  /** Sends a request. Resolves with the head of the answer. */
  async begin(method: string, body?: string, headers: Headers = {}, path = ''): Promise<IncomingMessage> {
    const given = {
      ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...this.#session },
      ...headers,
    };
    const sent = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    const asked = request(new URL(this.#url.pathname + path, this.#url), { agent: false, method, headers: sent });
    asked.end(body);
    return await new Promise((resolve, reject) => {
      asked.once('error', reject).once('response', (response) => {
        this.#opened.push(response);
        resolve(response.on('error', () => {}));
      });
    });
  }

  /** Sends a message. Resolves with what a user would get of its answer. */
  async ask(message: unknown, headers: Headers = {}, path = ''): Promise<string> {
    const text = typeof message === 'string' ? message : JSON.stringify(message);
    const response = await this.begin('POST', text, headers, path);
    const { statusCode = 0, headers: answered } = response;
    const session = answered['mcp-session-id'];
    if (typeof session === 'string') this.#session = { ...this.#session, 'mcp-session-id': session };
    if (statusCode >= 300) return `${FAILS}: ${statusCode}`;
    let body = '';
    for await (const chunk of response.setEncoding('utf8')) body += chunk;
    if (body === '') return String(statusCode);
    const json = answered['content-type']?.includes('event-stream') ? (/^data: (\{.*)$/m.exec(body)?.[1] ?? '') : body;
    const { result, error }: Message = JSON.parse(json);
    if (error !== undefined) return `${FAILS}: ${error.code}`;
    return result.content?.[0]?.text ?? result.protocolVersion ?? 'answered';
  }

  /** The handshake of a usual client. */
  async hello(headers: Headers = {}, protocolVersion = '2025-11-25'): Promise<string> {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'field', version: '1' } };
    const hello = await this.ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, headers);
    await this.ask({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
    return hello;
  }

  /** Calls the tool of a sound server. */
  async call(headers: Headers = {}, path = ''): Promise<string> {
    const params = { name: 'echo', arguments: {} };
    return await this.ask({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, headers, path);
  }

  close(): void {
    for (const response of this.#opened) response.destroy();
  }
}
