import type { ClientFacts, ClientOrigin, DownstreamClient } from '../../downstream/port.js';
import { type ClientProfile, profileKey } from '../../wire/mcp/handshake.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { Backend, DescribedServer, RunningBackend } from './backend.js';
import {
  ALL,
  describedBy,
  Instance,
  type InstanceOptions,
  isOpenTo,
  type PooledServer,
  ServerInstances,
  type Sharing,
} from './server-instances.js';

/** A new set of servers, from a new configuration. */
export interface PoolChange extends PoolSettings {
  /** Keys of the servers whose program has changed for at least some clients. */
  readonly replaced: ReadonlySet<string>;
  /** Ids of the instances whose clients need another process. */
  readonly retired: ReadonlySet<string>;
}

export interface PoolSettings {
  readonly servers: readonly PooledServer[];
  /** Time that a process without clients waits for the next client, in milliseconds. */
  readonly idleStopMs: number;
}

export interface BackendPoolOptions extends PoolSettings {
  readonly clock: Clock;
  /** Creates a backend with a unique id. Its process runs as `origin` says, and its handshake waits for `profile`. */
  readonly create: (
    server: string,
    id: string,
    profile: Promise<ClientProfile>,
    origin: ClientOrigin | undefined,
  ) => RunningBackend;
  /** The client profile that a server with `sharing: all` gets in the handshake. */
  readonly profileOfAll: ClientProfile;
}

/** Limit of the instances of one server that wait for a client. Beyond it, the pool ends those that were unused longest. */
const MAX_IDLE = 2;

/**
 * The instances of all servers, and the clients that share each of them.
 *
 * The pool creates the first instance of each server before any client connects, because the start of a process takes
 * longer than its handshake. The handshake waits for the profile of the first client.
 */
export class BackendPool {
  readonly #options: BackendPoolOptions;
  #servers: ReadonlyMap<string, ServerInstances>;
  #idleStopMs: number;
  /** Number of backends that each server ever had. Makes ids unique: `key`, `key~2`, `key~3`. No key contains `~`. */
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

  /** Whether clients may use a server with this key. */
  has(key: string): boolean {
    return this.#servers.get(key)?.isInterceptor === false;
  }

  /** Whether clients of this origin may have the server. */
  isFor(key: string, origin: ClientOrigin | undefined): boolean {
    return this.has(key) && this.#servers.get(key)?.isFor(origin) === true;
  }

  /** Whether some clients have other servers than others. */
  get differs(): boolean {
    return [...this.#servers.values()].some(({ isLimited }) => isLimited);
  }

  sharingOf(key: string): Sharing | undefined {
    return this.#servers.get(key)?.sharing;
  }

  includes(backend: Backend): boolean {
    return this.#find(backend) !== undefined;
  }

  /** Whether a client that used this backend before a change of the servers may still use it. */
  suits(backend: Backend, { origin }: ClientFacts): boolean {
    const found = this.#find(backend);
    return found !== undefined && found.instance.variant === found.server.variantOf(origin);
  }

  /**
   * The backends of the same server that run with the same variables, and in the same folder if the folder matters, but not
   * those of another user.
   */
  alike(backend: Backend): readonly Backend[] {
    const { server, instance } = this.#find(backend) ?? {};
    if (server === undefined || instance === undefined) return [];
    const { variant, principal } = instance;
    const alike = [...server.instances].filter((each) => each.variant === variant && isOpenTo(each, principal));
    return alike.map(({ running }) => running.backend);
  }

  of(key: string): readonly Backend[] {
    return [...(this.#servers.get(key)?.instances ?? [])].map(({ running }) => running.backend);
  }

  /** For each server, its oldest backend that can run; if none can, for example because variables are missing, its oldest backend. */
  get oldest(): readonly Backend[] {
    return [...this.keys].flatMap((key) => oldestOf(this.of(key)));
  }

  /**
   * Returns a description of each server for a client without backends of its own: by a process that runs as the client's own
   * would, or else by the last such process. Without users, any process may describe the server.
   */
  describedServersFor(facts: ClientFacts): readonly DescribedServer[] {
    return [...this.#servers.values()].flatMap((server) => {
      if (!server.isFor(facts.origin)) return [];
      const variant = server.variantOf(facts.origin);
      const { principal } = facts.user ?? {};
      const all = [...server.instances].filter((each) => principal === undefined || isOpenTo(each, principal));
      const alike = all.filter((each) => each.variant === variant);
      const earlier = server.earlierFor(variant, principal);
      // Without users, all clients belong to the same person.
      const others = principal === undefined && earlier === undefined ? all : [];
      const backends = (alike.length > 0 ? alike : others).map(({ running }) => running.backend);
      const described = backends.length > 0 || earlier === undefined ? backends : [describedBy(earlier)];
      const running = backends.find(({ dispatcher }) => dispatcher.connection !== undefined);
      return running ?? described.find(({ handshake }) => handshake !== undefined) ?? [];
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

  /**
   * Switches to another set of servers. The caller must end the `retired` backends, whose processes still run. A `deferred` server may have
   * only one process, so the caller must call `startDeferred` for it when the process of the retired backend is gone.
   */
  change({ servers, replaced, retired: ids, idleStopMs }: PoolChange) {
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
      if (replaced.has(key)) server.earlier = [];
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
    if (server === undefined || server.isInterceptor) throw new Error(`There is no server "${key}"`);
    const scope = server.scopeOf(client, facts);
    const instance = this.#instanceFor(key, server, {
      origin: facts.origin,
      variant: server.variantOf(facts.origin),
      scope,
    });
    // A process for several clients gets the capabilities of all, which include no roots.
    const isForMany = scope === ALL || server.sharing === 'user';
    const profile = server.sharing === 'user' ? this.#options.profileOfAll : facts.profile;
    instance.setProfile(facts.user === undefined ? profile : { ...profile, principal: facts.user.principal });
    instance.hasRoots = profile.capabilities.roots !== undefined;
    if (scope !== ALL) instance.principal = client.principal;
    instance.profileScope = profileKey(facts.profile, client.principal);
    instance.endWait();
    const { backend } = instance.running;
    const earlier = server.earlierFor(instance.variant, client.principal);
    if (earlier !== undefined && backend.clients.size === 0) backend.expect(earlier.backend);
    // A process for all clients must read its lists, because a client of the merged lists may come at any time.
    backend.join(client, facts.server !== undefined && !isForMany);
    backend.startIfParked();
    return backend;
  }

  /** Ends the use of a backend by a client that has left. Also ends a process that only this client could use. */
  release(backend: Backend, client: DownstreamClient): void {
    const unused = this.vacate(backend, client);
    unused?.backend.close();
    void unused?.end();
  }

  /**
   * Ends the use of a backend by a client. If only this client could use the instance, returns it, and the caller must
   * end it. Otherwise, an instance without clients ends after `idleStopMs`. The first instance for all clients stays.
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

  /** The principals with processes of their own. */
  get principals(): ReadonlySet<string> {
    const all = [...this.#servers.values()].flatMap(({ instances }) => [...instances]);
    return new Set(all.flatMap(({ principal }) => principal ?? []));
  }

  /** Ends the processes that are kept for clients of this principal, because they are served elsewhere now. */
  endKept(principal: string): void {
    for (const server of this.#servers.values())
      for (const instance of [...server.instances])
        if (instance.principal === principal && instance.idleSince !== undefined) this.#end(server, instance);
  }

  /**
   * Records the description by a new process, for clients that come while none runs. With `auto`, a process without sessions
   * serves further clients, too.
   */
  noteHandshake(backend: Backend): void {
    const { server, instance } = this.#find(backend) ?? {};
    if (server !== undefined && instance !== undefined) server.remember(instance);
    const revision = backend.openConnection?.revision;
    if (server?.sharing !== 'auto' || revision === undefined) return;
    server.isSessionless = isModernRevision(revision);
    const isShared = server.isSessionless && !(server.requestsRoots && instance?.hasRoots === true);
    if (isShared && typeof instance?.scope === 'object') instance.scope = instance.profileScope;
  }

  /** Records that the server requests roots. From now on, each client with roots gets its own process. */
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
    if (options.scope === ALL) {
      // Lists that depend on the user must not come from the cache of another one.
      instance.principal = server.userOf(options);
      const { principal } = instance;
      instance.setProfile(principal === undefined ? profileOfAll : { ...profileOfAll, principal });
    }
    // While another process has the lists of the server, the process of a further session can wait for its first call.
    const isFurther = server.sharing === 'auto' && [...server.instances].some(({ isConnected }) => isConnected);
    server.instances.add(instance);
    if (this.#isStarted && !server.isStartDeferred) instance.start(isFurther);
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

/** Returns the oldest backend that can run. If none can, returns the oldest one. */
function oldestOf(backends: readonly Backend[]): readonly Backend[] {
  const sound = backends.find(({ dispatcher }) => dispatcher.availability.failReason !== 'misconfigured');
  return sound === undefined ? backends.slice(0, 1) : [sound];
}
