import type { SharedLimit } from '../../io/shared-limit.js';
import type { Catalogs } from '../catalog/catalogs.js';
import type { ServerState } from '../dispatch/availability.js';
import type { Backend } from '../registry/backend.js';

/** What supervision knows about one server process. Times are milliseconds on the monotonic clock. */
export interface ProcessFacts {
  readonly state: ServerState;
  readonly pid: number | undefined;
  readonly generation: number;
  readonly restarts: number;
  readonly consecutiveFailures: number;
  readonly readySince: number | undefined;
  readonly retryAt: number | undefined;
  readonly lastExit: { readonly code: number | null; readonly signal: string | null; readonly at: number } | undefined;
  readonly lastFailure: { readonly reason: string; readonly at: number; readonly isHostFault?: boolean } | undefined;
  /** The package that is not installed yet. */
  readonly missing: string | undefined;
  readonly installingSince: number | undefined;
}

/** What a status report is made from, for one server. */
export interface ServerFacts {
  readonly backend: Backend;
  /** Absent when the configuration of this server cannot work. */
  readonly lifecycle: ProcessFacts | undefined;
  readonly problem: { readonly message: string; readonly hint: string } | undefined;
  /** The last lines of stderr, and the stdout lines that were not messages; secrets removed, oldest first. */
  readonly logLines: readonly string[];
  /** How many log lines were dropped by the rate limit. */
  readonly droppedLogLines: number;
  /** All backends of this server, including this one: clients with different profiles do not share a backend. */
  readonly instances: readonly InstanceFacts[];
}

/** One backend of a server. */
export interface InstanceFacts {
  readonly backend: Backend;
  readonly lifecycle: ProcessFacts | undefined;
  /** Waits for its first client. */
  readonly isUnclaimed: boolean;
}

/** State of the configuration file. */
export interface ConfigFacts {
  readonly file: string | undefined;
  /** Why the current file is rejected, since when, and whether the previous configuration is still active. */
  readonly fault: { readonly report: string; readonly since: number; readonly isPreviousInForce: boolean } | undefined;
  /** How often a changed configuration was applied. */
  readonly reloads: number;
  /** Changed settings that need a restart of Trunkline. */
  readonly needsRestart: readonly string[];
}

export interface StatusFacts {
  readonly now: number;
  readonly startedAt: number;
  readonly version: string;
  readonly config: ConfigFacts;
  readonly catalogs: Catalogs;
  /** Removes secrets from text that servers wrote. */
  readonly redact: (text: string) => string;
  /** Queued calls of all servers. */
  readonly waiting: SharedLimit;
  /** Bytes of incomplete messages, of all servers and clients. */
  readonly partialFrames: SharedLimit;
  /** Internal errors; each failed one request. */
  readonly internalErrorCount: number;
  readonly servers: readonly ServerFacts[];
  readonly canRestart: boolean;
}
