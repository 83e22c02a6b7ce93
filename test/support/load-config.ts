import { join } from 'node:path';
import { checkFile } from '../../src/config/file/check-file.js';
import { readConfigText } from '../../src/config/file/find-config.js';
import type { Config, Origin, ServerConfig } from '../../src/config/resolve/config.js';
import { type LoadOptions, resolveConfig } from '../../src/config/resolve/resolve-config.js';
import { RequestRules } from '../../src/config/rules/request-rules.js';
import type { ChildSpec } from '../../src/spec/server-spec.js';

/** The folder of this repository, as if the built program ran. */
const OWN_FOLDER = join(import.meta.dirname, '../..');

export type TestLoadOptions = Omit<LoadOptions, 'ownFolder'> & Partial<LoadOptions>;

/**
 * Reads and checks a configuration file.
 *
 * Throws a `ConfigError` with all mistakes in the file. A missing package, folder or variable becomes the `problem` of the
 * server that needs it, so that the other servers can run.
 */
export function loadConfig(file: string, options: TestLoadOptions): ProgramConfig {
  return withPrograms(loadAnyConfig(file, options));
}

/** The same for a file that may have servers behind a URL. */
export function loadAnyConfig(file: string, options: TestLoadOptions): Config {
  const config = resolveConfig(file, checkFile(readConfigText(file), file), { ownFolder: OWN_FOLDER, ...options });
  return { ...config, prepareRules: (rules, areOfView) => new RequestRules(rules, { areOfView }) };
}

/** A configuration whose servers all run programs. */
export interface ProgramConfig extends Config {
  readonly servers: readonly ProgramServer[];
  readonly serverFor: (key: string, origin: Origin) => ProgramServer | undefined;
}

export interface ProgramServer extends ServerConfig {
  readonly spec: ChildSpec | undefined;
}

/** Throws if a server of the configuration is behind a URL. */
export function withPrograms(config: Config): ProgramConfig {
  const remote = config.servers.find(({ spec }) => spec?.kind === 'remote');
  if (remote !== undefined) throw new Error(`${remote.key} runs no program`);
  return config as ProgramConfig;
}
