import type { ClientFacts, DownstreamClient } from '../../downstream/port.js';
import { type ClientProfile, profileKey } from '../../mcp/client-profile.js';
import type { Cancel } from '../../timing/clock.js';
import type { Backend } from './backend.js';

/**
 * Which clients share a process of a server: clients with the same profile, no clients, or all clients.
 *
 * A server learns the capabilities of one client in the handshake and may adapt its offer to them. Clients with
 * different capabilities therefore get different processes.
 */
export type Sharing = 'profile' | 'isolated' | 'all';

/** What the pool needs to know of a configured server. */
export interface PooledServer {
  readonly key: string;
  readonly sharing: Sharing;
}

/** A backend, and control of the process behind it. */
export interface RunningBackend {
  readonly backend: Backend;
  /** Starts the process. From then on, the supervisor keeps it running. Called once. */
  start(): void;
  /** Stops the process for good. Resolves when it is gone. */
  end(): Promise<void>;
}

/** The clients that share an instance: all clients, the clients with this profile key, or one client. */
export type Scope = typeof ALL | string | DownstreamClient;

export const ALL = Symbol('all clients');

/** Returns the scope of the instance for a client. A client with roots does not share if the server requests roots. */
export function scopeOf(
  { sharing, requestsRoots }: ServerInstances,
  client: DownstreamClient,
  facts: ClientFacts,
): Scope {
  if (sharing === 'all') return ALL;
  const hasOwnRoots = requestsRoots && facts.profile.capabilities.roots !== undefined;
  return sharing === 'isolated' || hasOwnRoots ? client : profileKey(facts.profile, client.principal);
}

/** The instances of one server. */
export class ServerInstances {
  readonly key: string;
  readonly sharing: Sharing;
  readonly instances = new Set<Instance>();
  /** Whether the server has ever sent `roots/list`. */
  requestsRoots = false;
  /** Whether its process must not start before the retired one is gone. */
  isStartDeferred = false;

  constructor({ key, sharing }: PooledServer) {
    this.key = key;
    this.sharing = sharing;
  }
}

/** One instance of a server: a backend and its scope. */
export class Instance {
  /** `undefined` until a client claims the instance. */
  scope: Scope | undefined;
  /** Whether its clients have the roots capability. Clients that share an instance agree in that. */
  hasRoots = false;
  /** When the last client left, in milliseconds on the clock. */
  idleSince = 0;
  cancelIdle: Cancel = () => {};
  readonly running: RunningBackend;
  /** Sets the client profile for the handshake. Calls after the first do nothing. */
  setProfile: (profile: ClientProfile) => void = () => {};

  constructor(scope: Scope | undefined, create: (profile: Promise<ClientProfile>) => RunningBackend) {
    this.scope = scope;
    this.running = create(
      new Promise((resolve) => {
        this.setProfile = resolve;
      }),
    );
  }

  /** Whether no client uses the instance, and one with the same profile could. */
  get isIdle(): boolean {
    return typeof this.scope === 'string' && this.running.backend.clients.size === 0;
  }
}
