/** Changes to the tools of a server for clients, by original name. */
export interface ToolShapes {
  /** The names that clients see, before the prefix. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Descriptions that replace the server's, or that follow it. */
  readonly describe?: Readonly<Record<string, Description>>;
  readonly params?: Readonly<Record<string, ParamShapes>>;
  /** Globs for the tools that clients in search mode see in the list. */
  readonly pin?: readonly string[];
  /** Words that find the tool in search mode. */
  readonly keywords?: Readonly<Record<string, readonly string[]>>;
}

/** A description that replaces the server's, or that follows it. */
export type Description = string | { readonly append: string };

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

/** Limits of all processes of one server together. Absent members have no limit. */
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
  /** Number of calls that may be in flight at the same time. */
  readonly concurrency: number;
  /** Number of calls that may wait for a slot. */
  readonly maxQueued: number;
  /** Longest wait for a slot, and again for the end of another client's calls. */
  readonly maxWaitMs: number;
}

/** Limits of the content in a tool result, in bytes. 0 means no limit. */
export interface ResultLimits {
  /** Of all texts together. */
  readonly maxBytes?: number;
  /** Of all images, audio and binary resources together, without their encoding as text. */
  readonly maxBinaryBytes?: number;
}
