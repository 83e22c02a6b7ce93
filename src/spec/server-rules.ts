import type { ServerSpec } from './server-spec.js';
/** The part of a resolved entry that the gateway applies to the tools and calls of the server. */
export interface ServerRules {
  /** The text before `__` in exposed names: the key, or '' if the prefix is disabled. */
  readonly prefix: string;
  /** Undefined for a server that cannot run. */
  readonly spec: ServerSpec | undefined;
  readonly tools: ToolFilter;
  /** Changes to how the tools are shown and called, with the values of variables. Absent if there are none. */
  readonly shapes?: ToolShapes;
  /** Globs over methods outside of MCP that this server answers. */
  readonly methods: readonly string[];
  /** Names in lower case of the headers of a client's request that are sent with its calls. */
  readonly passHeaders: readonly string[];
  /** Whether the server's own annotations of its tools (`readOnlyHint`, `idempotentHint`) are trusted. */
  readonly trusted: boolean;
  /** Milliseconds without a call after which the process is stopped. 0 means never. */
  readonly idleStopMs: number;
  readonly results: ResultLimits;
}

/** Globs over the original tool names. Without `allow` all tools are allowed. `deny` overrides `allow`. */
export interface ToolFilter {
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
}

/** Changes to the tools of a server for clients, by original name. */
export interface ToolShapes {
  /** The names that clients see, before the prefix. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Descriptions that replace or extend those of the server. */
  readonly describe?: Readonly<Record<string, Description>>;
  readonly params?: Readonly<Record<string, ParamShapes>>;
  /** Annotations that replace those of the server. The keys are globs. */
  readonly annotate?: Readonly<Record<string, ToolHints>>;
  /** Globs for the tools that clients in search mode see in the list. */
  readonly pin?: readonly string[];
  /** Additional words by which search mode finds the tool. */
  readonly keywords?: Readonly<Record<string, readonly string[]>>;
}

/** A text that replaces the description of the server, or one that is appended to it. */
export type Description = string | { readonly append: string };

/** Annotations of a tool. `title` is also the title of the tool itself. */
export interface ToolHints {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** Changes to the parameters of one tool, by name of the parameter. */
export interface ParamShapes {
  /** Parameters that clients do not see. */
  readonly hide?: readonly string[];
  /** Values that replace those of the client. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Values of parameters that the client leaves out. */
  readonly default?: Readonly<Record<string, unknown>>;
  readonly describe?: Readonly<Record<string, string>>;
}

/** Limits of each process group of a server, with its descendants. Absent members have no limit. */
export interface ResourceLimits {
  readonly memoryBytes?: number;
  readonly processes?: number;
}

/** Limits of the calls to one server. Times are milliseconds. */
export interface CallLimits {
  /** Longest time without an answer or progress. */
  readonly timeoutMs: number;
  /** Longest time until the answer, regardless of progress. */
  readonly maxTimeoutMs: number;
  /** Longest time until the answer to a request for a list. */
  readonly listTimeoutMs: number;
  readonly concurrency: number;
  readonly maxQueued: number;
  /** Longest wait for a slot. The wait for the end of another client's calls has the same limit, counted anew. */
  readonly maxWaitMs: number;
}

/** Limits of the content in a tool result, in bytes. 0 means no limit. */
export interface ResultLimits {
  /** All texts together. */
  readonly maxBytes?: number;
  /** All images, audio and binary resources together, decoded. */
  readonly maxBinaryBytes?: number;
}
