import { resolve } from 'node:path';
import { toCheckedGateway } from '../file/checked-file.js';
import { MIN_START_LIMIT } from '../schema/settings.js';
import type { Config } from './config.js';

/** A configuration without servers, in place of a file that cannot be used. `file` may be unknown. */
export function emptyConfig(file: string | undefined): Config {
  return {
    file: file === undefined ? '' : resolve(file),
    servers: [],
    gateway: { ...toCheckedGateway({}), startupWaitMs: 0, idleStopMs: 0, startLimit: MIN_START_LIMIT },
    warnings: [],
    envFiles: [],
    serverFor: () => undefined,
  };
}
