/** What is counted about calls to one server; only ever up. */
export interface CallCounters {
  calls: number;
  /** Answered by the server with a JSON-RPC error or a tool result that says so. */
  errors: number;
  /** Answered by the gateway because the server could not. */
  failures: number;
  cancelled: number;
  /** Sent to a second process because the first one ended. */
  repeated: number;
}

/** Nothing was counted yet. */
export function newCallCounters(): CallCounters {
  return { calls: 0, errors: 0, failures: 0, cancelled: 0, repeated: 0 };
}
