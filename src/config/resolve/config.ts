import type { CallLimits } from '../../gateway/dispatch/call.js';
import type { ChildSpec, PackageRequest } from '../../supervision/child-spec.js';
import type { ResourceLimits } from '../../supervision/resource-limits.js';
import type { Stamp } from '../file/stamp.js';

/** A configuration file, checked and resolved. Times are milliseconds, sizes bytes, paths absolute. */
export interface Config {
  readonly file: string;
  /** Absent if the configuration was not read from a file. */
  readonly stamp?: Stamp;
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly ServerConfig[];
  readonly gateway: GatewayConfig;
  /** Warnings about accepted settings that are probably mistakes, each as `FILE:LINE:COL: message`. */
  readonly warnings: readonly string[];
  /** The environment files that servers use; absolute. */
  readonly envFiles: readonly string[];
  /** Resolves one server for another origin; `undefined` if there is no such server. Checks nothing again. */
  readonly serverFor: (key: string, origin: Origin) => ServerConfig | undefined;
}

/** What a server is resolved with: the values of `${NAME}`, and the working folder of the clients. */
export interface Origin {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute; only `sharing: folder` uses it. */
  readonly folder: string;
}

export interface ServerConfig {
  readonly key: string;
  /** The text before `__` in exposed names: the key, or '' if the prefix is disabled. */
  readonly prefix: string;
  /** Undefined when `problem` is set. */
  readonly child: ChildSpec | undefined;
  readonly problem?: ServerProblem;
  /** The package that the server runs; absent for a `command` and for a server with a `problem`. */
  readonly package?: ServerPackage;
  /** Which clients share a process. */
  readonly sharing: Sharing;
  /** Whether the process starts at once or at the first call. */
  readonly start: StartMode;
  /** Time without a call after which the process is stopped until the next call; 0 disables this. */
  readonly idleStopMs: number;
  /** Which protocol era the server speaks; `auto` finds out. */
  readonly era: EraMode;
  /** Whether tools need approval. */
  readonly approval: ApprovalMode;
  readonly tools: ToolFilter;
  /** The form in which the tools are shown and called, with the values of variables. Absent if nothing is changed. */
  readonly shapes?: ToolShapes;
  /** Globs over methods that this server answers although MCP does not define them. */
  readonly methods: readonly string[];
  /** Whether the annotations of its tools are trusted. */
  readonly trusted: boolean;
  readonly calls: CallLimits;
  readonly frames: FrameLimits;
  /** What the processes of one instance may use together. */
  readonly limits: ResourceLimits;
  /** The names of all variables that the entry refers to as `${NAME}`, without those of its `envFile`, sorted. */
  readonly variables: readonly string[];
  /** The values of all references, also of those to its `envFile`, so that secrets can be removed from logs. */
  readonly references: Readonly<Record<string, string>>;
  /** Values that are secrets, whatever they look like. Absent if there are none. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** With `sharing: folder`: the working folder of the clients. */
  readonly folder?: string;
}

export interface ServerPackage {
  readonly request: PackageRequest;
  /** Absent if the package is not installed yet. */
  readonly found?: FoundPackage;
}

/** Where a package was found, and its program, which runs with Node. */
export interface FoundPackage {
  /** `near`: in `node_modules` next to the configuration file. `store`: in Trunkline's own store. */
  readonly place: 'near' | 'store';
  readonly version: string | undefined;
  /** Absolute. */
  readonly program: string;
}

/** Why one server of a valid file cannot run. The other servers are not affected. */
export interface ServerProblem {
  readonly message: string;
  readonly hint: string;
  readonly line: number;
  readonly column: number;
}

/** Globs over the original tool names. Without `allow` all tools are allowed. `deny` overrides `allow`. */
export interface ToolFilter {
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
}

/** How tools are shown and called, by original names. */
export interface ToolShapes {
  readonly rename?: Readonly<Record<string, string>>;
  readonly describe?: Readonly<Record<string, string | { readonly append: string }>>;
  readonly params?: Readonly<Record<string, ParamShapes>>;
}

/** How the parameters of a tool are shown, and their values. */
export interface ParamShapes {
  readonly hide?: readonly string[];
  readonly set?: Readonly<Record<string, unknown>>;
  readonly default?: Readonly<Record<string, unknown>>;
  readonly describe?: Readonly<Record<string, string>>;
}

/** Which clients share a process of a server. */
export const SHARING_MODES = ['profile', 'folder', 'isolated', 'all'] as const;

type Sharing = (typeof SHARING_MODES)[number];

/** When the process of a server starts. */
export const START_MODES = ['eager', 'lazy'] as const;

type StartMode = (typeof START_MODES)[number];

/** The protocol era of a server: with a handshake (legacy), without one (modern), or whichever it turns out to speak. */
export const ERA_MODES = ['auto', 'legacy', 'modern'] as const;

type EraMode = (typeof ERA_MODES)[number];

/** Whether new and changed tools need the approval of a person before they are shown. */
export const APPROVAL_MODES = ['off', 'required'] as const;

type ApprovalMode = (typeof APPROVAL_MODES)[number];

/** Whether clients on stdin share one background process, the hub. */
export const HUB_MODES = ['auto', 'off'] as const;

type HubMode = (typeof HUB_MODES)[number];

/** What the call log says of each call: nothing, everything but its content, or its content, too. */
export const CALL_LOG_MODES = ['off', 'metadata', 'full'] as const;

export type CallLogMode = (typeof CALL_LOG_MODES)[number];

export interface FrameLimits {
  readonly maxFrameBytes: number;
  /** Bytes that may wait for a child that does not read its stdin. */
  readonly maxUnwrittenBytes: number;
}

export interface GatewayConfig {
  /** How long the first `tools/list` waits for servers that are starting. */
  readonly startupWaitMs: number;
  /** Whether `trunkline__restart` is offered. */
  readonly restartTool: boolean;
  /** Whether changes of the file are applied. */
  readonly watch: boolean;
  /** How long a process without clients keeps running. */
  readonly idleStopMs: number;
  /** Children that may be starting at once. */
  readonly startLimit: number;
  /** Calls that may wait in the queues of all servers together. */
  readonly maxQueued: number;
  /** Bytes of unfinished messages on the pipes of all servers and clients together. */
  readonly maxPartialBytes: number;
  /** Size limit of the instructions for a client that sees all servers. 0 leaves out what servers say. */
  readonly maxInstructionsBytes: number;
  /** Whether the clients on stdin share one background process. */
  readonly hub: HubMode;
  /** How long the shared process waits for the next client. 0 means forever. */
  readonly hubIdleMs: number;
  /** Clients that the shared process takes. */
  readonly hubClients: number;
  readonly callLog: CallLogMode;
  /** The file that all messages are recorded to. */
  readonly record?: string;
  /** The file with the key that seals what several gateways take from clients. */
  readonly sealKeyFile?: string;
  readonly http: HttpConfig;
  /** In the order of the file. */
  readonly views: readonly ViewConfig[];
  /** The views of clients that name none: globs for their names, in the order of the file. */
  readonly clientViews: readonly { readonly client: string; readonly view: string }[];
}

/** Some of the servers, and some of their tools. */
export interface ViewConfig {
  readonly name: string;
  /** Keys. Absent means all servers. */
  readonly servers?: readonly string[];
  /** Globs over names such as `KEY__TOOL`. Absent means all tools. */
  readonly tools?: Partial<ToolFilter>;
}

/** Limits of the HTTP server, under the names that it uses. */
export interface HttpConfig {
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  readonly maxConnections: number;
  /** Per token. */
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
  readonly maxBodyBytes: number;
  /** Bytes of all request bodies that have not arrived completely, together. */
  readonly maxPartialBytes: number;
  /** Time for a whole request to arrive. */
  readonly requestTimeoutMs: number;
  /** Time between comments on a silent stream. */
  readonly keepAliveMs: number;
  /** Unread bytes that the streams of one session may hold. */
  readonly maxUnwrittenBytes: number;
  /** Bytes of one session's streams that are stored for a client that resumes. */
  readonly replayBytes: number;
}
