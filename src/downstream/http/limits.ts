/** What one HTTP front puts up with. */
export interface HttpLimits {
  readonly maxBodyBytes: number;
  readonly maxHeaderBytes: number;
  /** For all headers of a request to arrive. */
  readonly headersTimeoutMs: number;
  /** For a whole request to arrive; how long the answer takes is another matter. */
  readonly requestTimeoutMs: number;
  /** How often those two are looked at. Node's own 30 s would let them pass by far. */
  readonly checkIntervalMs: number;
  readonly maxConnections: number;
  readonly maxSessions: number;
  /** A session with nothing open and nothing asked for this long is over. */
  readonly sessionIdleMs: number;
  /** Per token. */
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
  /** Per address. */
  readonly failedLoginsPerMinute: number;
  /** What a client's open streams may hold unread when there is more to write. */
  readonly maxUnwrittenBytes: number;
  /** Between comments on a stream: clients and proxies give up on a silent one. */
  readonly keepAliveMs: number;
  /** An answer that comes sooner is sent as JSON; then a stream is begun, so that it can be kept alive. */
  readonly streamAfterMs: number;
  /** Per session, for clients that lost a connection. */
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
