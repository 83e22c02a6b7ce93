import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { installedPackages } from '../compose/packages.js';
import type { Config } from '../config/config.js';
import { findConfigFile } from '../config/find-config.js';
import { loadConfig } from '../config/load.js';
import { createLogger, type Logger } from '../observe/logger.js';
import { KnownSecrets } from '../observe/redact.js';
import { UsageError } from './usage-error.js';
import { packageFolders } from './user-files.js';

/** What every command is given: where the configuration is, and where and how much to log. */
export interface Settings {
  /** `--config`; looked for in the usual places when absent. */
  readonly config: string | undefined;
  /** How often `-v` was given. */
  readonly verbosity: number;
  readonly logFile: string | undefined;
}

/** What a command ends with. Documented in `--help` and in the README. */
export const EXIT = { ok: 0, failed: 1, usage: 2, internal: 70 } as const;

/** Finds and reads the configuration; throws a `ConfigError` when it cannot be used. */
export function readConfig({ config }: Settings): Config {
  const file = findConfigFile({
    flag: config,
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    platform: process.platform,
  });
  return readConfigFile(file);
}

/** Reads this file and no other; throws a `ConfigError` when it cannot be used. */
export function readConfigFile(file: string): Config {
  const store = installedPackages({ configFile: resolve(file), ...packageFolders() });
  return loadConfig(file, { env: process.env, nodePath: process.execPath, store });
}

/** Where to log, and what is kept out of it. */
export interface OpenLog {
  readonly logger: Logger;
  readonly secrets: KnownSecrets;
}

export function openLog({ verbosity, logFile }: Settings): OpenLog {
  const secrets = new KnownSecrets();
  const { redact } = secrets;
  if (logFile === undefined) return { logger: createLogger({ verbosity, redact }), secrets };
  try {
    return { logger: createLogger({ verbosity, redact, file: logFile }), secrets };
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    const hint = 'name a file in a folder that you may write to with --log-file FILE';
    throw new UsageError(`the log file ${logFile} cannot be written (${reason})`, hint, { cause });
  }
}
