import type { PackageRequest } from './installer.js';

/**
 * What to run for one server of the configuration, and how much patience to have with it.
 *
 * Everything is resolved: `command` is executable as it stands, `env` holds only what the entry declares (the
 * allowlist of the parent's variables is added at spawn), and paths are absolute.
 */
export interface ChildSpec {
  readonly key: string;
  readonly command: string;
  /** What messages call the command, where that itself could tell a secret: as the entry spells it. */
  readonly label?: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeouts: ChildTimeouts;
  readonly restart: RestartPolicy;
  /** What has to be installed before `command` can be run: its program then becomes the first of `args`. */
  readonly missing?: PackageRequest;
}

export interface ChildTimeouts {
  /** From the beginning of the handshake until the child is ready to be called. */
  readonly startMs: number;
  /** From closing stdin to SIGTERM when one child is stopped. */
  readonly stopGraceMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly killAfterMs: number;
}

/** Times in milliseconds. Defaults and their origin: `docs/configuration.md`. */
interface RestartPolicy {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Consecutive failures after which the child is parked. */
  readonly budget: number;
  /** Continuous readiness after which earlier failures are forgotten. */
  readonly stableAfterMs: number;
  /** First slow probe of a parked child; doubles up to `parkedProbeMaxMs`. */
  readonly parkedProbeMs: number;
  readonly parkedProbeMaxMs: number;
  /** A call to a parked child starts it on demand at most this often. */
  readonly demandEveryMs: number;
}
