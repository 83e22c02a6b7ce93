import type { ClientFacts, DownstreamClient } from '../downstream/port.js';
import type { NamedView } from './catalog/tool-policy.js';
import { ClientView, type ClientViewOptions } from './client-view.js';
import type { Backend } from './registry/backend.js';
import type { BackendPool, RunningBackend } from './registry/backend-pool.js';
import type { LogLevelRouter } from './reverse/log-level-router.js';
import type { Subscriptions } from './reverse/subscriptions.js';

type SharedOptions = Omit<ClientViewOptions, 'backends' | 'named' | 'naming' | 'ownTools' | 'startupWaitMs' | 'before'>;

interface ClientViewsOptions extends SharedOptions {
  readonly settings: () => Pick<ClientViewOptions, 'ownTools' | 'startupWaitMs'>;
}

/** Distinguishes client views with the same backends. */
interface ViewKind {
  readonly isAlone: boolean;
  /** The view of the configuration. */
  readonly named: NamedView | undefined;
}

/** All views, each for the clients that use the same backends. */
export class ClientViews {
  readonly #options: ClientViewsOptions;
  /** By their backends. */
  readonly #views = new Map<string, ClientView>();

  constructor(options: ClientViewsOptions) {
    this.#options = options;
  }

  get all(): readonly ClientView[] {
    return [...this.#views.values()];
  }

  /** The view of these backends; with `isAlone`, of a single unchanged server. A new view replaces `before`. */
  of(backends: readonly Backend[], { isAlone, named }: ViewKind, before?: ClientView): ClientView {
    const id = idOf(backends, { isAlone, named });
    const known = this.#views.get(id);
    if (known !== undefined) return known;
    const { settings, ...shared } = this.#options;
    const { ownTools, startupWaitMs } = settings();
    const naming = isAlone ? 'original' : 'exposed';
    const own = { backends, named, naming, ownTools: isAlone ? [] : ownTools, startupWaitMs, before } as const;
    const view = new ClientView({ ...shared, ...own });
    this.#views.set(id, view);
    return view;
  }

  eachOf(backend: Backend, visit: (view: ClientView) => void): void {
    for (const view of this.#views.values()) if (view.uses(backend)) visit(view);
  }

  /** Removes and returns all views. Call `keep` for those that clients continue to use. */
  takeAll(): readonly ClientView[] {
    const { all } = this;
    this.#views.clear();
    return all;
  }

  /** Returns whether the view stays. It does not if clients that have moved share another view of the same backends. */
  keep(view: ClientView): boolean {
    const { isUnchanged: isAlone, named } = view;
    const id = idOf([...view.backends.values()], { isAlone, named });
    const known = this.#views.get(id) ?? view;
    this.#views.set(id, known);
    return known === view;
  }

  /** The view has no clients any more. */
  end(view: ClientView): void {
    view.close();
    for (const [id, each] of this.#views) if (each === view) this.#views.delete(id);
  }

  close(): void {
    for (const view of this.takeAll()) view.close();
  }
}

function idOf(backends: readonly Backend[], { isAlone, named }: ViewKind): string {
  return JSON.stringify([isAlone, named?.name, ...backends.map((backend) => backend.id)]);
}

/** Gives each client one backend of each server that it sees, and takes along what the client has there. */
export class ClientBackends {
  readonly #options: ClientBackendsOptions;

  constructor(options: ClientBackendsOptions) {
    this.#options = options;
  }

  /** The backends of a new client. Throws if the one server that the client wants to see does not exist. */
  join(client: DownstreamClient, facts: ClientFacts, view = ALL_SERVERS): Backend[] {
    const { pool, logs } = this.#options;
    const keys = facts.server === undefined ? [...pool.keys].filter((key) => view.showsServer(key)) : [facts.server];
    const backends = keys.map((key) => pool.claim(key, client, facts));
    // A new client has no level yet, and gets what the servers send.
    for (const backend of backends) logs.adjust(backend);
    return backends;
  }

  /**
   * The backends of a client after the servers have changed: the same ones as before where the client may keep them. The
   * caller must end the `unused` ones, which no other client uses, after their calls in flight.
   */
  move(client: DownstreamClient, facts: ClientFacts, old: ReadonlyMap<string, Backend>, view = ALL_SERVERS) {
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

/** Servers that a client sees. */
type SomeServers = Pick<NamedView, 'showsServer'>;

const ALL_SERVERS: SomeServers = { showsServer: () => true };

type ClientBackendsOptions = Readonly<{ pool: BackendPool; subscriptions: Subscriptions; logs: LogLevelRouter }>;
