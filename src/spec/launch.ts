import type { ChildTimeouts, ServerSpec } from './server-spec.js';

/**
 * Starts a child and connects to it.
 *
 * `launch` returns at once and never throws. A failure is reported through `events.failed`.
 */
export interface Launcher {
  launch(spec: ServerSpec, generation: number, events: LaunchEvents): Launched;
}

/** Takes the events of one launch. Events may come in any order, twice, or late; outdated events are ignored. */
export interface LaunchEvents {
  /** The handshake starts, and with it the start timeout. Before, the child may wait for its first client. */
  began(): void;
  /** The handshake is done, so the start timeout no longer counts. */
  answered(): void;
  ready(): void;
  /** The launch failed before the child was ready. */
  failed(failure: LaunchFailure): void;
  /** The child exited when it was asked for its era (`server/discover`). Not a failure: the next launch begins with `initialize`. */
  endedByProbe(): void;
  /** The child is silent, and a liveness probe starts. */
  suspected(): void;
  /** The probe is over, because the child answers again. */
  cleared(): void;
  /** The child cannot be used and must be restarted. */
  unfit(reason: string): void;
  /** The leader of the group ended. Other members may still run. */
  exited(exit: ChildExit): void;
  /**
   * A connection ended. With `server` as the fault, the server forgot the session. With `moved`, another gateway runs the
   * server from now on, which is no fault.
   */
  lost(fault: LaunchFault | 'moved', reason: string): void;
}

interface LaunchFailure {
  readonly reason: string;
  /** The default is `server`. */
  readonly fault?: LaunchFault;
  /** Pause that the server wants before the next attempt, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Party at fault when a launch fails or a connection ends:
 *
 * - `server`: the server. It is restarted, and parked if it fails too often.
 * - `host`: this machine, which lacked a resource such as file descriptors.
 * - `network`: the network, or a remote server that accepts no connection. It is retried without limit.
 * - `trouble`: a remote server that accepts connections and cannot serve now. It is retried without limit, with growing delays.
 * - `blocked`: the credentials for a remote server. Only other credentials help, so it is not tried again by itself.
 */
export type LaunchFault = 'server' | 'host' | 'network' | 'trouble' | 'blocked';

export interface ChildExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A launch that has not ended: a process group, or a connection without a process. */
export interface Launched {
  /** The pid of the group's leader, which is also the group's id. Absent if there is no process. */
  readonly pid: number | undefined;
  /**
   * Ends the whole group. Resolves once no member is left, and never rejects. Calling again with shorter times brings the signals forward.
   */
  end(ladder: StopLadder): Promise<void>;
}

/** Times of SIGTERM and SIGKILL to a group, in milliseconds after its stdin is closed. */
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
  /** Installs the package `spec.missing`. Returns at once and never throws. */
  install(spec: ServerSpec): Installing;
}

export interface Installing {
  /** Never rejects. */
  readonly outcome: Promise<InstallOutcome>;
  /** Cancels the installation. Its outcome is ignored from now on. */
  cancel(): void;
}

export type InstallOutcome =
  /** `spec` is complete and can be launched. */
  { readonly kind: 'installed'; readonly spec: ServerSpec } | { readonly kind: 'failed'; readonly reason: string };
