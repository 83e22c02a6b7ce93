import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLI, worker } from '../../gateway.mjs';
import { exchange, request } from './wire.mjs';

const ASKER = fileURLToPath(new URL('../../servers/asker.mjs', import.meta.url));
const TOKEN = 'attacked-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEF';
const READY_WITHIN_MS = 20_000;
const END_WITHIN_MS = 5_000;
const KEPT_STDERR = 4 * 1024;
/** No attack may meet a limit that it does not mean. */
const WIDE = { requestsPerSecond: 100_000, requestBurst: 100_000, maxSessions: 2_000, maxConnections: 2_000 };

/** The built gateway over HTTP, with one sound server, which notes its effects. */
export class HttpGateway {
  token = TOKEN;
  port;
  #process;
  #exit;
  #effects;
  #stderr = '';

  constructor({ folder, limits = WIDE, options = [] }) {
    const own = mkdtempSync(join(folder, 'http-'));
    const data = join(own, 'data');
    this.#effects = join(own, 'effects');
    writeFileSync(this.#effects, '');
    mkdirSync(join(data, 'trunkline'), { recursive: true, mode: 0o700 });
    writeFileSync(join(data, 'trunkline', 'token'), TOKEN, { mode: 0o600 });
    const config = join(own, 'trunkline.json');
    const servers = {
      sound: worker({ args: ['name=sound', `effects=${this.#effects}`] }),
      other: worker({ args: ['name=other'] }),
      // A process for each session: otherwise nobody knows which session a question is for.
      asker: { command: process.execPath, args: [ASKER], sharing: 'isolated', start: 'lazy' },
    };
    writeFileSync(config, JSON.stringify({ servers, gateway: { http: limits, drain: '0s' } }));
    this.#process = spawn(process.execPath, [CLI, '--config', config, '--http', '0', ...options], {
      env: { ...process.env, XDG_DATA_HOME: data },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#exit = new Promise((resolve) => this.#process.once('exit', (code, signal) => resolve(code ?? signal)));
    this.#process.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR);
    });
  }

  get host() {
    return `localhost:${this.port}`;
  }

  get pid() {
    return this.#process.pid;
  }

  get stderr() {
    return this.#stderr;
  }

  async open() {
    const overdueAt = performance.now() + READY_WITHIN_MS;
    while (this.port === undefined || !(await this.#isReady())) {
      if (performance.now() > overdueAt) throw new Error(`The gateway does not start\n${this.#stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      const port = /localhost:(\d+)\/mcp/.exec(this.#stderr)?.[1];
      if (port !== undefined) this.port = Number(port);
    }
  }

  async #isReady() {
    const response = await this.send({ method: 'GET', target: '/readyz', headers: { host: this.host } });
    return response.responses[0]?.status === 200;
  }

  /** The headers of a right request. */
  headers(session) {
    return {
      host: this.host,
      authorization: `Bearer ${this.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session,
    };
  }

  /** One request with all its headers as given. */
  send(given, options = {}) {
    return exchange({ port: this.port, parts: [request(given)], ...options });
  }

  /** POSTs a message as a right client does. Resolves with the exchange. */
  post(session, message, { headers = {}, ...options } = {}) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    const all = { ...this.headers(session), ...headers, 'content-length': Buffer.byteLength(body) };
    return this.send({ headers: all, body: Buffer.from(body).toString('latin1') }, { waitMs: 8_000, ...options });
  }

  /** Opens a session. Resolves with its id. */
  async session(capabilities = {}, options = {}) {
    const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'soak', version: '1' } };
    const { responses } = await this.post(undefined, { id: 0, method: 'initialize', params }, options);
    const id = responses[0]?.headers.get('mcp-session-id');
    if (id === undefined) throw new Error(`No session: ${responses[0]?.status}`);
    await this.post(id, { method: 'notifications/initialized' }, options);
    return id;
  }

  /** What the sound server executed. */
  effects() {
    return readFileSync(this.#effects, 'utf8').split('\n').slice(0, -1);
  }

  async close() {
    this.#process.kill('SIGTERM');
    const overdue = setTimeout(() => this.#process.kill('SIGKILL'), END_WITHIN_MS);
    const end = await this.#exit;
    clearTimeout(overdue);
    return end;
  }
}

/** A client that does everything right. Resolves with what went wrong, or nothing, and how long it took. */
export async function soundClient(gateway) {
  const startedAt = performance.now();
  let wrong;
  try {
    const session = await gateway.session();
    const nonce = `sound ${startedAt}`;
    const call = { id: 7, method: 'tools/call', params: { name: 'sound__echo', arguments: { nonce } } };
    const { responses } = await gateway.post(session, call);
    const answer = JSON.parse(responses[0].body);
    if (answer.id !== 7 || answer.result?.content[0].text !== `sound ${nonce}`) wrong = responses[0].body.slice(0, 200);
    await gateway.send({ method: 'DELETE', headers: gateway.headers(session) });
  } catch (error) {
    wrong = error.message;
  }
  return { wrong, ms: performance.now() - startedAt };
}
