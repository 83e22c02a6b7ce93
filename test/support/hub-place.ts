// Clients that share a hub: the built CLI as several clients start it, with one configuration and a folder of hubs that
// only this test uses.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { GatewayProcess, type StartOptions } from './gateway-process.js';
import { IS_WINDOWS, SHORT_TMP } from './platform.js';
import { endRun, processesWith, programsWith, until } from './processes.js';

/** Variables of a client with default settings. The tests of one process turn the hub off with this variable. */
export const WITH_HUB = { TRUNKLINE_HUB: '' };

export class HubPlace {
  /** The configuration, and what the clients share. */
  readonly folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  /** The path of a socket is short. */
  readonly hubs = mkdtempSync(join(SHORT_TMP, 'tlh-'));
  readonly clients: GatewayProcess[] = [];
  readonly #options: StartOptions;

  constructor(options: StartOptions) {
    this.#options = options;
  }

  /** Starts one more client. */
  async client(more: Partial<StartOptions> = {}, { handshake = true } = {}): Promise<GatewayProcess> {
    const env = { ...WITH_HUB, TRUNKLINE_HUB_DIR: this.hubs, ...this.#options.env, ...more.env };
    const options = { folder: this.folder, ...this.#options, ...more, env };
    const client = await GatewayProcess.start(options, { handshake });
    this.clients.push(client);
    return client;
  }

  /** The processes of the hubs that run. */
  get hubPids(): number[] {
    return programsWith(`hub serve --place ${this.hubs}`).map(({ pid }) => pid);
  }

  get hubPid(): number {
    const [pid, ...more] = this.hubPids;
    if (pid === undefined || more.length > 0) throw new Error(`${more.length + (pid === undefined ? 0 : 1)} hubs run`);
    return pid;
  }

  /** The processes of the servers. */
  serverPids(program: string): number[] {
    return processesWith(`run=${this.folder}`)
      .filter(({ args }) => args.includes(program))
      .map(({ pid }) => pid);
  }

  /** The folder of the hubs of this configuration. */
  get hubFolder(): string {
    const [key = ''] = readdirSync(this.hubs);
    return join(this.hubs, key);
  }

  /** Ends clients and hubs, and fails if a process is left. */
  async dispose(): Promise<void> {
    // Some tests stop a process for a while, which Windows cannot.
    if (!IS_WINDOWS) for (const client of this.clients) client.kill('SIGCONT');
    await Promise.all(this.clients.map((client) => client.end()));
    for (const pid of this.hubPids) {
      if (!IS_WINDOWS) process.kill(pid, 'SIGCONT');
      process.kill(pid, 'SIGTERM');
    }
    try {
      await until('all hubs end', () => this.hubPids.length === 0);
    } finally {
      await endRun(this.folder);
      rmSync(this.hubs, { recursive: true, force: true });
    }
  }
}

/** Place that the clients of the running test share. It is disposed of at the end of the test, which fails if a process is left. */
export function sharedPlace(options: StartOptions): HubPlace {
  const place = new HubPlace(options);
  onTestFinished(() => place.dispose());
  return place;
}
