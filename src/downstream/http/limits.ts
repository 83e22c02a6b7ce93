/** Limits that are settings. Their defaults are in the configuration. */
export interface ConfigurableLimits {
  readonly maxBodyBytes: number;
  /** Bytes of all bodies that have not arrived completely, together. */
  readonly maxPartialBytes: number;
  /** Time for a whole request to arrive, without its answer. */
  readonly receiveTimeoutMs: number;
  readonly maxConnections: number;
  readonly maxSessions: number;
  /** A session without a request in flight or an open stream ends after this time. */
  readonly sessionIdleMs: number;
  /** Per token. */
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
  /** Unread bytes that a client's open streams may hold when there is more to write. */
  readonly maxUnreadBytes: number;
  /** Time between comments on an idle stream, which clients and proxies would otherwise close. */
  readonly keepAliveMs: number;
  /** Size of the events per session that can be replayed after a lost connection. */
  readonly maxReplayBytes: number;
}

/** Limits that no setting changes. */
export const FIXED_LIMITS = {
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  /** Interval of Node's checks of the time of headers and requests. Its default of 30 s would exceed them. */
  checkIntervalMs: 1_000,
  /** Per address. */
  failedLoginsPerMinute: 10,
  /** An answer that takes longer is sent on an event stream, which can be kept alive. A faster one is sent as JSON. */
  streamAfterMs: 10_000,
  /** Events per session that can be replayed after a lost connection. */
  replayEvents: 256,
};

export type HttpLimits = ConfigurableLimits & typeof FIXED_LIMITS;
