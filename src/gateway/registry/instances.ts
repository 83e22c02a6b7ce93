import type { ClientFacts, ClientOrigin, DownstreamClient } from '../../downstream/port.js';
import { type ClientProfile, profileKey } from '../../mcp/client-profile.js';
import type { Cancel } from '../../timing/clock.js';
import type { Backend } from './backend.js';

/**
 * Which clients share a process of a server: clients with the same profile, those of them in the same working folder, no
 * clients, or all clients.
 *
 * A server learns the capabilities of one client in the handshake and may adapt its offer to them. Clients with
 * different capabilities therefore get different processes.
 */
export type Sharing = 'profile' | 'folder' | 'isolated' | 'all';

/** What the pool needs to know of a configured server. */
export interface PooledServer {
  readonly key: string;
  readonly sharing: Sharing;
  /** Whether the server cannot run for clients without an origin. */
  readonly isMisconfigured?: boolean;
  /** Whether no instance is made before a client needs one. */
  readonly waitsForClient?: boolean;
  /**
   * Identifies what the server is for clients of this origin: only clients with the same variant share a process,
   * whatever `sharing` says. If absent, the server is the same for all clients. The text may contain secrets.
   */
  readonly variantOf?: (origin: ClientOrigin | undefined) => string;
}

/** A backend, and control of the process behind it. */
export interface RunningBackend {
  readonly backend: Backend;
  /** Starts the process. From then on, the supervisor keeps it running. Called once. */
  start(): void;
  /** Stops the process for good. Resolves when it is gone. */
  end(): Promise<void>;
}

/** The clients of one variant that share an instance: all of them, those with this profile key, or one client. */
export type Scope = typeof ALL | string | DownstreamClient;

export const ALL = Symbol('all clients');

/** The instances of one server. */
export class ServerInstances {
  readonly instances = new Set<Instance>();
  /** Whether the server has ever sent `roots/list`. */
  requestsRoots = false;
  /** Whether its processes must not start before the retired ones are gone. */
  isStartDeferred = false;
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

  /** The server is configured in another way, but none of its instances is replaced. */
  configure(server: PooledServer): void {
    this.#server = server;
    for (const instance of this.instances) instance.variant = this.variantOf(instance.origin);
  }

  /** Removes these instances, so that no client gets one of them any more. Their processes still run. */
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
    const hasOwnRoots = this.requestsRoots && profile.capabilities.roots !== undefined;
    return sharing === 'isolated' || hasOwnRoots ? client : profileKey(profile, client.principal);
  }

  /**
   * The scope of the instance that exists before any client does: `undefined` if the first client decides. Absent if
   * there is no such instance, because no client may need it, or it would have to run in the folder of the first client.
   */
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

export interface InstanceOptions {
  /** The origin of the client that the instance was created for. */
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
  /** Whether its clients have the roots capability. Clients that share an instance agree in that. */
  hasRoots = false;
  /** When the last client left, in milliseconds on the clock. `undefined` if the instance does not wait for a client. */
  idleSince: number | undefined;
  cancelIdle: Cancel = () => {};
  readonly running: RunningBackend;
  /** Sets the client profile for the handshake. Calls after the first do nothing. */
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

  /** Starts the process, once. */
  start(): void {
    if (!this.#isStarted) this.running.start();
    this.#isStarted = true;
  }

  /** Ends the wait for a client: one uses the instance now, or none will. */
  endWait(): void {
    this.idleSince = undefined;
    this.cancelIdle();
  }

  /**
   * How long the instance stays without clients: until the next configuration, for a while in which another client may
   * use it, or not at all, because it was for one client.
   */
  get staysWithoutClients(): 'always' | 'for a while' | 'never' {
    if (this.scope === ALL) return this.origin === undefined ? 'always' : 'for a while';
    return typeof this.scope === 'object' ? 'never' : 'for a while';
  }
}
