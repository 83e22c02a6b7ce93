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

/** An npm package that a child runs. */
export interface PackageRequest {
  /** The name as the configuration writes it, with variables not expanded. Messages show this text. */
  readonly shown: string;
  readonly name: string;
  /** The exact version to run; undefined when any version is accepted. */
  readonly version: string | undefined;
  /** Which program of the package to run when it has several. */
  readonly bin: string | undefined;
  /** Whether the packages may run install scripts. */
  readonly installScripts: boolean;
  /** Time limit of the installation, not counting the wait for other installations. */
  readonly budgetMs: number;
}
