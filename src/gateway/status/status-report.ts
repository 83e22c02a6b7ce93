import type { BreakerState } from '../../upstream/health/circuit-breaker.js';
import type { ServerState } from '../dispatch/availability.js';

/** The structured content of `trunkline__status`. Times are seconds, latencies milliseconds. */
export interface StatusReport {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly configFile: string | null;
  /** What is wrong with the file as it is now. */
  readonly configFault: string | null;
  readonly configFaultSeconds: number | null;
  /** What the file says, what it said before it could not be used any more, or nothing. */
  readonly configInForce: 'current' | 'previous' | 'none';
  readonly configReloads: number;
  readonly configNeedsRestart: readonly string[];
  readonly tools: number;
  /** What the person can do about Trunkline as a whole; empty when there is nothing to do. */
  readonly advice: string;
  /** What all servers and clients share. */
  readonly limits: {
    readonly waitingCalls: LimitReport;
    readonly partialFrameBytes: LimitReport;
  };
  readonly internalErrorCount: number;
  readonly servers: readonly ServerReport[];
}

export interface LimitReport {
  readonly now: number;
  readonly max: number;
  /** How often there was no room. */
  readonly refused: number;
}

export interface ApprovalReport {
  /** How many tools are approved, listed or not. */
  readonly approved: number;
  /** They were approved in this run, as the first that this server ever offered. */
  readonly firstUse: boolean;
  /** What is wrong with the place where it is kept. */
  readonly fault: string | null;
}

/** What a server contributes to one of the merged lists, and what not. */
export interface ListReport {
  readonly exposed: readonly string[];
  readonly quarantined: readonly { readonly name: string; readonly reason: string }[];
  readonly denied: readonly string[];
  readonly truncated: string | null;
  /** Listed, but there are characters in what they say about themselves that nobody sees. */
  readonly hiding: readonly string[];
}

export interface ServerReport {
  readonly server: string;
  readonly state: ServerState | 'misconfigured';
  readonly pid: number | null;
  readonly uptimeSeconds: number | null;
  readonly generation: number;
  readonly restarts: number;
  readonly protocolVersion: string | null;
  /** Whether the lists are those of the last run, which no process of this one has confirmed yet. */
  readonly fromLastRun: boolean;
  readonly breaker: BreakerState;
  readonly inFlight: number;
  readonly queued: number;
  readonly calls: number;
  readonly errors: number;
  readonly failures: number;
  /** How many failures had which reason. */
  readonly failureReasons: Readonly<Record<string, number>>;
  readonly cancelled: number;
  readonly repeated: number;
  readonly latencyMs: { readonly p50: number; readonly p95: number } | null;
  readonly tools: ListReport;
  /** How it stands with the approval of its tools; null where they need none. */
  readonly approval: ApprovalReport | null;
  readonly prompts: ListReport;
  readonly resources: ListReport;
  readonly resourceTemplates: ListReport;
  /** Frames of the child that were dropped, by kind, since it was last started. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly lastExit: {
    readonly code: number | null;
    readonly signal: string | null;
    readonly secondsAgo: number;
  } | null;
  readonly lastFailure: string | null;
  readonly retryInSeconds: number | null;
  /** The package that is being installed, and for how long, others that come first included. */
  readonly installing: { readonly package: string; readonly forSeconds: number } | null;
  readonly log: readonly string[];
  /** Lines that were not kept because there were too many at once. */
  readonly droppedLogLines: number;
  /** What the person can do; empty when there is nothing to do. */
  readonly advice: string;
  readonly instructions: string | null;
  /** The processes that run for this server, one for clients that look alike or one for each. */
  readonly instances: readonly InstanceReport[];
}

export interface InstanceReport {
  readonly id: string;
  readonly state: ServerState;
  readonly pid: number | null;
  /** How many use it. */
  readonly clients: number;
  readonly inFlight: number;
  readonly restarts: number;
  /** Whether it is the one that answers whoever asks. */
  readonly isYours: boolean;
}
