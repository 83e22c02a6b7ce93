import { homedir } from 'node:os';
import type { Config } from '../config/config.js';
import { findConfigFile } from '../config/find-config.js';
import { loadConfig } from '../config/load.js';

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

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Finds and reads the configuration; throws a `ConfigError` when it cannot be used. */
export function readConfig({ config }: Settings): Config {
  const file = findConfigFile({
    flag: config,
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    platform: process.platform,
  });
  return loadConfig(file, { env: process.env, nodePath: process.execPath });
}
