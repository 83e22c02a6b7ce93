import { availableParallelism, homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { CheckedFile } from './checked-file.js';
import type { Config, ServerConfig } from './config.js';
import { formatProblem } from './config-error.js';
import { MIN_START_LIMIT } from './defaults.js';
import type { Variables } from './expand.js';
import type { InstalledPackages } from './package-bin.js';
import { resolveServer } from './resolve-server.js';
import { locateFault } from './server-fault.js';

export interface LoadOptions {
  /** The values of `${NAME}`. */
  env: Variables;
  /** The Node that runs servers with a `package`. */
  nodePath: string;
  /** The packages in Trunkline's own store. */
  store?: InstalledPackages;
}

/**
 * Resolves a checked file on this machine and with these variables. If something is missing for one server, that server
 * gets a `problem`.
 */
export function resolveConfig(file: string, checked: CheckedFile, { env, nodePath, store }: LoadOptions): Config {
  const surroundings = {
    folder: dirname(resolve(file)),
    home: env.HOME || env.USERPROFILE || homedir(),
    env,
    nodePath,
    store,
  };
  const servers = checked.servers.map((entry): ServerConfig => {
    const { places, problem } = entry;
    const server = resolveServer(entry, { ...surroundings, locate: (fault) => locateFault(fault, places) });
    return problem === undefined ? server : { ...server, child: undefined, problem };
  });
  const { startLimit, ...gateway } = checked.gateway;
  return {
    file: resolve(file),
    servers,
    gateway: { ...gateway, startLimit: startLimit ?? Math.max(MIN_START_LIMIT, availableParallelism()) },
    warnings: checked.warnings.map((warning) => formatProblem(file, warning)),
  };
}
