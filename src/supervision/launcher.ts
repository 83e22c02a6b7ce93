/**
 * Starts a child and connects to it.
 *
 * `launch` returns at once and never throws. A failure is reported through `events.failed`.
 */
export interface Launcher {
  launch(spec: ChildSpec, generation: number, events: LaunchEvents): Launched;
}

/** Reports what becomes of one launch. Events may come in any order, twice, or late; outdated events are ignored. */
export interface LaunchEvents {
  /** The handshake starts, and with it the start timeout. Before, the child may wait for its first client. */
  began(): void;
  /** The handshake is done, so the start timeout no longer counts. */
  answered(): void;
  /** The child is ready to be called. */
  ready(): void;
  failed(failure: LaunchFailure): void;
  /** The child ended on the era question (`server/discover`). Not a failure; the next launch sends `initialize` first. */
  startRefused(): void;
  /** The child is silent, and a liveness probe starts. */
  suspected(): void;
  /** The probe is over: the child answers again. */
  cleared(): void;
  /** The child cannot be used and must be restarted. */
  unfit(reason: string): void;
  /** The leader of the group ended. Other members may still run. */
  exited(exit: ChildExit): void;
}

interface LaunchFailure {
  readonly reason: string;
  /** The host lacked a resource, such as file descriptors, so the child is not at fault. */
  readonly hostFault?: boolean;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A launch that has not ended: a process group, or a connection without a process. */
export interface Launched {
  /** The pid of the group's leader, which is also the group's id. Absent if there is no process. */
  readonly pid: number | undefined;
  /**
   * Ends the whole group. Resolves once no member is left, and never rejects. Calling again with shorter
   * times brings the signals forward.
   */
  end(ladder: StopLadder): Promise<void>;
}

/** Times of the steps of ending a group, in milliseconds after its stdin is closed. */
export interface StopLadder {
  readonly termAfterMs: number;
  readonly killAfterMs: number;
}

/** The times for ending one child while the gateway goes on. */
export function toStopLadder({ stopGraceMs, killAfterMs }: ChildTimeouts): StopLadder {
  return { termAfterMs: stopGraceMs, killAfterMs: stopGraceMs + killAfterMs };
}

/** Installs the packages that children need before they can be launched. */
export interface Installer {
  /** Installs the package that the spec has as `missing`. Returns at once and never throws. */
  install(spec: ChildSpec): Installing;
}

export interface Installing {
  /** Never rejects. */
  readonly outcome: Promise<InstallOutcome>;
  /** Cancels the installation. Its outcome is ignored from now on. */
  cancel(): void;
}

export type InstallOutcome =
  /** `spec` is complete and can be launched. */
  { readonly kind: 'installed'; readonly spec: ChildSpec } | { readonly kind: 'failed'; readonly reason: string };

/**
 * Program to run for one server of the configuration, with its timeouts and its restart policy.
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

interface ChildTimeouts {
  /** From the start of the handshake to its end. Reading the lists has limits of its own. */
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

/** Limits of all processes of one server together. Absent members have no limit. */
export interface ResourceLimits {
  readonly memoryBytes?: number;
  readonly processes?: number;
}

/** An npm package that a child runs. */
export interface PackageRequest {
  /** The name as the configuration writes it, with variables not expanded. Messages show this text. */
  readonly shown: string;
  readonly name: string;
  /** An exact version, a range such as `^1.2`, or a dist-tag such as `latest`; undefined when any version is accepted. */
  readonly version: string | undefined;
  /** Program to run of a package that has several. */
  readonly bin: string | undefined;
  /** Whether the packages may run install scripts. */
  readonly installScripts: boolean;
  /** Variables for npm, besides the environment of Trunkline: what `defaults.env` of the configuration names. */
  readonly env: Readonly<Record<string, string>>;
  /** Time limit of the installation, not counting the wait for other installations. */
  readonly budgetMs: number;
}
