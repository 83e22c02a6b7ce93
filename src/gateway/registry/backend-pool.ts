import type { ClientFacts, ClientOrigin, DownstreamClient } from '../../downstream/port.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { Clock } from '../../timing/clock.js';
import { unavailableBecause } from '../dispatch/availability.js';
import type { Backend } from './backend.js';
import {
  ALL,
  Instance,
  type InstanceOptions,
  type PooledServer,
  type RunningBackend,
  ServerInstances,
  type Sharing,
} from './instances.js';

/** A new set of servers, from a new configuration. */
export interface PoolChange {
  readonly servers: readonly PooledServer[];
  /** Keys of the servers whose program has changed for at least some clients. */
  readonly replaced: ReadonlySet<string>;
  /** Ids of the instances whose clients need another process. */
  readonly retired: ReadonlySet<string>;
  readonly idleStopMs: number;
}

export interface PoolChangeResult {
  /** Backends that clients must not use any more. Their processes still run; the caller must end them. */
  readonly retired: readonly RunningBackend[];
  /** Servers that may have only one process. Call `startDeferred` when their retired process is gone. */
  readonly deferred: readonly string[];
}

export interface BackendPoolOptions {
  readonly clock: Clock;
  /** In the order of the configuration. */
  readonly servers: readonly PooledServer[];
  /** Creates a backend with a unique id. Its process runs as `origin` says, and waits for `profile` before the handshake. */
  readonly create: (
    server: string,
    id: string,
    profile: Promise<ClientProfile>,
    origin: ClientOrigin | undefined,
  ) => RunningBackend;
  /** The client profile that a server with `sharing: all` gets in the handshake. */
  readonly profileOfAll: ClientProfile;
  /** How long a process that no client uses waits for the next client, in milliseconds. */
  readonly idleStopMs: number;
}

/** Instances of one server that may wait for a client. The pool ends the longest unused ones beyond this number. */
const MAX_IDLE = 2;

/**
 * The instances of all servers, and which clients share each of them.
 *
 * The pool creates the first instance of each server before any client connects, because the start of a process takes
 * longer than its handshake. The handshake waits for the profile of the first client.
 */
export class BackendPool {
  readonly #options: BackendPoolOptions;
  #servers: ReadonlyMap<string, ServerInstances>;
  #idleStopMs: number;
  /**
   * Number of backends that each server ever had. It makes ids unique: `key`, `key~2`, `key~3`; keys contain no `~`.
   */
  readonly #counts = new Map<string, number>();
  #isStarted = false;
  #isClosed = false;

  constructor(options: BackendPoolOptions) {
    this.#options = options;
    this.#idleStopMs = options.idleStopMs;
    this.#servers = new Map(options.servers.map((server) => [server.key, new ServerInstances(server)]));
    for (const [key, server] of this.#servers) this.#addFirst(key, server);
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

  /** Whether this backend is in the pool. */
  includes(backend: Backend): boolean {
    return this.#find(backend) !== undefined;
  }

  /** Whether a client that used this backend before a change of the servers may still use it. */
  suits(backend: Backend, { origin }: ClientFacts): boolean {
    const found = this.#find(backend);
    return found !== undefined && found.instance.variant === found.server.variantOf(origin);
  }

  /** The backends of the same server that run with the same variables, in the same folder if that counts. */
  alike(backend: Backend): readonly Backend[] {
    const found = this.#find(backend);
    const instances = [...(found?.server.instances ?? [])].filter(({ variant }) => variant === found?.instance.variant);
    return instances.map(({ running }) => running.backend);
  }

  /** All backends of a server, the oldest first. May be empty. */
  of(key: string): readonly Backend[] {
    return [...(this.#servers.get(key)?.instances ?? [])].map(({ running }) => running.backend);
  }

  /** Of each server the oldest backend that can run, or else the oldest one: some clients may lack a variable that others have. */
  get oldest(): readonly Backend[] {
    return [...this.keys].flatMap((key) => {
      const all = this.of(key);
      const isSound = ({ dispatcher }: Backend) => unavailableBecause(dispatcher.availability) !== 'misconfigured';
      return all.find(isSound) ?? all.slice(0, 1);
    });
  }

  /** Whether this backend's process waits for the profile of its first client. */
  isUnclaimed(backend: Backend): boolean {
    const found = this.#find(backend);
    return found !== undefined && found.instance.scope === undefined;
  }

  /** Starts all backends. From then on, a new backend starts when it is created. */
  start(): void {
    this.#isStarted = true;
    const all = [...this.#servers.values()].flatMap(({ instances }) => [...instances]);
    const orderOf = ({ running }: Instance) => running.backend.firstStart.startOrder;
    all.sort((one, other) => orderOf(one) - orderOf(other));
    for (const instance of all) instance.start();
  }

  /** Switches to another set of servers. Backends that are neither removed nor replaced stay. */
  change({ servers, replaced, retired: ids, idleStopMs }: PoolChange): PoolChangeResult {
    const before = this.#servers;
    const now = new Map<string, ServerInstances>();
    const retired: RunningBackend[] = [];
    const deferred: string[] = [];
    this.#idleStopMs = idleStopMs;
    this.#servers = now;
    for (const pooled of servers) {
      const { key } = pooled;
      const known = before.get(key);
      const leaving = known?.retire(({ running }) => ids.has(running.backend.id)) ?? [];
      const isKept = known !== undefined && (known.instances.size > 0 || !replaced.has(key));
      const server = isKept ? known : new ServerInstances(pooled);
      server.configure(pooled);
      now.set(key, server);
      retired.push(...leaving.map(({ running }) => running));
      if (isKept && leaving.length === 0) continue;
      server.isStartDeferred = server.sharing === 'all';
      if (server.isStartDeferred) deferred.push(key);
      if (!isKept || leaving.some(({ origin }) => origin === undefined)) this.#addFirst(key, server);
    }
    for (const [key, server] of before) {
      if (!now.has(key)) retired.push(...server.retire(() => true).map(({ running }) => running));
    }
    return { retired, deferred };
  }

  /** Starts a server whose start was deferred, unless another change has replaced or removed it. */
  startDeferred(key: string): void {
    const server = this.#servers.get(key);
    if (server?.isStartDeferred !== true || this.#isClosed) return;
    server.isStartDeferred = false;
    for (const instance of server.instances) instance.start();
  }

  /** Assigns a backend of a server to a client, and returns it. Throws if there is no such server. */
  claim(key: string, client: DownstreamClient, facts: ClientFacts): Backend {
    const server = this.#servers.get(key);
    if (server === undefined) throw new Error(`There is no server "${key}"`);
    const scope = server.scopeOf(client, facts);
    const instance = this.#instanceFor(key, server, {
      origin: facts.origin,
      variant: server.variantOf(facts.origin),
      scope,
    });
    instance.setProfile(facts.profile);
    instance.hasRoots = facts.profile.capabilities.roots !== undefined;
    instance.endWait();
    const { backend } = instance.running;
    // A process for all clients may get a client of the merged lists at any time.
    backend.join(client, facts.server !== undefined && scope !== ALL);
    backend.startIfParked();
    return backend;
  }

  /** Like `vacate`, for a client that has left: ends a process that only this client could use. */
  release(backend: Backend, client: DownstreamClient): void {
    const unused = this.vacate(backend, client);
    unused?.backend.close();
    void unused?.end();
  }

  /**
   * Ends the use of a backend by a client. An instance that no client uses any more ends after `idleStopMs`. If only this
   * client could use it, returns it instead: the caller must end it. The first instance for all clients stays.
   */
  vacate(backend: Backend, client: DownstreamClient): RunningBackend | undefined {
    backend.clients.delete(client);
    const found = this.#find(backend);
    if (found === undefined || this.#isClosed || backend.clients.size > 0) return undefined;
    const { server, instance } = found;
    const { staysWithoutClients } = instance;
    if (staysWithoutClients === 'never') return server.retire((each) => each === instance)[0]?.running;
    if (staysWithoutClients === 'for a while') this.#keepForAWhile(server, instance);
    return undefined;
  }

  /**
   * Records that a server requests roots, which belong to one client: from now on, each client with roots gets its own
   * process.
   */
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
        instance.endWait();
        instance.running.backend.close();
      }
    }
  }

  #instanceFor(key: string, server: ServerInstances, wanted: InstanceOptions): Instance {
    let unclaimed: Instance | undefined;
    for (const instance of server.instances) {
      if (instance.variant !== wanted.variant) continue;
      if (instance.scope === wanted.scope) return instance;
      if (instance.scope === undefined) unclaimed ??= instance;
    }
    if (unclaimed === undefined) return this.#add(key, server, wanted);
    unclaimed.scope = wanted.scope;
    return unclaimed;
  }

  #addFirst(key: string, server: ServerInstances): void {
    const { firstScope } = server;
    if (firstScope === undefined) return;
    this.#add(key, server, { origin: undefined, variant: server.variantOf(undefined), ...firstScope });
  }

  #nextId(key: string): string {
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count === 1 ? key : `${key}~${count}`;
  }

  #add(key: string, server: ServerInstances, options: InstanceOptions): Instance {
    const { create, profileOfAll } = this.#options;
    const instance = new Instance(options, (...of) => create(key, this.#nextId(key), ...of));
    if (options.scope === ALL) instance.setProfile(profileOfAll);
    server.instances.add(instance);
    if (this.#isStarted && !server.isStartDeferred) instance.start();
    return instance;
  }

  #keepForAWhile(server: ServerInstances, instance: Instance): void {
    const now = this.#options.clock.now();
    instance.endWait();
    instance.idleSince = now;
    instance.cancelIdle = this.#options.clock.schedule(this.#idleStopMs, () => this.#end(server, instance));
    const idle = [...server.instances].filter(({ idleSince }) => idleSince !== undefined);
    idle.sort((one, other) => (one.idleSince ?? now) - (other.idleSince ?? now));
    for (const each of idle.slice(0, -MAX_IDLE)) this.#end(server, each);
  }

  #end({ instances }: ServerInstances, instance: Instance): void {
    instances.delete(instance);
    instance.endWait();
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
