import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from './client.mjs';
import { until } from './wait.mjs';

export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
export const PROBE = import.meta.resolve('./probe.mjs');
const WORKER = fileURLToPath(new URL('./servers/worker.mjs', import.meta.url));
const READY_WITHIN_MS = 30_000;
const END_WITHIN_MS = 5_000;
/** Longer than any timeout of a soak and all waits before it. */
const LOST_AFTER_MS = 100_000;
const WATCH_EVERY_MS = 1_000;
const KEPT_STDERR = 4 * 1024;

/** A server that does what it is told, as an entry of the configuration. */
export function worker({ args = [], ...settings }) {
  return { command: process.execPath, args: [WORKER, ...args], ...settings };
}

/** The built gateway over stdio, with its client, and a probe in it. All that it writes goes to `folder`. */
export class Gateway {
  client;
  stderr = '';
  #process;
  #keys;
  #exit;

  constructor(folder, servers) {
    const own = mkdtempSync(join(folder, 'gateway-'));
    const config = join(own, 'trunkline.json');
    writeFileSync(config, JSON.stringify({ servers }));
    this.#keys = Object.keys(servers);
    this.#process = spawn(process.execPath, ['--expose-gc', `--import=${PROBE}`, CLI, '--config', config], {
      env: { ...process.env, XDG_DATA_HOME: join(own, 'data') },
      stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
    });
    this.#exit = new Promise((resolve) => this.#process.once('exit', (code, signal) => resolve(code ?? signal)));
    this.#process.stderr.setEncoding('utf8').on('data', (text) => {
      this.stderr = (this.stderr + text).slice(-KEPT_STDERR);
    });
    this.client = new Client(this.#process);
  }

  get pid() {
    return this.#process.pid;
  }

  /** Resolves when every server is ready to be called. */
  async open() {
    await this.whileAlive(async () => {
      await this.client.initialize();
      await this.client.ask('tools/list');
      if (!(await this.becomesReady(READY_WITHIN_MS))) throw new Error(`Not all servers start\n${this.stderr}`);
    });
  }

  /** Resolves with what `work` does; rejects when the gateway ends meanwhile, or leaves a request without an answer. */
  async whileAlive(work) {
    let watch;
    const broken = new Promise((_, reject) => {
      watch = setInterval(() => {
        const { exitCode, signalCode } = this.#process;
        const end = exitCode ?? signalCode;
        if (end !== null) reject(new Error(`The gateway ended (${end})\n${this.stderr}`));
        if (this.client.longestWaitMs > LOST_AFTER_MS) reject(new Error(`No answer within ${LOST_AFTER_MS} ms`));
      }, WATCH_EVERY_MS);
    });
    try {
      return await Promise.race([work(), broken]);
    } finally {
      clearInterval(watch);
    }
  }

  /** Everything that `trunkline__status` tells of one server. */
  async status(server) {
    const { result } = await this.client.call('trunkline__status', { server });
    return result.structuredContent.servers[0];
  }

  /** The same of each server. */
  async statusOfAll() {
    return await Promise.all(this.#keys.map((key) => this.status(key)));
  }

  async becomesReady(withinMs, keys = this.#keys) {
    return await until(async () => {
      const reports = await Promise.all(keys.map((key) => this.status(key)));
      return reports.every(({ state }) => state === 'ready');
    }, withinMs);
  }

  /** What the process holds once the garbage is gone. */
  held() {
    return this.#probe('held');
  }

  /** The same with garbage, and so without a pause. */
  now() {
    return this.#probe('now');
  }

  /** Closes its stdin, as a host does. Resolves with the exit code, or the signal that it needed. */
  async close() {
    this.#process.stdin.end();
    const overdue = setTimeout(() => this.#process.kill('SIGKILL'), END_WITHIN_MS);
    const end = await this.#exit;
    clearTimeout(overdue);
    return end;
  }

  async #probe(what) {
    this.#process.send(what);
    const [answer] = await once(this.#process, 'message');
    return answer;
  }
}
