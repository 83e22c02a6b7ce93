import { checkFile } from './check-file.js';
import type { Config } from './config.js';
import { readConfigText } from './config-text.js';
import { type LoadOptions, resolveConfig } from './resolve-config.js';

/**
 * Reads and checks a configuration file.
 *
 * A mistake in the file throws a `ConfigError` with everything that is wrong. What is merely not there for one server,
 * such as a package, a folder or a variable, becomes that server's `problem`, so that the others can run.
 */
export function loadConfig(file: string, options: LoadOptions): Config {
  return resolveConfig(file, checkFile(readConfigText(file), file), options);
}
