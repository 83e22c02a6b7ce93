import type { Config, Origin } from '../config/resolve/config.js';
import type { ServiceFacts } from '../gateway/status/status-facts.js';
import type { PreparedLogger } from '../observe/logger.js';
import type { Composition } from './composition.js';
import type { DrainOptions } from './drain-client.js';

/** The clients on this machine: the one on stdin, or those of the hub. */
export interface LocalClients {
  /** Whether the clients come from terminals that this process outlives. */
  readonly ignoresHangup?: boolean;
  /** Whether a client is there that can show its user what is wrong with the configuration. */
  readonly isAttached: boolean;
  /** Whether no client is left that needs a server, and none can come. */
  readonly isGone: () => boolean;
  /** Resolves when no client can send another request. */
  readonly inputEnded: Promise<void>;
  /** Where the client runs that the first servers are started for. Absent if its environment is that of this process. */
  readonly origin?: Origin;
  /** Called with the log before anything is logged. */
  readonly logTo: (logger: PreparedLogger) => void;
  /** How the clients are served, for the status. `undefined` if there is nothing to say. */
  readonly service: () => ServiceFacts | undefined;
  /** Called once the configuration is known. */
  readonly configured: (config: Config) => void;
  /** Called when clients get answers from now on: first what is cached, and then what the servers say. */
  readonly answering?: () => void;
  /** Called with each configuration that was applied later. */
  readonly reloaded?: (config: Config) => void;
  /** Resolves when no client is left and none can come. */
  readonly served: (options: DrainOptions, composition: Composition) => Promise<void>;
}
