import { resolve } from 'node:path';
import type { Config } from './config.js';
import { GATEWAY_DEFAULTS, MIN_START_LIMIT } from './defaults.js';
import { toHttpConfig } from './http-settings.js';
import { parseBytes, parseDuration } from './units.js';

/** A configuration without servers, in place of a file that cannot be used. `file` may be unknown. */
export function emptyConfig(file: string | undefined): Config {
  return {
    file: file === undefined ? '' : resolve(file),
    servers: [],
    gateway: {
      startupWaitMs: 0,
      idleStopMs: 0,
      restartTool: GATEWAY_DEFAULTS.restartTool,
      watch: GATEWAY_DEFAULTS.watch,
      startLimit: MIN_START_LIMIT,
      maxQueued: GATEWAY_DEFAULTS.maxQueued,
      maxPartialBytes: parseBytes(GATEWAY_DEFAULTS.maxPartial),
      lineTimeoutMs: parseDuration(GATEWAY_DEFAULTS.lineTimeout),
      maxInstructionsBytes: parseBytes(GATEWAY_DEFAULTS.maxInstructions),
      hub: GATEWAY_DEFAULTS.hub,
      hubIdleMs: parseDuration(GATEWAY_DEFAULTS.hubIdle),
      hubClients: GATEWAY_DEFAULTS.hubClients,
      http: toHttpConfig({}),
    },
    warnings: [],
    serverFor: () => undefined,
  };
}
