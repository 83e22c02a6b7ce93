import type { SharedLimit } from '../../io/shared-limit.js';
import type { Catalogs } from '../catalog/catalogs.js';
import type { ServerState } from '../dispatch/availability.js';
import type { Backend } from '../registry/backend.js';

/** What supervision knows of a child. Times are milliseconds on the monotonic clock. */
export interface Lifecycle {
  readonly state: ServerState;
  readonly pid: number | undefined;
  readonly generation: number;
  readonly restarts: number;
  readonly consecutiveFailures: number;
  readonly readySince: number | undefined;
  readonly retryAt: number | undefined;
  readonly lastExit: { readonly code: number | null; readonly signal: string | null; readonly at: number } | undefined;
  readonly lastFailure: { readonly reason: string; readonly at: number; readonly isHostFault?: boolean } | undefined;
  /** The package that is not there yet. */
  readonly missing: string | undefined;
  readonly installingSince: number | undefined;
}

/** Everything there is to know about one server. */
export interface ServerFacts {
  readonly backend: Backend;
  /** Absent when the configuration of this server cannot work. */
  readonly lifecycle: Lifecycle | undefined;
  readonly problem: { readonly message: string; readonly hint: string } | undefined;
  /** The last lines of stderr and of what was no message on stdout, secrets removed, oldest first. */
  readonly logLines: readonly string[];
  /** Lines that are not among them because there were too many at once. */
  readonly droppedLogLines: number;
  /** All backends of this server, this one among them: clients that differ do not share one. */
  readonly instances: readonly InstanceFacts[];
}

/** One of the backends that a server has. */
export interface InstanceFacts {
  readonly backend: Backend;
  readonly lifecycle: Lifecycle | undefined;
  /** It waits for its first client. */
  readonly isUnclaimed: boolean;
}

/** What is to be said about the file that all this comes from. */
export interface ConfigFacts {
  readonly file: string | undefined;
  /** Why the file, as it is now, cannot be used, since when, and whether what it said before is in force instead. */
  readonly fault: { readonly report: string; readonly since: number; readonly isPreviousInForce: boolean } | undefined;
  /** How often another configuration was taken over. */
  readonly reloads: number;
  /** Settings that will be in force once we are started again. */
  readonly needsRestart: readonly string[];
}

export interface StatusFacts {
  readonly now: number;
  readonly startedAt: number;
  readonly version: string;
  readonly config: ConfigFacts;
  readonly catalogs: Catalogs;
  /** Takes secrets out of what servers say. */
  readonly redact: (text: string) => string;
  /** Calls that wait for their turn, of all servers. */
  readonly waiting: SharedLimit;
  /** Bytes of messages that are not complete, of all servers and clients. */
  readonly partialFrames: SharedLimit;
  /** Errors in Trunkline that failed one request each. */
  readonly internalErrorCount: number;
  readonly servers: readonly ServerFacts[];
  readonly canRestart: boolean;
}
