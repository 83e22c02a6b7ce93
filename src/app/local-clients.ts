import type { Config, Origin } from '../config/resolve/config.js';
import type { Logger } from '../host/observe/logger.js';
import type { ServiceFacts } from '../status/status-facts.js';
import type { ClientDrainOptions } from './drain-client.js';
import type { GatewayProcess } from './gateway-process.js';
import type { LayerScope } from './read-layers.js';

/** The clients on this machine: the client on stdin, or those of the hub. */
export interface LocalClients {
  /** Whether this process ignores SIGHUP, because the clients run in terminals that it outlives. */
  readonly ignoresHangup?: boolean;
  /** Whether a client is connected, which can show its user the mistakes of the configuration. */
  readonly isAttached: boolean;
  /** Whether no client needs a server any more, and no other client can come. */
  readonly isGone: () => boolean;
  /** Resolves when no client can send another request. */
  readonly inputEnded: Promise<void>;
  /**
   * The variables and the working folder of the client for which the first servers are started. Absent if they are those of this process.
   */
  readonly origin?: Origin;
  /** The trusted projects whose servers the clients may see. */
  readonly layers: LayerScope;
  /** Called with the log before anything is logged. */
  readonly logTo: (logger: Logger) => void;
  /** Returns the facts about how they are served, for the status. `undefined` for one client that is not meant to share servers. */
  readonly service: () => ServiceFacts | undefined;
  /** Called once the configuration is known. */
  readonly configured: (config: Config) => void;
  /** Called when clients begin to get answers: first from the caches, and then from the servers. */
  readonly answering?: () => void;
  /** Called with each configuration that was applied later. */
  readonly reloaded?: (config: Config) => void;
  /** Resolves when no client is left and none can come. */
  readonly served: (options: ClientDrainOptions, composition: GatewayProcess) => Promise<void>;
}

/** Largest message of a client. A gateway must accept every message that a direct connection accepts. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Longest wait of the start for the first message of a client that is already connected, in milliseconds. */
const FIRST_MESSAGE_MS = 30;

/** Resolves when the first message has come, or after 30 ms. */
export async function firstMessageOrTimeout(firstMessage: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<void>((resolve) => {
    // Node runs an expired timer before it reads. On a busy machine, the message may be in the pipe already, so `setImmediate`
    // lets one read pass before the wait ends.
    timer = setTimeout(() => setImmediate(resolve), FIRST_MESSAGE_MS);
  });
  await Promise.race([firstMessage, tooLong]);
  clearTimeout(timer);
}

export function deferred<T = void>(): [promise: Promise<T>, resolve: (value: T) => void] {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return [promise, resolve];
}
