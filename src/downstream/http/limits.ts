/** The limits of the HTTP transport. */
export interface HttpLimits {
  readonly maxBodyBytes: number;
  readonly maxHeaderBytes: number;
  /** Time for all headers of a request to arrive. */
  readonly headersTimeoutMs: number;
  /** Time for a whole request to arrive, without its answer. */
  readonly requestTimeoutMs: number;
  /** How often Node checks these two. Its default of 30 s would exceed them. */
  readonly checkIntervalMs: number;
  readonly maxConnections: number;
  readonly maxSessions: number;
  /** A session without a request in flight or an open stream ends after this time. */
  readonly sessionIdleMs: number;
  /** Per token. */
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
  /** Per address. */
  readonly failedLoginsPerMinute: number;
  /** Unread bytes that a client's open streams may hold when there is more to write. */
  readonly maxUnwrittenBytes: number;
  /** Time between comments on an idle stream, which clients and proxies would otherwise close. */
  readonly keepAliveMs: number;
  /** An answer that takes longer is sent on an event stream, which can be kept alive. A faster one is sent as JSON. */
  readonly streamAfterMs: number;
  /** Events per session that can be replayed after a lost connection. */
  readonly replayEvents: number;
  readonly replayBytes: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  maxBodyBytes: 4 * MIB,
  maxHeaderBytes: 16 * KIB,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  checkIntervalMs: 1_000,
  maxConnections: 256,
  maxSessions: 100,
  sessionIdleMs: 30 * 60_000,
  requestsPerSecond: 50,
  requestBurst: 100,
  failedLoginsPerMinute: 10,
  maxUnwrittenBytes: 8 * MIB,
  keepAliveMs: 15_000,
  streamAfterMs: 10_000,
  replayEvents: 256,
  replayBytes: 2 * MIB,
};
