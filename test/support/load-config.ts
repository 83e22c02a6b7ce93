import { checkFile } from '../../src/config/check-file.js';
import type { Config } from '../../src/config/config.js';
import { readConfigText } from '../../src/config/find-config.js';
import { type LoadOptions, resolveConfig } from '../../src/config/resolve-config.js';

/**
 * Reads and checks a configuration file.
 *
 * Throws a `ConfigError` with all mistakes in the file. A missing package, folder or variable becomes the `problem` of the
 * server that needs it, so that the other servers can run.
 */
export function loadConfig(file: string, options: LoadOptions): Config {
  return resolveConfig(file, checkFile(readConfigText(file), file), options);
}
