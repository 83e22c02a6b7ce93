/** What holds when the file says nothing, written as the file would say it. Anchors: `docs/configuration.md`. */
export const DEFAULTS = {
  timeout: '60s',
  maxTimeout: '600s',
  startTimeout: '60s',
  installTimeout: '300s',
  listTimeout: '30s',
  concurrency: 16,
  maxQueued: 64,
  maxWait: '10s',
  stopGrace: '2s',
  sharing: 'profile',
  start: 'eager',
  idleStop: '0s',
  approval: 'off',
  maxFrame: '64MiB',
  maxUnwritten: '4MiB',
  restart: {
    firstDelay: '500ms',
    maxDelay: '30s',
    budget: 5,
    stableAfter: '300s',
    parkedProbe: '5m',
    parkedProbeMax: '60m',
  },
} as const;

export const GATEWAY_DEFAULTS = {
  startupWait: '10s',
  idleStop: '10m',
  restartTool: false,
  watch: true,
  maxQueued: 1024,
  maxPartial: '256MiB',
} as const;

/** Of `gateway.http`. */
export const HTTP_DEFAULTS = {
  maxSessions: 100,
  sessionIdle: '30m',
  maxConnections: 256,
  requestsPerSecond: 50,
  requestBurst: 100,
  maxBody: '4MiB',
  receiveTimeout: '30s',
  keepAlive: '15s',
  maxUnread: '8MiB',
  maxReplay: '2MiB',
} as const;

/** Simultaneous starts: enough to be quick, and more where there are cores to share. */
export const MIN_START_LIMIT = 4;

/** From SIGTERM to SIGKILL. Not a key of the file: `stopGrace` is the patience a server can ask for. */
export const KILL_AFTER_MS = 3000;

/** How often a call may start a parked child. Not a key of the file. */
export const DEMAND_EVERY_MS = 60_000;
