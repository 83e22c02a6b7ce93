import { checkFile } from '../../src/config/check-file.js';
import type { Config } from '../../src/config/config.js';
import { readConfigText } from '../../src/config/config-text.js';
import { type LoadOptions, resolveConfig } from '../../src/config/resolve-config.js';

/**
 * Reads and checks a configuration file.
 *
 * A mistake in the file throws a `ConfigError` with everything that is wrong. What is merely not there for one server,
 * such as a package, a folder or a variable, becomes that server's `problem`, so that the others can run.
 */
export function loadConfig(file: string, options: LoadOptions): Config {
  return resolveConfig(file, checkFile(readConfigText(file), file), options);
}
