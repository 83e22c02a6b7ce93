import { join } from 'node:path';
import { checkFile } from '../../src/config/file/check-file.js';
import { readConfigText } from '../../src/config/file/find-config.js';
import type { Config } from '../../src/config/resolve/config.js';
import { type LoadOptions, resolveConfig } from '../../src/config/resolve/resolve-config.js';

/** The folder of this repository, as if the built program ran. */
const OWN_FOLDER = join(import.meta.dirname, '../..');

export type TestLoadOptions = Omit<LoadOptions, 'ownFolder'> & Partial<LoadOptions>;

/**
 * Reads and checks a configuration file.
 *
 * Throws a `ConfigError` with all mistakes in the file. A missing package, folder or variable becomes the `problem` of the
 * server that needs it, so that the other servers can run.
 */
export function loadConfig(file: string, options: TestLoadOptions): Config {
  return resolveConfig(file, checkFile(readConfigText(file), file), { ownFolder: OWN_FOLDER, ...options });
}
