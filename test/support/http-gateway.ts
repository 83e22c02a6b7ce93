// The whole gateway in the process of the test, which serves HTTP on a free port in front of servers behind URLs.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { onTestFinished, vi } from 'vitest';
import { GatewayProcess } from '../../src/app/gateway-process.js';
import { createPlatform } from '../../src/app/platform.js';
import { serveHttp } from '../../src/app/serve-http.js';
import type { CreateFeature } from '../../src/extras/feature.js';
import { KnownSecrets } from '../../src/host/observe/redact.js';
import { loadAnyConfig } from './load-config.js';
import type { Message } from './wire.js';

export interface HttpGatewayOptions {
  readonly servers: Readonly<Record<string, object>>;
  readonly gateway?: Readonly<Record<string, unknown>>;
  readonly features?: readonly CreateFeature[];
  readonly secrets?: Readonly<Record<string, string>>;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The message in the body, or in the last event of a stream. */
  readonly body: Message;
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

export type ClientHeaders = Readonly<Record<string, string>>;

export class HttpGateway {
  readonly url: string;
  readonly composition: GatewayProcess;
  /** All that was logged, as JSON. */
  readonly log: string[];
  readonly #folder: string;

  /** Serves until the test ends. */
  static async start(options: HttpGatewayOptions): Promise<HttpGateway> {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-http-gateway-'));
    const log: string[] = [];
    const config = configIn(folder, options);
    const platform = createPlatform();
    const { auth } = config.gateway.http;
    const secrets = new KnownSecrets();
    const composition = new GatewayProcess({
      ...{ config, platform, secrets, environment: {}, features: options.features ?? [] },
      logger: pino({ level: 'debug' }, { write: (line: string) => log.push(secrets.redact(line)) }),
      runFolder: join(folder, 'run'),
      approvals: {
        approvalsFolder: join(folder, 'approvals'),
        withheldFolder: join(folder, 'withheld'),
        purpose: 'serve',
      },
      http: auth === undefined ? 'one user' : 'users',
    });
    await composition.prepared;
    // It prints its address there.
    const stderr = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
    const bind = { host: '127.0.0.1', port: 0, noAuth: auth === undefined, allowedHosts: [], allowedOrigins: [] };
    const opened = await serveHttp({
      ...{ settings: { ...bind, tls: undefined }, http: config.gateway.http, composition },
      logger: composition.logger,
    }).finally(() => stderr.mockRestore());
    onTestFinished(async () => {
      await opened.close();
      await composition.stop({ termAfterMs: 0, killAfterMs: 0 });
      rmSync(folder, { recursive: true, force: true });
    });
    await composition.start();
    return new HttpGateway({ url: opened.url, composition, log, folder });
  }

  private constructor(parts: {
    readonly url: string;
    readonly composition: GatewayProcess;
    readonly log: string[];
    readonly folder: string;
  }) {
    this.url = parts.url;
    this.composition = parts.composition;
    this.log = parts.log;
    this.#folder = parts.folder;
  }

  /** Applies another configuration. */
  change(options: HttpGatewayOptions): void {
    this.composition.change(configIn(this.#folder, options));
  }

  /** Begins a session of an earlier revision. */
  async session(headers: ClientHeaders = {}, protocolVersion = '2025-11-25'): Promise<ClientHeaders> {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const answer = await this.post({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, headers);
    const id = answer.headers.get('mcp-session-id');
    if (id === null) throw new Error(`No session: ${answer.status} ${JSON.stringify(answer.body)}`);
    const session = { ...headers, 'mcp-session-id': id };
    await this.post({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
    return session;
  }

  /** Calls a tool in a session, or with a request of revision 2026-07-28 if the headers name none. */
  async call(name: string, args: object = {}, headers: ClientHeaders = {}): Promise<HttpAnswer> {
    const isModern = headers['mcp-session-id'] === undefined;
    const params = { name, arguments: args, ...(isModern && { _meta: META }) };
    const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    return await this.post(message, { ...(isModern && modern), ...headers });
  }

  async post(message: object, headers: ClientHeaders = {}): Promise<HttpAnswer> {
    const response = await fetch(`${this.url}/mcp`, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(message),
    });
    const text = await response.text();
    const last = /^data: ?(.*)$/m.exec(text.trim().split('\n\n').at(-1) ?? '')?.[1] ?? text;
    return { status: response.status, headers: response.headers, body: last === '' ? {} : JSON.parse(last) };
  }
}

function configIn(folder: string, { servers, gateway = {}, secrets = {} }: HttpGatewayOptions) {
  const file = join(folder, 'trunkline.yaml');
  writeFileSync(file, JSON.stringify({ servers, gateway: { drain: '0s', ...gateway } }));
  return loadAnyConfig(file, {
    ...{ env: { HOME: folder }, nodePath: process.execPath },
    secrets: new Map(Object.entries(secrets).map(([name, value]) => [name, { value }])),
  });
}
