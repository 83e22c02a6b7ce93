import type { ClientOrigin } from '../downstream/port.js';
import type { OnInternalError } from '../errors/internal-error.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import type { Hmac } from '../mcp/task-id.js';
import type { EventSink } from '../observe/events/event-bus.js';
import type { Clock } from '../timing/clock.js';
import type { WorkTime } from '../timing/work-time.js';
import type { CallFeed } from './call-feed.js';
import type { NamedViews } from './named-views.js';
import type { ListenerFor } from './registry/backend.js';
import type { BackendPoolOptions } from './registry/backend-pool.js';
import type { RunningBackend } from './registry/instances.js';
import type { OwnTool } from './status/own-tool.js';

export interface GatewayOptions extends Omit<BackendPoolOptions, 'create'>, GatewaySettings {
  /** Creates a backend with an id of its own. Its server learns of the client once `profile` resolves. */
  readonly create: (
    server: string,
    id: string,
    profile: Promise<ClientProfile>,
    listenerFor: ListenerFor,
    origin: ClientOrigin | undefined,
  ) => RunningBackend;
  readonly clock: Clock;
  readonly workTime?: WorkTime | undefined;
  /** Seals cursors, each with a hash of its list. Gateways with the same key take each other's cursors. */
  readonly hmac: Hmac;
  /** Seals what ends with this process: the ids of clients' tasks. */
  readonly runSeal: Hmac;
  /** Seals the ids of servers' tasks. Its key outlives this process, because clients may keep the ids. */
  readonly seal: Hmac;
  /** Reports internal errors, each of which fails one request. */
  readonly onInternalError?: OnInternalError;
  readonly events?: EventSink;
  readonly calls?: CallFeed;
}

/** Settings that a new configuration may change. */
export interface GatewaySettings {
  readonly ownTools: readonly OwnTool[];
  /** How long the first requests wait for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
  /** Added to the instructions for every client, such as that the configuration cannot be used. */
  readonly notice?: string | undefined;
  /** The views of the configuration. The same object as long as they are the same. */
  readonly views?: NamedViews | undefined;
  /** Size limit of the instructions for a client that sees all servers; 0 leaves out what servers say. */
  readonly maxInstructionsBytes: number;
}
