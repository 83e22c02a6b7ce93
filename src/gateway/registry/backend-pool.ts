import type { ClientFacts, ClientOrigin, DownstreamClient, Exchange } from '../../downstream/port.js';
import { type ClientProfile, profileKey } from '../../wire/mcp/handshake.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { NO_LISTS } from '../catalog/offered-lists.js';
import { unavailableBecause } from '../dispatch/availability.js';
import type { Backend } from './backend.js';

/** A new set of servers, from a new configuration. */
export interface PoolChange {
  readonly servers: readonly PooledServer[];
  /** Keys of the servers whose program has changed for at least some clients. */
  readonly replaced: ReadonlySet<string>;
  /** Ids of the instances whose clients need another process. */
  readonly retired: ReadonlySet<string>;
  readonly idleStopMs: number;
}

export interface BackendPoolOptions {
  readonly clock: Clock;
  readonly servers: readonly PooledServer[];
  /** Creates a backend with a unique id. Its process runs as `origin` says, and its handshake waits for `profile`. */
  readonly create: (
    server: string,
    id: string,
    profile: Promise<ClientProfile>,
    origin: ClientOrigin | undefined,
  ) => RunningBackend;
  /** The client profile that a server with `sharing: all` gets in the handshake. */
  readonly profileOfAll: ClientProfile;
  /** Time that a process without clients waits for the next client, in milliseconds. */
  readonly idleStopMs: number;
}

/** Limit of the instances of one server that wait for a client. Beyond it, the pool ends those that were unused longest. */
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

  has(key: string): boolean {
    return this.#servers.has(key);
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

  /** The oldest backend of each server that can run, or else the oldest. Some lack a variable that others have. */
  get oldest(): readonly Backend[] {
    return [...this.keys].flatMap((key) => oldestOf(this.of(key)));
  }

  /** The processes that describe each server to a client without backends of its own: one that runs alike, or that ended last. */
  tellersFor(facts: ClientFacts): readonly Teller[] {
    return [...this.#servers.values()].flatMap((server) => {
      const variant = server.variantOf(facts.origin);
      const { principal } = facts.user ?? {};
      const all = [...server.instances].filter((each) => principal === undefined || isOpenTo(each, principal));
      const alike = all.filter((each) => each.variant === variant);
      const told = server.toldTo(variant, principal);
      // Without users, all clients belong to the same person.
      const others = principal === undefined && told === undefined ? all : [];
      const backends = (alike.length > 0 ? alike : others).map(({ running }) => running.backend);
      const tellers = backends.length > 0 || told === undefined ? backends : [toldBy(told)];
      const running = backends.find(({ dispatcher }) => dispatcher.connection !== undefined);
      return running ?? tellers.find(({ handshake }) => handshake !== undefined) ?? [];
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
   * Switches to another set of servers. The caller must end the `retired` backends, whose processes still run. A
   * `deferred` server may have only one process, so the caller must call `startDeferred` for it when the process of the
   * retired backend is gone.
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
      if (replaced.has(key)) server.told = [];
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
    // A process for several clients gets the capabilities of all, which include no roots.
    const isForMany = scope === ALL || server.sharing === 'user';
    const profile = server.sharing === 'user' ? this.#options.profileOfAll : facts.profile;
    instance.setProfile(facts.user === undefined ? profile : { ...profile, principal: facts.user.principal });
    instance.hasRoots = profile.capabilities.roots !== undefined;
    if (scope !== ALL) instance.principal = client.principal;
    instance.profileScope = profileKey(facts.profile, client.principal);
    instance.endWait();
    const { backend } = instance.running;
    const told = server.toldTo(instance.variant, client.principal);
    if (told !== undefined && backend.clients.size === 0) backend.expect(told.backend);
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

  /** Ends the processes that are kept for clients of this principal, who are served elsewhere now. */
  endKept(principal: string): void {
    for (const server of this.#servers.values())
      for (const instance of [...server.instances])
        if (instance.principal === principal && instance.idleSince !== undefined) this.#end(server, instance);
  }

  /**
   * Records what a new process has told, for clients that come when none runs. With `auto`, a process without sessions serves
   * further clients, too.
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
    if (options.scope === ALL) instance.setProfile(profileOfAll);
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

/**
 * Which clients share a process of a server: those with the same profile, those of the same user, those with the same
 * profile and working folder, none, or all. `auto` means `profile` for a server whose revision has no sessions, else
 * `isolated`.
 *
 * A server learns the capabilities of one client in the handshake and may adapt its offer to them. Clients with
 * different capabilities therefore get different processes.
 */
export type Sharing = 'profile' | 'user' | 'folder' | 'isolated' | 'all' | 'auto';

interface PooledServer {
  readonly key: string;
  readonly sharing: Sharing;
  /** With `auto`: whether the server is known to speak a revision without sessions before a process has told. */
  readonly isSessionless?: () => boolean;
  /** Whether the server cannot run for clients without an origin. */
  readonly isMisconfigured?: boolean;
  /** Whether no instance is made before a client needs one. */
  readonly waitsForClient?: boolean;
  /**
   * Identifies the variant of the server for clients of this origin. Only clients with the same variant share a
   * process, whatever `sharing` says. Absent if the server is the same for all clients. The text may contain secrets.
   */
  readonly variantOf?: (origin: ClientOrigin | undefined) => string;
}

/** A backend, and control of the process behind it. */
export interface RunningBackend {
  readonly backend: Backend;
  /** Starts the process, which the supervisor then keeps running, or lets it wait for a call. Called once. */
  start(waitsForCall: boolean): void;
  /** Stops the process for good. Resolves when it is gone. */
  end(): Promise<void>;
}

/** A description of a server for clients. */
export type Teller = Pick<Backend, 'key' | 'prefix' | 'handshake' | 'listsAs'>;

/** A backend that has had a process, which may have ended since. */
interface Told extends Pick<Instance, 'variant' | 'principal'> {
  readonly backend: Backend;
  /** Whether the configuration has changed since, so that the lists may be shaped in another way. */
  readonly areListsOld?: boolean;
}

function toldBy({ backend, areListsOld }: Told): Teller {
  const { key, prefix, lastHandshake: handshake } = backend;
  return { key, prefix, handshake, listsAs: (naming) => (areListsOld ? NO_LISTS : backend.knownListsAs(naming)) };
}

/** Limit of what is remembered of one server. Beyond it, what was told first is forgotten. */
const MAX_TOLD = 16;

/** The clients of one variant that share an instance: all of them, those with this profile key or principal, or one client. */
type Scope = typeof ALL | string | DownstreamClient;

const ALL = Symbol('all clients');

class ServerInstances {
  readonly instances = new Set<Instance>();
  /** Whether the server has ever sent `roots/list`. */
  requestsRoots = false;
  /** With `auto`: whether its latest process, or else the one of an earlier run, speaks a revision without sessions. */
  isSessionless: boolean | undefined;
  /** Whether its processes must not start before the retired ones are gone. */
  isStartDeferred = false;
  /** The descriptions by the latest processes, the newest first: one for each variant and principal. */
  told: readonly Told[] = [];
  #server: PooledServer;

  constructor(server: PooledServer) {
    this.#server = server;
  }

  get sharing(): Sharing {
    return this.#server.sharing;
  }

  variantOf(origin: ClientOrigin | undefined): string {
    return this.#server.variantOf?.(origin) ?? '';
  }

  /** Sets another configuration of the server without replacing its instances. */
  configure(server: PooledServer): void {
    this.#server = server;
    for (const instance of this.instances) instance.variant = this.variantOf(instance.origin);
    // The lists of an ended process may be shaped in another way now.
    this.told = this.told.map((told) => ({ ...told, areListsOld: true }));
  }

  /** The description for clients of this variant and, if it is known, of this principal. */
  toldTo(variant: string, principal: string | undefined): Told | undefined {
    return this.told.find((each) => each.variant === variant && (principal === undefined || isOpenTo(each, principal)));
  }

  remember({ variant, principal, running: { backend } }: Instance): void {
    const others = this.told.filter((each) => each.variant !== variant || each.principal !== principal);
    this.told = [{ variant, principal, backend }, ...others].slice(0, MAX_TOLD);
  }

  /** Removes these instances, so that no client gets them any more. Their processes still run. */
  retire(isLeaving: (instance: Instance) => boolean): Instance[] {
    const leaving = [...this.instances].filter(isLeaving);
    for (const instance of leaving) {
      instance.endWait();
      this.instances.delete(instance);
    }
    return leaving;
  }

  /** The scope of the instance for a client. A client with roots does not share if the server requests roots. */
  scopeOf(client: DownstreamClient, { profile, origin }: ClientFacts): Scope {
    const { sharing } = this;
    const hasNoProcess = this.#hasNoProcess && this.variantOf(origin) === this.variantOf(undefined);
    if (sharing === 'all' || hasNoProcess) return ALL;
    // No profile key is equal, because each is a JSON array.
    if (sharing === 'user') return `user ${client.principal}`;
    const hasOwnRoots = this.requestsRoots && profile.capabilities.roots !== undefined;
    if (sharing === 'auto') this.isSessionless ??= this.#server.isSessionless?.() === true;
    const isApart = sharing === 'isolated' || (sharing === 'auto' && this.isSessionless === false);
    return isApart || hasOwnRoots ? client : profileKey(profile, client.principal);
  }

  /** Scope of the instance that exists before any client, if there is one. The first client decides an `undefined` scope. */
  get firstScope(): { readonly scope: Scope | undefined } | undefined {
    if (this.#server.waitsForClient === true) return undefined;
    if (this.sharing === 'all' || this.#hasNoProcess) return { scope: ALL };
    return this.sharing === 'folder' ? undefined : { scope: undefined };
  }

  /** Whether the server cannot run for clients without an origin. They share a backend without a process. */
  get #hasNoProcess(): boolean {
    return this.#server.isMisconfigured === true;
  }
}

interface InstanceOptions {
  readonly origin: ClientOrigin | undefined;
  readonly variant: string;
  readonly scope: Scope | undefined;
}

/** One instance of a server: a backend, and the clients that it is for. */
export class Instance {
  readonly origin: ClientOrigin | undefined;
  variant: string;
  /** `undefined` until a client claims the instance. */
  scope: Scope | undefined;
  /** The principal of its clients. `undefined` until a client claims the instance, and if it is for all clients. */
  principal: string | undefined;
  /** The scope that clients like its first client share. */
  profileScope: string | undefined;
  /** Whether its clients have the roots capability, which is the same for all clients of one instance. */
  hasRoots = false;
  /** Time at which the last client left, in milliseconds on the clock. `undefined` while no client is awaited. */
  idleSince: number | undefined;
  cancelIdle: Cancel = () => {};
  readonly running: RunningBackend;
  /** Sets the client profile for the handshake. Later calls do nothing. */
  setProfile: (profile: ClientProfile) => void = () => {};
  #isStarted = false;

  constructor(
    { origin, variant, scope }: InstanceOptions,
    create: (profile: Promise<ClientProfile>, origin: ClientOrigin | undefined) => RunningBackend,
  ) {
    this.origin = origin;
    this.variant = variant;
    this.scope = scope;
    const profile = new Promise<ClientProfile>((resolve) => {
      this.setProfile = resolve;
    });
    this.running = create(profile, origin);
  }

  start(waitsForCall = false): void {
    if (!this.#isStarted) this.running.start(waitsForCall);
    this.#isStarted = true;
  }

  get isConnected(): boolean {
    return this.running.backend.dispatcher.connection !== undefined;
  }

  /** Ends the wait for a client, because a client uses the instance now or because none will. */
  endWait(): void {
    this.idleSince = undefined;
    this.cancelIdle();
  }

  /** How long the instance stays without clients. An instance for one client does not stay. */
  get staysWithoutClients(): 'always' | 'for a while' | 'never' {
    if (this.scope === ALL) return this.origin === undefined ? 'always' : 'for a while';
    return typeof this.scope === 'object' ? 'never' : 'for a while';
  }
}

/** Whether nothing that the process tells can come from clients of another principal. */
function isOpenTo(own: Pick<Instance, 'principal'>, principal: string | undefined): boolean {
  return own.principal === undefined || own.principal === principal;
}

/** The oldest backend that can run, or else the oldest; none of none. */
function oldestOf(backends: readonly Backend[]): readonly Backend[] {
  const sound = backends.find(({ dispatcher }) => unavailableBecause(dispatcher.availability) !== 'misconfigured');
  return sound === undefined ? backends.slice(0, 1) : [sound];
}

/** Time for the calls in flight on a retired process to finish, in milliseconds. Then the process is stopped. */
const DRAIN_MS = 5_000;

/** Stops the processes of retired backends, whose calls in flight get 5 s to finish. */
export class Draining {
  readonly #clock: Clock;
  /** `end` stops the process now, and `gone` resolves when it is gone. */
  readonly #drains = new Map<Backend, { readonly gone: Promise<void>; readonly end: () => void }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts to drain a backend. Calls that were not sent yet go to `redirect`. */
  begin({ backend, end }: RunningBackend, redirect: (exchange: Exchange) => void): void {
    const { dispatcher } = backend;
    let cancel: Cancel = () => {};
    let settle = () => {};
    const gone = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const redirectUnsent = () => {
      for (const exchange of dispatcher.admission.takeUnsent()) redirect(exchange);
    };
    let isEnding = false;
    const finish = () => {
      if (isEnding) return;
      isEnding = true;
      cancel();
      redirectUnsent();
      backend.close();
      void end().then(() => {
        this.#drains.delete(backend);
        settle();
      });
    };
    this.#drains.set(backend, { gone, end: finish });
    redirectUnsent();
    cancel = this.#clock.schedule(DRAIN_MS, finish);
    // The last call leaves the table before its answer is passed on, so a later microtask stops the process.
    dispatcher.inFlightCalls.whenIdle(() => queueMicrotask(() => dispatcher.inFlightCalls.size === 0 && finish()));
  }

  /** Ends the drain of a backend, because its process has ended and no other process may start. */
  detached(backend: Backend): void {
    this.#drains.get(backend)?.end();
  }

  get backends(): Iterable<Backend> {
    return this.#drains.keys();
  }

  /** Resolves when every retired process of this server is gone. */
  async untilGone(key: string): Promise<void> {
    const all = [...this.#drains].filter(([backend]) => backend.key === key);
    await Promise.all(all.map(([, { gone }]) => gone));
  }

  /** Closes the backends that are being drained, and stops their processes now. */
  close(): void {
    for (const { end } of this.#drains.values()) end();
  }
}
