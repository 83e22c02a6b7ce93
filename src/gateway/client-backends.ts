import type { ClientFacts, DownstreamClient } from '../downstream/port.js';
import type { Backend } from './registry/backend.js';
import type { BackendPool } from './registry/backend-pool.js';
import type { LogLevelRouter } from './reverse/log-level-router.js';
import type { Subscriptions } from './reverse/subscriptions.js';

export interface ClientBackendsOptions {
  readonly pool: BackendPool;
  readonly subscriptions: Subscriptions;
  readonly logs: LogLevelRouter;
}

/** Gives each client one backend of each server that it sees, and takes along what the client has there. */
export class ClientBackends {
  readonly #options: ClientBackendsOptions;

  constructor(options: ClientBackendsOptions) {
    this.#options = options;
  }

  /** The backends of a new client. Throws if the one server that the client wants to see does not exist. */
  join(client: DownstreamClient, facts: ClientFacts): Backend[] {
    const { pool, logs } = this.#options;
    const keys = facts.server === undefined ? [...pool.keys] : [facts.server];
    const backends = keys.map((key) => pool.claim(key, client, facts));
    // A new client has no level yet, and gets what the servers send.
    for (const backend of backends) logs.adjust(backend);
    return backends;
  }

  /** The backends of a client after the servers have changed: the same ones as before where the client may keep them. */
  move(client: DownstreamClient, facts: ClientFacts, old: ReadonlyMap<string, Backend>): Backend[] {
    const { pool, subscriptions, logs } = this.#options;
    const keys = [...pool.keys].filter((key) => facts.server === undefined || key === facts.server);
    return keys.map((key) => {
      const before = old.get(key);
      if (before !== undefined && pool.suits(before, facts)) return before;
      const now = pool.claim(key, client, facts);
      logs.adjust(now);
      if (before === undefined) return now;
      now.copyListsFrom(before);
      subscriptions.move(client, before, now);
      // A retired backend keeps its clients until its last calls have ended. One that other clients use goes on.
      if (pool.includes(before)) this.#release(client, before);
      return now;
    });
  }

  /** The client has left. */
  leave(client: DownstreamClient, backends: readonly Backend[]): void {
    const { subscriptions, logs } = this.#options;
    subscriptions.drop(client, backends);
    logs.drop(client);
    for (const backend of backends) this.#release(client, backend);
  }

  #release(client: DownstreamClient, backend: Backend): void {
    const { pool, logs } = this.#options;
    pool.release(backend, client);
    logs.adjust(backend);
  }
}
