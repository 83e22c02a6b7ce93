import type { ClientFacts, DownstreamClient } from '../../downstream/port.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { Clock } from '../../timing/clock.js';
import type { Backend } from './backend.js';
import {
  ALL,
  Instance,
  type PooledServer,
  type RunningBackend,
  type Scope,
  ServerInstances,
  type Sharing,
  scopeOf,
} from './instances.js';

/** The servers from now on. */
export interface PoolChange {
  readonly servers: readonly PooledServer[];
  /** Of those that were there before, the ones that are to begin anew. */
  readonly replaced: ReadonlySet<string>;
  readonly idleStopMs: number;
}

export interface PoolChangeResult {
  /** No client is to use them any more. They still run; to end them is the caller's affair. */
  readonly retired: readonly RunningBackend[];
  /** Servers that may exist only once: to be started with `startNow` when the retired process is gone. */
  readonly deferred: readonly string[];
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
  #servers: ReadonlyMap<string, ServerInstances>;
  #idleStopMs: number;
  /** How many backends each server had. The first is named as the server, whose key has no `~`; no id is given twice. */
  readonly #counts = new Map<string, number>();
  #isStarted = false;
  #isClosed = false;

  constructor(options: BackendPoolOptions) {
    this.#options = options;
    this.#idleStopMs = options.idleStopMs;
    this.#servers = new Map(options.servers.map((server) => [server.key, new ServerInstances(server)]));
    for (const server of this.#servers.values()) this.#addFirst(server);
  }

  /** The servers' keys, in the order of the configuration. */
  get keys(): Iterable<string> {
    return this.#servers.keys();
  }

  has(key: string): boolean {
    return this.#servers.has(key);
  }

  sharingOf(key: string): Sharing | undefined {
    return this.#servers.get(key)?.sharing;
  }

  /** Whether clients may go on using this backend. */
  includes(backend: Backend): boolean {
    return this.#find(backend) !== undefined;
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

  /** Other servers from now on. Those that are neither gone nor replaced keep their backends and all that is in them. */
  change({ servers, replaced, idleStopMs }: PoolChange): PoolChangeResult {
    const before = this.#servers;
    this.#idleStopMs = idleStopMs;
    this.#servers = new Map(
      servers.map((server) => {
        const known = replaced.has(server.key) ? undefined : before.get(server.key);
        return [server.key, known ?? new ServerInstances(server)];
      }),
    );
    const retired: RunningBackend[] = [];
    const held: string[] = [];
    for (const [key, server] of before) {
      if (this.#servers.get(key) === server) continue;
      for (const instance of server.instances) {
        instance.cancelIdle();
        retired.push(instance.running);
      }
    }
    for (const [key, server] of this.#servers) {
      if (before.get(key) === server) continue;
      server.isStartDeferred = server.sharing === 'all';
      if (server.isStartDeferred) held.push(key);
      this.#addFirst(server);
    }
    return { retired, deferred: held };
  }

  /** Starts a server that was held back, unless it was changed again. */
  startDeferred(key: string): void {
    const server = this.#servers.get(key);
    if (server?.isStartDeferred !== true || this.#isClosed) return;
    server.isStartDeferred = false;
    for (const { running } of server.instances) running.start();
  }

  /** The backend of a server that this client uses from now on. */
  claim(key: string, client: DownstreamClient, facts: ClientFacts): Backend {
    const server = this.#servers.get(key);
    if (server === undefined) throw new Error(`There is no server "${key}"`);
    const scope = scopeOf(server, client, facts);
    const instance = this.#instanceFor(server, scope);
    instance.setProfile(facts.profile);
    instance.hasRoots = facts.profile.capabilities.roots !== undefined;
    instance.cancelIdle();
    const { backend } = instance.running;
    backend.clients.add(client);
    backend.startIfParked();
    return backend;
  }

  /** The client does not use this backend any more. */
  release(backend: Backend, client: DownstreamClient): void {
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
    instance.cancelIdle = this.#options.clock.schedule(this.#idleStopMs, () => this.#end(server, instance));
    const idle = [...server.instances].filter((each) => each.isIdle).sort((a, b) => a.idleSince - b.idleSince);
    for (const each of idle.slice(0, -MAX_IDLE)) this.#end(server, each);
  }

  /** The server asks for roots, which are one client's: clients that have any get a process of their own from now on. */
  noteRootsRequest(backend: Backend): void {
    const found = this.#find(backend);
    if (found === undefined) return;
    found.server.requestsRoots = true;
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

  #instanceFor(server: ServerInstances, scope: Scope): Instance {
    let unclaimed: Instance | undefined;
    for (const instance of server.instances) {
      if (instance.scope === scope) return instance;
      if (instance.scope === undefined) unclaimed ??= instance;
    }
    if (unclaimed === undefined) return this.#add(server, scope);
    unclaimed.scope = scope;
    return unclaimed;
  }

  #addFirst(server: ServerInstances): void {
    this.#add(server, server.sharing === 'all' ? ALL : undefined);
  }

  #nextId(key: string): string {
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count === 1 ? key : `${key}~${count}`;
  }

  #add(server: ServerInstances, scope: Scope | undefined): Instance {
    const { create, profileOfAll } = this.#options;
    const instance = new Instance(scope, (profile) => create(server.key, this.#nextId(server.key), profile));
    if (scope === ALL) instance.setProfile(profileOfAll);
    server.instances.add(instance);
    if (this.#isStarted && !server.isStartDeferred) instance.running.start();
    return instance;
  }

  #end({ instances }: ServerInstances, instance: Instance): void {
    instances.delete(instance);
    instance.cancelIdle();
    instance.running.backend.close();
    void instance.running.end();
  }

  #find(backend: Backend): { readonly server: ServerInstances; readonly instance: Instance } | undefined {
    const server = this.#servers.get(backend.key);
    for (const instance of server?.instances ?? []) {
      if (server !== undefined && instance.running.backend === backend) return { server, instance };
    }
    return undefined;
  }
}
