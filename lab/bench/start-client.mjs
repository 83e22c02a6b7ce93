import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

const END_WITHIN_MS = 5_000;
const LOOK_AGAIN_MS = 50;

/** Children that still run. Some real servers go on without their client, so they end with this process, however it ends. */
const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A client that takes the time from the spawn of its server; it speaks as hosts do, each line after the last answer. */
export class StartClient {
  #child;
  #exit;
  #startedAt;
  #unfinished = '';
  #waiting = new Map();
  #lastId = 0;

  /** Times count from `startedAt`: a host that starts several servers waits for all of them. */
  constructor(args, { env = {}, cwd, stderr = 'inherit', startedAt = performance.now() } = {}) {
    this.#startedAt = startedAt;
    this.#child = spawn(process.execPath, args, {
      stdio: ['pipe', 'pipe', stderr],
      env: { ...process.env, ...env },
      cwd,
    });
    running.add(this.#child);
    this.#exit = new Promise((resolve) => this.#child.once('exit', resolve));
    void this.#exit.then(() => running.delete(this.#child));
    this.#child.stdin.on('error', () => {});
    this.#child.stdout.setEncoding('utf8');
    this.#child.stdout.on('data', (text) => this.#receive(text));
  }

  async initialize() {
    const clientInfo = { name: 'bench', version: '1.0.0' };
    const { at } = await this.#request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return at;
  }

  /** One page: when it was there, its number of tools, and the cursor of the next one. */
  async list(cursor) {
    const { at, result } = await this.#request('tools/list', cursor === undefined ? {} : { cursor });
    return { at, tools: result.tools.length, next: result.nextCursor };
  }

  async call(name) {
    const { at, result } = await this.#request('tools/call', { name, arguments: { text: 'hello' } });
    if (result.content?.[0]?.text !== 'hello') throw new Error('An answer is not the echo of its call');
    return at;
  }

  /** Milliseconds that the main thread has run so far, which a busy machine makes no longer; only Linux tells. */
  get cpuMs() {
    if (process.platform !== 'linux') return Number.NaN;
    return Number(readFileSync(`/proc/${this.#child.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
  }

  /** The most that was resident so far; only Linux tells. */
  get peakMiB() {
    if (process.platform !== 'linux') return Number.NaN;
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'latin1');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)[1]) / 1024;
  }

  /** Resolves when the gateway says that so many servers are ready. */
  async untilReady(count) {
    for (;;) {
      const { result } = await this.#request('tools/call', { name: 'trunkline__status', arguments: {} });
      if (result.structuredContent.servers.filter(({ state }) => state === 'ready').length === count) return;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  async close() {
    this.#child.stdin.end();
    const overdue = setTimeout(() => this.#child.kill('SIGKILL'), END_WITHIN_MS);
    await this.#exit;
    clearTimeout(overdue);
  }

  #request(method, params) {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error, at }) =>
        error ? reject(new Error(error.message)) : resolve({ result, at }),
      );
      void this.#exit.then((code) => reject(new Error(`ended with ${code}`)));
      this.#send({ jsonrpc: '2.0', id, method, params });
    });
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #receive(text) {
    const at = performance.now() - this.#startedAt;
    const lines = (this.#unfinished + text).split('\n');
    this.#unfinished = lines.pop();
    // Some servers print other text besides.
    const messages = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
    for (const message of messages) this.#waiting.get(message.id)?.({ ...message, at });
  }
}

/** Milliseconds from the spawn of a Node that does nothing to its exit. */
export async function msOfNodeAlone() {
  const startedAt = performance.now();
  await once(spawn(process.execPath, ['-e', '0']), 'exit');
  return performance.now() - startedAt;
}

/** A client without a gateway: it starts all servers side by side, and has the list when each of them has answered. */
export class DirectClient {
  #clients;

  constructor(commands) {
    const startedAt = performance.now();
    this.#clients = commands.map((args) => new StartClient(args, { startedAt }));
  }

  async listThenCall(tool) {
    const lists = this.#clients.map(async (client) => {
      await client.initialize();
      return (await client.list()).at;
    });
    const list = Math.max(...(await Promise.all(lists)));
    return { list, call: await this.#clients[0].call(tool) };
  }

  async callAtOnce(tool) {
    const handshakes = this.#clients.map((client) => client.initialize());
    await handshakes[0];
    const at = await this.#clients[0].call(tool);
    await Promise.all(handshakes);
    return at;
  }

  async close() {
    await Promise.all(this.#clients.map((client) => client.close()));
  }
}
