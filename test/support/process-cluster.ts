import { writeFileSync } from 'node:fs';
import { freePort } from './free-port.js';
import { Place, type Running } from './http-place.js';
import { RedisPlace, type RedisProcess } from './redis-place.js';

/** Gateways of one cluster, as processes of the built CLI, and the real Redis that they share. */
export class ProcessCluster extends Place {
  readonly #stores = new RedisPlace();
  #redis: RedisProcess | undefined;
  #written = 0;

  static async open(): Promise<ProcessCluster> {
    const cluster = new ProcessCluster();
    cluster.#redis = await cluster.#stores.start();
    writeFileSync(cluster.file('key'), `${'k'.repeat(43)}\n`, { mode: 0o600 });
    return cluster;
  }

  get redis(): RedisProcess {
    if (this.#redis === undefined) throw new Error('The cluster is not open');
    return this.#redis;
  }

  /** Writes the configuration of a gateway with this peer port. Returns the name of the file. */
  configOf(servers: Record<string, object>, peerPort: number, gateway: object = {}): string {
    this.#written += 1;
    const file = this.file(`${this.#written}.yaml`);
    const cluster = { store: this.redis.url, advertise: `127.0.0.1:${peerPort}` };
    writeFileSync(
      file,
      JSON.stringify({ servers, gateway: { drain: '0s', sealKeyFile: this.file('key'), cluster, ...gateway } }),
    );
    return file;
  }

  async gateway(servers: Record<string, object>, gateway: object = {}): Promise<Running> {
    return await this.serve({ config: this.configOf(servers, await freePort(), gateway) });
  }

  override async dispose(): Promise<void> {
    await super.dispose();
    await this.#stores.end();
  }
}
