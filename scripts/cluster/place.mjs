// Three gateways with one key behind nginx, in a folder of their own, and the journals of their servers.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startNginx } from '../conformance/nginx.mjs';
import { CLI, freePort } from '../conformance/targets.mjs';

const SERVER = fileURLToPath(new URL('server.mjs', import.meta.url));
const PAGE = new URL('../../docs/cluster.md', import.meta.url);
const INSTANCES = 3;
const READY_WITHIN_MS = 20_000;
const POLL_MS = 20;
const KEPT_OUTPUT_CHARS = 4_000;

export function newKey() {
  return randomBytes(32).toString('base64');
}

export class Place {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-cluster-'));
  token = randomBytes(32).toString('base64url');
  instances = [];

  /** `drain` as in the configuration. With `namesGateway`, nginx names the gateway of each answer in `x-gateway`. */
  static async open(drain, { namesGateway = false } = {}) {
    const place = new Place();
    try {
      await place.#start(drain, namesGateway ? 'add_header x-gateway $upstream_addr always;' : '');
      return place;
    } catch (error) {
      await place.close();
      throw error;
    }
  }

  get url() {
    return `http://${this.host}/mcp`;
  }

  /** Replaces the keys. The gateways read them at their next start. */
  seal(...keys) {
    [this.key] = keys;
    writeFileSync(join(this.folder, 'seal-key'), keys.join('\n'), { mode: 0o600 });
  }

  /** How often each token was executed. */
  executions() {
    const counts = new Map();
    const journals = readdirSync(this.#journals).map((name) => readFileSync(join(this.#journals, name), 'utf8'));
    for (const token of journals.flatMap((text) => text.split('\n').filter(Boolean)))
      counts.set(token, (counts.get(token) ?? 0) + 1);
    return counts;
  }

  async close() {
    await this.nginx?.close();
    await Promise.all(this.instances.map((instance) => instance.close()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #journals() {
    return join(this.folder, 'journals');
  }

  async #start(drain, ofServer) {
    mkdirSync(this.#journals);
    this.seal(newKey());
    this.host = `127.0.0.1:${await freePort()}`;
    const config = join(this.folder, 'trunkline.yaml');
    const limits = { maxSessions: 10_000, maxConnections: 20_000, requestsPerSecond: 100_000, requestBurst: 100_000 };
    const jobs = { command: process.execPath, args: [SERVER, this.#journals], era: 'legacy', concurrency: 256 };
    const gateway = { sealKeyFile: join(this.folder, 'seal-key'), drain, http: limits };
    writeFileSync(config, JSON.stringify({ servers: { jobs }, gateway }));
    for (let number = 1; number <= INSTANCES; number += 1) {
      const data = join(this.folder, `data-${number}`);
      mkdirSync(join(data, 'trunkline'), { recursive: true, mode: 0o700 });
      writeFileSync(join(data, 'trunkline', 'token'), this.token, { mode: 0o600 });
      this.instances.push(new Instance({ port: await freePort(), config, data, host: this.host, number }));
    }
    await Promise.all(this.instances.map((instance) => instance.start()));
    this.nginx = await startNginx(this.host, this.#nginxConfig(ofServer));
  }

  /** The configuration of the page, with our addresses and without TLS. `ofServer` goes into its server. */
  #nginxConfig(ofServer) {
    const [, shown] = /```nginx\n([\s\S]*?)```/.exec(readFileSync(PAGE, 'utf8'));
    const own = this.instances.reduce(
      (text, { port, number }) => text.replace(`gateway-${number}.example:7411`, `127.0.0.1:${port}`),
      shown.replace('listen 443 ssl;', `listen ${this.host}; ${ofServer}`).replaceAll(/^ *ssl_.*\n/gm, ''),
    );
    if (own.includes('.example:') || !own.includes(`listen ${this.host}`))
      throw new Error(`docs/cluster.md shows:\n${shown}`);
    return own;
  }
}

class Instance {
  constructor({ port, config, data, host, number }) {
    this.port = port;
    this.number = number;
    this.output = '';
    this.args = [CLI, 'serve', '--config', config, '--http', `127.0.0.1:${port}`, '--allowed-host', host];
    this.env = { ...process.env, HOME: data, XDG_DATA_HOME: data, TRUNKLINE_HUB: 'off' };
  }

  get pid() {
    return this.child.pid;
  }

  /** Resolves when it is ready. */
  async start() {
    this.child = spawn(process.execPath, this.args, { env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.child.stderr.setEncoding('utf8').on('data', (text) => {
      this.output = (this.output + text).slice(-KEPT_OUTPUT_CHARS);
    });
    this.exited = new Promise((resolve) => this.child.once('close', (code, signal) => resolve(code ?? signal)));
    const deadline = performance.now() + READY_WITHIN_MS;
    while (performance.now() < deadline) {
      if (this.child.exitCode !== null) break;
      const response = await fetch(`http://127.0.0.1:${this.port}/readyz`).catch(() => undefined);
      await response?.text();
      if (response?.ok) return;
      await sleep(POLL_MS);
    }
    throw new Error(`gateway ${this.number} is not ready:\n${this.output}`);
  }

  /** Resolves with the exit code, or the signal, when it has ended. */
  async end(signal) {
    this.child.kill(signal);
    return await this.exited;
  }

  async close() {
    if (this.child === undefined || this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGINT');
    const killed = sleep(5_000, 'late', { ref: false });
    if ((await Promise.race([this.exited, killed])) === 'late') await this.end('SIGKILL');
  }
}
