/** Limits with a setting. Their defaults are in the configuration. */
export interface ConfigurableLimits {
  readonly maxBodyBytes: number;
  /** Limit of the bytes of all incomplete bodies together. */
  readonly maxPartialBytes: number;
  /** Longest time for a whole request to arrive, without its answer. */
  readonly receiveTimeoutMs: number;
  readonly maxConnections: number;
  readonly maxSessions: number;
  /** Time after which a session without requests in flight and open streams ends. */
  readonly sessionIdleMs: number;
  /** Age from which a session is not resumed any more. */
  readonly maxSessionAgeMs: number;
  /** Limit of the requests with one token. */
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
  /** Limit of the unread bytes in a client's open streams, checked before each write. */
  readonly maxUnreadBytes: number;
  /** Time between two comments on an idle stream, which clients and proxies would otherwise close. */
  readonly keepAliveMs: number;
  /** Size of the events of one session that can be replayed after a lost connection. */
  readonly maxReplayBytes: number;
}

export const FIXED_LIMITS = {
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  /** Interval at which Node checks the time of headers and requests. Its default of 30 s would exceed those times. */
  checkIntervalMs: 1_000,
  /** Limit of the failed logins from one address. */
  failedLoginsPerMinute: 10,
  /** Time until an answer is sent on an event stream, which can be kept alive, instead of as JSON. */
  streamAfterMs: 10_000,
  /** Number of the events of one session that can be replayed after a lost connection. */
  replayEvents: 256,
};

export type HttpLimits = ConfigurableLimits & typeof FIXED_LIMITS;
