import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { IN_FLIGHT } from './ways.mjs';

const CLI = path('../../dist/cli.js');
const TINY = path('./tiny-server.mjs');
const BARE = path('./bare-http.mjs');
const PROBE = import.meta.resolve('./probe.mjs');
const END_WITHIN_MS = 5_000;

/** A server of MCP over HTTP, in a process of its own. */
export class HttpServerProcess {
  #process;
  port = 0;
  token = '';

  /** The built CLI with one server behind it, once that has started. All that it writes goes to a folder in `folder`. */
  static async trunkline(folder, { sessions }) {
    const own = mkdtempSync(join(folder, 'gateway-'));
    const config = join(own, 'trunkline.json');
    writeFileSync(config, JSON.stringify(configFor(sessions)));
    const args = ['--expose-gc', `--import=${PROBE}`, CLI, '--config', config, '--http', '127.0.0.1:0'];
    const started = await HttpServerProcess.#start(args, { XDG_DATA_HOME: own });
    started.token = readFileSync(join(own, 'trunkline', 'token'), 'utf8').trim();
    const ready = `http://127.0.0.1:${started.port}/readyz`;
    while ((await fetch(ready)).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    return started;
  }

  /** `bare-http.mjs`. */
  static async bare() {
    return await HttpServerProcess.#start([BARE], {});
  }

  static async #start(args, environment) {
    const started = new HttpServerProcess();
    started.#process = spawn(process.execPath, args, {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, ...environment },
    });
    started.port = await started.#listening();
    return started;
  }

  /** Bytes in use once the garbage is gone, and those that the process takes of the machine's memory then. */
  memory() {
    return this.#ask('in-use');
  }

  /** Bytes that the process takes of the machine's memory just now, garbage included. */
  residentBytes() {
    return this.#ask('resident');
  }

  async close() {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    const overdue = setTimeout(() => this.#process.kill('SIGKILL'), END_WITHIN_MS);
    await ended;
    clearTimeout(overdue);
  }

  async #ask(what) {
    this.#process.send(what);
    const [answer] = await once(this.#process, 'message');
    return answer;
  }

  #listening() {
    return new Promise((resolve, reject) => {
      let told = '';
      this.#process.once('exit', () => reject(new Error(`It did not start:\n${told}`)));
      this.#process.stderr.setEncoding('utf8').on('data', (text) => {
        told += text;
        const [, port] = /http:\/\/127\.0\.0\.1:(\d+)\/mcp/.exec(told) ?? [];
        if (port !== undefined) resolve(Number(port));
      });
    });
  }
}

/** No limit may be what is measured. */
function configFor(sessions) {
  const http = {
    maxSessions: sessions,
    // Each session may ask on several connections, and listen on one.
    maxConnections: 2 * sessions + 2 * IN_FLIGHT,
    requestsPerSecond: 100_000,
    requestBurst: 100_000,
  };
  const tiny = { command: process.execPath, args: [TINY], concurrency: IN_FLIGHT };
  return { servers: { tiny }, gateway: { http, drain: '0s' } };
}

function path(relative) {
  return fileURLToPath(import.meta.resolve(relative));
}
