import { type ClientProfile, profileKey } from '../mcp/client-profile.js';
import type { Cancel, Clock } from '../timing/clock.js';
import type { Backend } from './backend.js';
import type { ClientFacts, GatewayClient } from './gateway-port.js';

/**
 * Which clients share a process of a server: those that look the same to it, none, or all of them.
 *
 * A server is told of one client when it starts and may offer more or less accordingly, so clients that differ cannot
 * share without one of them being told of what another can do.
 */
export type Sharing = 'profile' | 'isolated' | 'all';

/** One server of the configuration, as the pool has to know it. */
export interface PooledServer {
  readonly key: string;
  readonly sharing: Sharing;
}

/** A backend and the process behind it. */
export interface RunningBackend {
  readonly backend: Backend;
  /** Called once; the process is kept alive from then on. */
  start(): void;
  /** Ends the process for good. */
  end(): void;
}

export interface BackendPoolOptions {
  readonly clock: Clock;
  /** In the order of the configuration. */
  readonly servers: readonly PooledServer[];
  /** Makes a backend under an id of its own. Its process is told of the client once `profile` resolves. */
  readonly create: (server: string, id: string, profile: Promise<ClientProfile>) => RunningBackend;
  /** What a server is told of that serves all clients in one process. */
  readonly profileOfAll: ClientProfile;
  /** How long a process that no client uses is kept for the next one, in milliseconds. */
  readonly idleStopMs: number;
}

/** Processes that nobody uses are a memory of the past: more than these of one server are ended at once. */
const MAX_IDLE = 2;

/**
 * The backends of all servers, each for the clients that may share it.
 *
 * The first one of each server is there from the beginning, before anybody knows its client: starting a process takes
 * longer than greeting it. It is greeted in the name of the first client that comes.
 */
export class BackendPool {
  readonly #options: BackendPoolOptions;
  readonly #servers: ReadonlyMap<string, PooledInstances>;
  #isStarted = false;
  #isClosed = false;

  constructor(options: BackendPoolOptions) {
    this.#options = options;
    this.#servers = new Map(options.servers.map((server) => [server.key, new PooledInstances(server)]));
    for (const server of this.#servers.values()) this.#add(server, server.sharing === 'all' ? ALL : undefined);
  }

  /** The servers' keys, in the order of the configuration. */
  get keys(): Iterable<string> {
    return this.#servers.keys();
  }

  has(key: string): boolean {
    return this.#servers.has(key);
  }

  /** All backends of a server, the oldest first; there may be none. */
  of(key: string): readonly Backend[] {
    return [...(this.#servers.get(key)?.instances ?? [])].map(({ running }) => running.backend);
  }

  /** Whether this backend's process waits to be told of its first client. */
  isUnclaimed(backend: Backend): boolean {
    const found = this.#find(backend);
    return found !== undefined && found.instance.scope === undefined;
  }

  /** Starts what there is; what comes later is started as it comes. */
  start(): void {
    this.#isStarted = true;
    for (const { instances } of this.#servers.values()) for (const { running } of instances) running.start();
  }

  /** The backend of a server that this client uses from now on. */
  claim(key: string, client: GatewayClient, facts: ClientFacts): Backend {
    const server = this.#servers.get(key);
    if (server === undefined) throw new Error(`There is no server "${key}"`);
    const scope = scopeOf(server, client, facts);
    const instance = this.#instanceFor(server, scope);
    instance.tell(facts.profile);
    instance.hasRoots = facts.profile.capabilities.roots !== undefined;
    instance.cancelIdle();
    const { backend } = instance.running;
    backend.clients.add(client);
    backend.wanted();
    return backend;
  }

  /** The client does not use this backend any more. */
  release(backend: Backend, client: GatewayClient): void {
    backend.clients.delete(client);
    const found = this.#find(backend);
    if (found === undefined || this.#isClosed || backend.clients.size > 0) return;
    const { server, instance } = found;
    if (instance.scope === ALL) return;
    if (typeof instance.scope !== 'string') {
      this.#end(server, instance);
      return;
    }
    instance.idleSince = this.#options.clock.now();
    instance.cancelIdle = this.#options.clock.schedule(this.#options.idleStopMs, () => this.#end(server, instance));
    const idle = [...server.instances].filter((each) => each.isIdle).sort((a, b) => a.idleSince - b.idleSince);
    for (const each of idle.slice(0, -MAX_IDLE)) this.#end(server, each);
  }

  /** The server asks for roots, which are one client's: clients that have any get a process of their own from now on. */
  noteRootsAsked(backend: Backend): void {
    const found = this.#find(backend);
    if (found === undefined) return;
    found.server.asksForRoots = true;
    const [client, ...others] = backend.clients;
    const { instance } = found;
    const isItsOwn = typeof instance.scope === 'string' && client !== undefined && others.length === 0;
    if (isItsOwn && instance.hasRoots) instance.scope = client;
  }

  close(): void {
    this.#isClosed = true;
    for (const { instances } of this.#servers.values()) {
      for (const instance of instances) {
        instance.cancelIdle();
        instance.running.backend.close();
      }
    }
  }

  #instanceFor(server: PooledInstances, scope: Scope): Instance {
    let unclaimed: Instance | undefined;
    for (const instance of server.instances) {
      if (instance.scope === scope) return instance;
      if (instance.scope === undefined) unclaimed ??= instance;
    }
    if (unclaimed === undefined) return this.#add(server, scope);
    unclaimed.scope = scope;
    return unclaimed;
  }

  #add(server: PooledInstances, scope: Scope | undefined): Instance {
    const { create, profileOfAll } = this.#options;
    const instance = new Instance(scope, (profile) => create(server.key, server.nextId(), profile));
    if (scope === ALL) instance.tell(profileOfAll);
    server.instances.add(instance);
    if (this.#isStarted) instance.running.start();
    return instance;
  }

  #end({ instances }: PooledInstances, instance: Instance): void {
    instances.delete(instance);
    instance.cancelIdle();
    instance.running.backend.close();
    instance.running.end();
  }

  #find(backend: Backend): { readonly server: PooledInstances; readonly instance: Instance } | undefined {
    const server = this.#servers.get(backend.key);
    for (const instance of server?.instances ?? []) {
      if (server !== undefined && instance.running.backend === backend) return { server, instance };
    }
    return undefined;
  }
}

/** Who shares: everybody, those whose profile has this key, or one client alone. */
type Scope = typeof ALL | string | GatewayClient;

const ALL = Symbol('all clients');

function scopeOf({ sharing, asksForRoots }: PooledInstances, client: GatewayClient, facts: ClientFacts): Scope {
  if (sharing === 'all') return ALL;
  const hasOwnRoots = asksForRoots && facts.profile.capabilities.roots !== undefined;
  return sharing === 'isolated' || hasOwnRoots ? client : profileKey(facts.profile, client.principal);
}

class PooledInstances {
  readonly key: string;
  readonly sharing: Sharing;
  readonly instances = new Set<Instance>();
  asksForRoots = false;
  #count = 0;

  constructor({ key, sharing }: PooledServer) {
    this.key = key;
    this.sharing = sharing;
  }

  /** The first is named as the server; keys have no `~`. */
  nextId(): string {
    this.#count += 1;
    return this.#count === 1 ? this.key : `${this.key}~${this.#count}`;
  }
}

/** One backend of a server. */
class Instance {
  /** Unknown until a client claims it. */
  scope: Scope | undefined;
  /** Whether its clients have roots: those that share it are alike in that. */
  hasRoots = false;
  idleSince = 0;
  cancelIdle: Cancel = () => {};
  readonly running: RunningBackend;
  /** Tells the process of its client; only the first time counts. */
  tell: (profile: ClientProfile) => void = () => {};

  constructor(scope: Scope | undefined, create: (profile: Promise<ClientProfile>) => RunningBackend) {
    this.scope = scope;
    this.running = create(
      new Promise((resolve) => {
        this.tell = resolve;
      }),
    );
  }

  /** Whether it only waits for a client like its last one. */
  get isIdle(): boolean {
    return typeof this.scope === 'string' && this.running.backend.clients.size === 0;
  }
}
