import type { ClientFacts, ClientOrigin, DownstreamClient } from '../../downstream/port.js';
import { type ClientProfile, profileKey } from '../../wire/mcp/handshake.js';
import type { Cancel } from '../../wire/timing/clock.js';
import { NO_LISTS } from '../catalog/offered-lists.js';
import type { Backend, DescribedServer, RunningBackend } from './backend.js';

/**
 * Clients that share a process of a server: those with the same profile and user, those of the same user, those with the same profile, user
 * and working folder, none, or all. `auto` means `profile` for a server whose revision has no sessions, else `isolated`.
 *
 * A server learns the capabilities of one client in the handshake and may adapt its offer to them. Clients with different capabilities
 * therefore get different processes, unless `sharing` is `all` or `user`.
 */
export type Sharing = 'profile' | 'user' | 'folder' | 'isolated' | 'all' | 'auto';

export interface PooledServer {
  readonly key: string;
  readonly sharing: Sharing;
  /** Whether the server is known to speak a revision without sessions, even before a process of this run has shown it. Used with `auto`. */
  readonly isSessionless?: () => boolean;
  /** Whether the configuration is faulty, or lacks a variable, for clients without an origin. The server cannot run for them. */
  readonly isMisconfigured?: boolean;
  /** Whether the server is an interceptor, which no client sees. */
  readonly isInterceptor?: boolean | undefined;
  /** Whether clients of this origin may have the server. Absent if all may. */
  readonly isFor?: ((origin: ClientOrigin | undefined) => boolean) | undefined;
  /** Whether no instance is made before a client needs one. */
  readonly waitsForClient?: boolean;
  /**
   * Identifies the variant of the server for clients of this origin. Only clients with the same variant share a
   * process, whatever `sharing` says. Absent if the server is the same for all clients. The text may contain secrets.
   */
  readonly variantOf?: (origin: ClientOrigin | undefined) => string;
}

/** A backend that has had a process, which may have ended since. */
interface EarlierProcess {
  readonly variant: string;
  readonly principal: string | undefined;
  readonly backend: Backend;
  /** Whether the configuration has changed since, so that the lists may be shaped in another way. */
  readonly areListsOld?: boolean;
}

export function describedBy({ backend, areListsOld }: EarlierProcess): DescribedServer {
  const { key, prefix, lastHandshake: handshake } = backend;
  return { key, prefix, handshake, listsAs: (naming) => (areListsOld ? NO_LISTS : backend.knownListsAs(naming)) };
}

/** Limit of the descriptions of one server in `earlier`. Beyond it, the oldest is forgotten. */
const MAX_EARLIER = 16;

/** The clients of one variant that share an instance: all of them, those with this profile key or principal, or one client. */
type Scope = typeof ALL | string | DownstreamClient;

export const ALL = Symbol('all clients');

/** The instances of one server, and the descriptions of it by its latest processes. */
export class ServerInstances {
  readonly instances = new Set<Instance>();
  /** Whether the server has ever sent `roots/list`. */
  requestsRoots = false;
  /** Whether its latest process, or else one of an earlier run, speaks a revision without sessions. Used with `auto`. */
  isSessionless: boolean | undefined;
  /** Whether its processes must not start before the retired ones are gone. */
  isStartDeferred = false;
  /** The descriptions by the latest processes, the newest first: one for each variant and principal. */
  earlier: readonly EarlierProcess[] = [];
  #server: PooledServer;

  constructor(server: PooledServer) {
    this.#server = server;
  }

  get sharing(): Sharing {
    return this.#server.sharing;
  }

  get isInterceptor(): boolean {
    return this.#server.isInterceptor === true;
  }

  get isLimited(): boolean {
    return this.#server.isFor !== undefined;
  }

  isFor(origin: ClientOrigin | undefined): boolean {
    return this.#server.isFor?.(origin) ?? true;
  }

  variantOf(origin: ClientOrigin | undefined): string {
    return this.#server.variantOf?.(origin) ?? '';
  }

  /** The user of whom a variant is, because the server is another one for each user; otherwise `undefined`. */
  userOf({ origin, variant }: InstanceOptions): string | undefined {
    const isOfUser = origin?.user !== undefined && this.variantOf({ ...origin, user: undefined }) !== variant;
    return isOfUser ? origin.user : undefined;
  }

  /** Sets another configuration of the server without replacing its instances. */
  configure(server: PooledServer): void {
    this.#server = server;
    for (const instance of this.instances) instance.variant = this.variantOf(instance.origin);
    // The lists of an ended process may be shaped in another way now.
    this.earlier = this.earlier.map((earlier) => ({ ...earlier, areListsOld: true }));
  }

  /** The latest description for clients of this variant and, unless `principal` is `undefined`, of this principal. */
  earlierFor(variant: string, principal: string | undefined): EarlierProcess | undefined {
    return this.earlier.find(
      (each) => each.variant === variant && (principal === undefined || isOpenTo(each, principal)),
    );
  }

  remember({ variant, principal, running: { backend } }: Instance): void {
    const others = this.earlier.filter((each) => each.variant !== variant || each.principal !== principal);
    this.earlier = [{ variant, principal, backend }, ...others].slice(0, MAX_EARLIER);
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

  /** If the server requests roots, a client with roots does not share, unless `sharing` is `all` or `user`. */
  scopeOf(client: DownstreamClient, { profile, origin }: ClientFacts): Scope {
    const { sharing } = this;
    const hasNoProcess = this.#hasNoProcess && this.variantOf(origin) === this.variantOf(undefined);
    if (sharing === 'all' || hasNoProcess) return ALL;
    // No profile key equals this text, because each profile key is a JSON array.
    if (sharing === 'user') return `user ${client.principal}`;
    const hasOwnRoots = this.requestsRoots && profile.capabilities.roots !== undefined;
    if (sharing === 'auto') this.isSessionless ??= this.#server.isSessionless?.() === true;
    const isApart = sharing === 'isolated' || (sharing === 'auto' && this.isSessionless === false);
    return isApart || hasOwnRoots ? client : profileKey(profile, client.principal);
  }

  /** The instance to make before any client comes; `undefined` if none is to be made. Without a `scope`, the first client decides it. */
  get firstScope(): { readonly scope: Scope | undefined } | undefined {
    if (this.#server.waitsForClient === true) return undefined;
    if (this.sharing === 'all' || this.#hasNoProcess) return { scope: ALL };
    return this.sharing === 'folder' ? undefined : { scope: undefined };
  }

  /** Whether clients without an origin get no process. They share a backend without one. */
  get #hasNoProcess(): boolean {
    return this.#server.isMisconfigured === true;
  }
}

export interface InstanceOptions {
  readonly origin: ClientOrigin | undefined;
  readonly variant: string;
  readonly scope: Scope | undefined;
}

export class Instance {
  readonly origin: ClientOrigin | undefined;
  variant: string;
  /** `undefined` until a client claims the instance. */
  scope: Scope | undefined;
  /** The principal of its clients. `undefined` until a client claims the instance, and if it is for all clients. */
  principal: string | undefined;
  /** The profile key of the latest client. Becomes the scope if `sharing` is `auto` and the process speaks a revision without sessions. */
  profileScope: string | undefined;
  /**
   * Whether the client that came last has the roots capability. False with `sharing: user`. The clients of an instance agree in
   * this, unless it is for all clients.
   */
  hasRoots = false;
  /** Time at which the last client left, in milliseconds on the clock. `undefined` while the instance has clients, or waits for none. */
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

/** Whether clients of this principal may see the process. A process without a principal is for all clients, or not claimed yet. */
export function isOpenTo(own: { readonly principal: string | undefined }, principal: string | undefined): boolean {
  return own.principal === undefined || own.principal === principal;
}
