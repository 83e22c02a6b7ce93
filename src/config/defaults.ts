/** Default settings, in the notation of the configuration file. `docs/configuration.md` gives the origin of each. */
export const DEFAULTS = {
  timeout: '60s',
  maxTimeout: '600s',
  startTimeout: '60s',
  installTimeout: '300s',
  listTimeout: '30s',
  concurrency: 64,
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
  limits: {},
} as const;

/** Defaults of the switches in the entry of a server. `defaults:` has none of them. */
export const SWITCH_DEFAULTS = {
  installScripts: false,
  trusted: false,
  leaveRunning: false,
  disabled: false,
} as const;

export const GATEWAY_DEFAULTS = {
  startupWait: '3s',
  idleStop: '10m',
  restartTool: false,
  watch: true,
  maxQueued: 1024,
  maxPartial: '256MiB',
  lineTimeout: '30s',
  maxInstructions: '8KiB',
  hub: 'auto',
  hubIdle: '10m',
  hubClients: 256,
} as const;

/** Defaults of `gateway.http`. */
export const HTTP_DEFAULTS = {
  maxSessions: 100,
  sessionIdle: '30m',
  maxConnections: 256,
  requestsPerSecond: 50,
  requestBurst: 100,
  maxBody: '4MiB',
  maxPartial: '128MiB',
  receiveTimeout: '30s',
  keepAlive: '15s',
  maxUnread: '8MiB',
  maxReplay: '2MiB',
} as const;

/** Least default of `startLimit`, which is the number of CPU cores on machines with more cores. */
export const MIN_START_LIMIT = 4;

/** Milliseconds from SIGTERM to SIGKILL when a server is stopped. Not configurable: a server that needs more time sets `stopGrace`. */
export const STOP_KILL_AFTER_MS = 3000;

/** A call may start a parked child once in this many milliseconds. Not configurable. */
export const DEMAND_EVERY_MS = 60_000;
