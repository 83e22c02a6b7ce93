import type { ClientFacts, DownstreamClient } from '../downstream/port.js';
import type { NamedView } from './named-views.js';
import type { Backend } from './registry/backend.js';
import type { BackendPool } from './registry/backend-pool.js';
import type { RunningBackend } from './registry/instances.js';
import type { LogLevelRouter } from './reverse/log-level-router.js';
import type { Subscriptions } from './reverse/subscriptions.js';

/** Which servers a client sees. */
type SomeServers = Pick<NamedView, 'showsServer'>;

const ALL_SERVERS: SomeServers = { showsServer: () => true };

export interface ClientBackendsOptions {
  readonly pool: BackendPool;
  readonly subscriptions: Subscriptions;
  readonly logs: LogLevelRouter;
}

interface MovedBackends {
  readonly backends: readonly Backend[];
  /** Backends of the client that nobody can use any more. They may have calls in flight; the caller must end them. */
  readonly unused: readonly RunningBackend[];
}

/** Gives each client one backend of each server that it sees, and takes along what the client has there. */
export class ClientBackends {
  readonly #options: ClientBackendsOptions;

  constructor(options: ClientBackendsOptions) {
    this.#options = options;
  }

  /** The backends of a new client. Throws if the one server that the client wants to see does not exist. */
  join(client: DownstreamClient, facts: ClientFacts, view: SomeServers = ALL_SERVERS): Backend[] {
    const { pool, logs } = this.#options;
    const keys = facts.server === undefined ? [...pool.keys].filter((key) => view.showsServer(key)) : [facts.server];
    const backends = keys.map((key) => pool.claim(key, client, facts));
    // A new client has no level yet, and gets what the servers send.
    for (const backend of backends) logs.adjust(backend);
    return backends;
  }

  /** The backends of a client after the servers have changed: the same ones as before where the client may keep them. */
  move(
    client: DownstreamClient,
    facts: ClientFacts,
    old: ReadonlyMap<string, Backend>,
    view: SomeServers = ALL_SERVERS,
  ): MovedBackends {
    const { pool, subscriptions, logs } = this.#options;
    const unused: RunningBackend[] = [];
    const leave = (before: Backend) => {
      const running = pool.vacate(before, client);
      if (running !== undefined) unused.push(running);
      logs.adjust(before);
    };
    const isShown = (key: string) => (facts.server === undefined ? view.showsServer(key) : key === facts.server);
    const keys = [...pool.keys].filter(isShown);
    const hidden = [...old.values()].filter((before) => !isShown(before.key) && pool.includes(before));
    subscriptions.drop(client, hidden);
    for (const before of hidden) leave(before);
    const backends = keys.map((key) => {
      const before = old.get(key);
      if (before !== undefined && pool.suits(before, facts)) return before;
      const now = pool.claim(key, client, facts);
      logs.adjust(now);
      if (before === undefined) return now;
      now.copyListsFrom(before);
      subscriptions.move(client, before, now);
      // A retired backend keeps its clients until its last calls have ended. One that other clients use goes on.
      if (pool.includes(before)) leave(before);
      return now;
    });
    return { backends, unused };
  }

  /** The client has left. */
  leave(client: DownstreamClient, backends: readonly Backend[]): void {
    const { pool, subscriptions, logs } = this.#options;
    subscriptions.drop(client, backends);
    logs.drop(client);
    for (const backend of backends) {
      pool.release(backend, client);
      logs.adjust(backend);
    }
  }
}
