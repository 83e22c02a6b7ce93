// The redis-server of PATH as the store of a cluster, alone or with a replica and sentinels, without files that outlive it.
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../conformance/targets.mjs';
import { until } from '../soak/wait.mjs';
import { OwnedProcess } from './owned-process.mjs';

const READY_WITHIN_MS = 10_000;
const FAILOVER_WITHIN_MS = 30_000;
const SENTINELS = 3;
const run = promisify(execFile);

export class Store {
  #folder;
  #options;

  constructor(folder, port, options) {
    this.#folder = folder;
    this.port = port;
    this.#options = options;
  }

  /** `options` are those of the command line of redis-server, with the file of a configuration first. */
  static async open(folder, ...options) {
    mkdirSync(folder);
    const store = new Store(folder, await freePort(), options);
    await store.start();
    return store;
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it without data. */
  async start() {
    const own = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#folder];
    const isSentinel = this.#options.includes('--sentinel');
    this.process = new OwnedProcess('redis-server', [...this.#options, ...own, ...(isSentinel ? [] : ['--save', ''])]);
    if (!(await until(() => this.#answers(), READY_WITHIN_MS)))
      throw new Error(`redis-server is not ready:\n${this.process.output}`);
  }

  async ask(...command) {
    const { stdout } = await run('redis-cli', ['-p', String(this.port), ...command]);
    return stdout.trim();
  }

  /** Commands since the start, without those of this class. */
  async commands() {
    const stats = [...(await this.ask('info', 'commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)];
    return stats.filter(([, name]) => name !== 'info').reduce((sum, [, , calls]) => sum + Number(calls), 0);
  }

  async close() {
    await this.process.close();
  }

  async #answers() {
    return (await this.ask('ping').catch(() => '')) === 'PONG';
  }
}

/** A store with a replica, which sentinels make the master when the first one is gone. */
export class WatchedStore {
  #servers = [];
  #sentinels = [];

  static async open(folder) {
    mkdirSync(folder);
    const watched = new WatchedStore();
    try {
      await watched.#start(folder);
      return watched;
    } catch (error) {
      await watched.close();
      throw error;
    }
  }

  get url() {
    return `redis-sentinel://${this.#sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/mymaster`;
  }

  /** Kills the master. Resolves with the time until the sentinels name the replica, in milliseconds. */
  async failOver() {
    const [master, replica] = this.#servers;
    const since = performance.now();
    await master.process.end('SIGKILL');
    const isNamed = async () => {
      const named = await this.#sentinels[0].ask('sentinel', 'get-master-addr-by-name', 'mymaster');
      return named.endsWith(String(replica.port));
    };
    if (!(await until(isNamed, FAILOVER_WITHIN_MS, 100))) throw new Error('The sentinels named no other master');
    this.master = replica;
    return performance.now() - since;
  }

  async ask(...command) {
    return await this.master.ask(...command);
  }

  async close() {
    await Promise.all([...this.#sentinels, ...this.#servers].map((each) => each.close()));
  }

  async #start(folder) {
    this.master = await Store.open(join(folder, 'master'));
    this.#servers.push(this.master);
    const follows = ['--replicaof', `127.0.0.1 ${this.master.port}`];
    this.#servers.push(await Store.open(join(folder, 'replica'), ...follows));
    for (let n = 0; n < SENTINELS; n += 1) {
      const file = join(folder, `sentinel-${n}.conf`);
      const lines = [
        `monitor mymaster 127.0.0.1 ${this.master.port} 2`,
        'down-after-milliseconds mymaster 1000',
        'failover-timeout mymaster 5000',
      ];
      writeFileSync(file, lines.map((line) => `sentinel ${line}\n`).join(''));
      this.#sentinels.push(await Store.open(join(folder, `sentinel-${n}`), file, '--sentinel'));
    }
    if (!(await until(() => this.#isWatched(), READY_WITHIN_MS, 100))) throw new Error('The sentinels do not agree');
  }

  async #isWatched() {
    const all = await Promise.all(
      this.#sentinels.map(async (sentinel) => {
        const quorum = await sentinel.ask('sentinel', 'ckquorum', 'mymaster');
        const replicas = await sentinel.ask('sentinel', 'replicas', 'mymaster');
        return quorum.startsWith(`OK ${SENTINELS}`) && replicas.includes(String(this.#servers[1].port));
      }),
    );
    return all.every(Boolean);
  }
}
