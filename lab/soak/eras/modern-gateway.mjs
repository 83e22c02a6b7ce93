import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLI, PROBE } from '../gateway.mjs';
import { until } from '../wait.mjs';

const REVISION = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'soak', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
};
const READY_WITHIN_MS = 30_000;
const END_WITHIN_MS = 5_000;
/** No run may meet a limit that it does not mean. */
const WIDE = { requestsPerSecond: 100_000, requestBurst: 100_000, maxConnections: 2_000 };

/** Copies the built program with another wait for clients, which is ten minutes in Trunkline itself. Returns the program of the copy. */
export function buildFor(folder, expiresMs) {
  const copy = mkdtempSync(join(folder, 'copy-'));
  const built = join(copy, 'dist');
  cpSync(dirname(CLI), built, { recursive: true });
  // It reads its version there.
  cpSync(fileURLToPath(new URL('../../../package.json', import.meta.url)), join(copy, 'package.json'));
  change(join(built, 'serve.js'), /(const EXPIRES_MS = )6e5;/, `$1${expiresMs};`);
  return join(built, 'cli.js');
}

function change(file, what, replacement) {
  const text = readFileSync(file, 'utf8');
  if (!what.test(text)) throw new Error(`${file} has changed: ${what}`);
  writeFileSync(file, text.replace(what, replacement));
}

/** A token that nothing else has. */
export function tokenOf(index) {
  return `${String(index).padStart(4, '0')}-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEF`;
}

/** The gateway over HTTP with a user for each token, and what they send without a session. */
export class ModernGateway {
  stderr = '';
  #process;
  #exit;
  #port;
  #agent = new Agent({ keepAlive: true });
  #lastId = 0;

  constructor({ folder, program, servers, tokens, gateway = {} }) {
    const own = mkdtempSync(join(folder, 'http-'));
    const data = join(own, 'data');
    const lines = tokens.map((token, index) => `user-${index} ${createHash('sha256').update(token).digest('hex')}\n`);
    writeFileSync(join(own, 'machines'), lines.join(''), { mode: 0o600 });
    const config = join(own, 'trunkline.json');
    const http = { ...WIDE, auth: { tokens: 'machines' } };
    writeFileSync(config, JSON.stringify({ servers, gateway: { http, drain: '0s', ...gateway } }));
    const args = ['--expose-gc', `--import=${PROBE}`, program, '--config', config, '--http', '0'];
    this.#process = spawn(process.execPath, args, {
      env: { ...process.env, XDG_DATA_HOME: data },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#exit = new Promise((resolve) => this.#process.once('exit', (code, signal) => resolve(code ?? signal)));
    this.#process.stderr.setEncoding('utf8').on('data', (text) => {
      this.stderr += text;
    });
  }

  async open() {
    const isOpen = await until(() => /localhost:(\d+)\/mcp/.test(this.stderr), READY_WITHIN_MS);
    if (!isOpen) throw new Error(`The gateway does not start\n${this.stderr}`);
    this.#port = Number(/localhost:(\d+)\/mcp/.exec(this.stderr)[1]);
  }

  /** What the process holds once the garbage is gone. */
  async held() {
    this.#process.send('held');
    const [answer] = await once(this.#process, 'message');
    return answer;
  }

  /** Calls a tool. Resolves with the answer, or rejects when `signal` ends the connection. `agent` has its own ones. */
  call(token, name, params = {}, { signal, agent = this.#agent } = {}) {
    this.#lastId += 1;
    const method = 'tools/call';
    const message = { jsonrpc: '2.0', id: this.#lastId, method, params: { name, _meta: META, ...params } };
    return this.#post(token, { 'mcp-method': method, 'mcp-name': name }, JSON.stringify(message), { signal, agent });
  }

  /** The text of a tool's answer. */
  async text(token, name) {
    const { result } = await this.call(token, name);
    return result.content[0].text;
  }

  /** Closes the connections, as clients that vanish do. */
  dropConnections() {
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true });
  }

  async close() {
    this.#agent.destroy();
    this.#process.kill('SIGTERM');
    const overdue = setTimeout(() => this.#process.kill('SIGKILL'), END_WITHIN_MS);
    const end = await this.#exit;
    clearTimeout(overdue);
    return end;
  }

  #post(token, headers, body, { signal, agent }) {
    const options = {
      port: this.#port,
      path: '/mcp',
      method: 'POST',
      agent,
      signal,
      headers: {
        ...headers,
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': REVISION,
      },
    };
    return new Promise((resolve, reject) => {
      const sent = request(options, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece) => {
          text += piece;
        });
        response.once('error', reject).once('end', () => resolve(JSON.parse(text.slice(text.indexOf('{')))));
      });
      sent.once('error', reject).end(body);
    });
  }
}

/** The params of a call that comes back with an answer to each question. */
export function comingBack({ result }, args) {
  const accepted = { action: 'accept', content: { name: 'Ann' } };
  const answers = Object.keys(result.inputRequests).map((key) => [key, accepted]);
  return { arguments: args, inputResponses: Object.fromEntries(answers), requestState: result.requestState };
}
