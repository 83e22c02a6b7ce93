import type { CallLimits } from '../gateway/dispatch/call-limits.js';
import type { ChildSpec, PackageRequest } from '../supervision/child-spec.js';

/** A configuration file, checked and resolved. Times are milliseconds, sizes bytes, paths absolute. */
export interface Config {
  readonly file: string;
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly ServerConfig[];
  readonly gateway: GatewayConfig;
  /** What was accepted but is probably not meant, each as `FILE:LINE:COL: message`. */
  readonly warnings: readonly string[];
}

export interface ServerConfig {
  readonly key: string;
  /** What stands before `__` in the exposed names: the key, or '' when the prefix is switched off. */
  readonly prefix: string;
  /** Undefined when `problem` is set. */
  readonly child: ChildSpec | undefined;
  readonly problem?: ServerProblem;
  /** The package that it runs, if it can and does run one. */
  readonly package?: ServerPackage;
  /** Which clients share a process. */
  readonly sharing: Sharing;
  /** Whether its process is started at once, or by the first call. */
  readonly start: StartMode;
  /** How long it may go without a call before it is stopped until the next one; 0 for ever. */
  readonly idleStopMs: number;
  /** Whether its tools have to be approved. */
  readonly approval: ApprovalMode;
  readonly tools: ToolFilter;
  /** Globs over methods that MCP does not define and this server answers. */
  readonly methods: readonly string[];
  /** Whether what its tools say of themselves is believed. */
  readonly trusted: boolean;
  readonly calls: CallLimits;
  readonly frames: FrameLimits;
  /** What the entry refers to as `${NAME}`, for whoever has to know a secret from other texts. */
  readonly references: Readonly<Record<string, string>>;
}

export interface ServerPackage {
  readonly request: PackageRequest;
  /** Absent when it has yet to be installed. */
  readonly found?: FoundPackage;
}

/** Where a package was found, and its program, to be run with Node. */
export interface FoundPackage {
  /** Near the configuration or Trunkline, or in Trunkline's own store. */
  readonly place: 'near' | 'store';
  readonly version: string | undefined;
  /** Absolute. */
  readonly program: string;
}

/** Why this one server cannot run, although the file is sound and the others can. */
export interface ServerProblem {
  readonly message: string;
  readonly hint: string;
  readonly line: number;
  readonly column: number;
}

/** Globs over the server's own tool names. Without `allow` everything is allowed; `deny` wins. */
export interface ToolFilter {
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
}

/** The ways in which clients may share a process of a server. */
export const SHARING_MODES = ['profile', 'isolated', 'all'] as const;

type Sharing = (typeof SHARING_MODES)[number];

/** When the process of a server is started. */
export const START_MODES = ['eager', 'lazy'] as const;

type StartMode = (typeof START_MODES)[number];

/** Whether tools that are new or have changed are shown before a person has approved them. */
export const APPROVAL_MODES = ['off', 'required'] as const;

type ApprovalMode = (typeof APPROVAL_MODES)[number];

export interface FrameLimits {
  readonly maxFrameBytes: number;
  /** Bytes that may wait for a child which does not read its stdin. */
  readonly maxUnwrittenBytes: number;
}

export interface GatewayConfig {
  /** How long the first `tools/list` waits for servers that are still starting. */
  readonly startupWaitMs: number;
  /** Whether `trunkline__restart` is offered. */
  readonly restartTool: boolean;
  /** Whether changes of the file are followed. */
  readonly watch: boolean;
  /** How long a process that no client uses is kept. */
  readonly idleStopMs: number;
  /** Children that may be starting at the same time. */
  readonly startLimit: number;
  /** Calls that may wait for their turn, of all servers together. */
  readonly maxQueued: number;
  /** What all connections together may hold of messages that are not complete. */
  readonly maxPartialBytes: number;
  readonly http: HttpConfig;
}

/** What the HTTP front puts up with, under the names that the front has for it. */
export interface HttpConfig {
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  readonly maxConnections: number;
  /** For each token. */
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
  readonly maxBodyBytes: number;
  /** For a whole request to arrive. */
  readonly requestTimeoutMs: number;
  /** Between comments on a silent stream. */
  readonly keepAliveMs: number;
  /** What the streams of one session may hold unread. */
  readonly maxUnwrittenBytes: number;
  /** What is kept of one session's streams for a client that resumes. */
  readonly replayBytes: number;
}
