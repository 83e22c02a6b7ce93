/**
 * What to run for one server of the configuration, with its timeouts and its restart policy.
 *
 * Everything is resolved: `command` is executable as it stands, `env` holds only what the configuration declares (the
 * allowlist of the parent's variables is added at spawn), and paths are absolute.
 */
export interface ChildSpec {
  readonly key: string;
  readonly command: string;
  /** The command as the entry writes it, for messages. Present if the command itself may contain a secret. */
  readonly label?: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeouts: ChildTimeouts;
  readonly restart: RestartPolicy;
  /** Whether processes that have left the group of the child may outlive it. */
  readonly leaveRunning: boolean;
  /** The package to install before `command` can run. Its program then becomes the first of `args`. */
  readonly missing?: PackageRequest;
}

export interface ChildTimeouts {
  /** From the start of the handshake until the child is ready. */
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
  /** Earlier failures no longer count after the child has been ready for this long. */
  readonly stableAfterMs: number;
  /** First slow probe of a parked child; doubles up to `parkedProbeMaxMs`. */
  readonly parkedProbeMs: number;
  readonly parkedProbeMaxMs: number;
  /** The shortest time between two starts of a parked child on demand. */
  readonly demandEveryMs: number;
}

/** An npm package that a child runs. */
export interface PackageRequest {
  /** The name as the configuration writes it, with variables not expanded. Messages show this text. */
  readonly shown: string;
  readonly name: string;
  /** An exact version, a range such as `^1.2`, or a dist-tag such as `latest`; undefined when any version is accepted. */
  readonly version: string | undefined;
  /** Which program of the package to run when it has several. */
  readonly bin: string | undefined;
  /** Whether the packages may run install scripts. */
  readonly installScripts: boolean;
  /** Variables for npm, besides the environment of Trunkline: what `defaults.env` of the configuration names. */
  readonly env: Readonly<Record<string, string>>;
  /** Time limit of the installation, not counting the wait for other installations. */
  readonly budgetMs: number;
}
