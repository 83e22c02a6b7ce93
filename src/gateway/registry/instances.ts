import type { ClientFacts, DownstreamClient } from '../../downstream/port.js';
import { type ClientProfile, profileKey } from '../../mcp/client-profile.js';
import type { Cancel } from '../../timing/clock.js';
import type { Backend } from './backend.js';

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
  /** Ends the process for good; resolves when it is gone. */
  end(): Promise<void>;
}

/** Who shares: everybody, those whose profile has this key, or one client alone. */
export type Scope = typeof ALL | string | DownstreamClient;

export const ALL = Symbol('all clients');

export function scopeOf(
  { sharing, requestsRoots: asksForRoots }: ServerInstances,
  client: DownstreamClient,
  facts: ClientFacts,
): Scope {
  if (sharing === 'all') return ALL;
  const hasOwnRoots = asksForRoots && facts.profile.capabilities.roots !== undefined;
  return sharing === 'isolated' || hasOwnRoots ? client : profileKey(facts.profile, client.principal);
}

/** The backends of one server. */
export class ServerInstances {
  readonly key: string;
  readonly sharing: Sharing;
  readonly instances = new Set<Instance>();
  requestsRoots = false;
  /** Its process must not be started yet. */
  isStartDeferred = false;

  constructor({ key, sharing }: PooledServer) {
    this.key = key;
    this.sharing = sharing;
  }
}

/** One backend of a server. */
export class Instance {
  /** Unknown until a client claims it. */
  scope: Scope | undefined;
  /** Whether its clients have roots: those that share it are alike in that. */
  hasRoots = false;
  idleSince = 0;
  cancelIdle: Cancel = () => {};
  readonly running: RunningBackend;
  /** Tells the process of its client; only the first time counts. */
  setProfile: (profile: ClientProfile) => void = () => {};

  constructor(scope: Scope | undefined, create: (profile: Promise<ClientProfile>) => RunningBackend) {
    this.scope = scope;
    this.running = create(
      new Promise((resolve) => {
        this.setProfile = resolve;
      }),
    );
  }

  /** Whether it only waits for a client like its last one. */
  get isIdle(): boolean {
    return typeof this.scope === 'string' && this.running.backend.clients.size === 0;
  }
}
