import { resolve } from 'node:path';
import type { CheckedFile, CheckedFileCache } from '../config/check-file.js';
import type { Config, Origin } from '../config/config.js';
import { readConfigText } from '../config/find-config.js';
import { resolveConfig } from '../config/resolve-config.js';
import { checksumOf, stateOf } from '../config/stamp.js';
import { installedPackages } from '../packages/installed-packages.js';
import { OWN_FOLDER } from '../version.js';
import { ConfigPlace } from './config-place.js';
import type { GlobalOptions } from './global-options.js';
import { packageFolders } from './user-files.js';

/** Finds and reads the configuration, as `readConfigFile` does. Throws a `ConfigError` when there is none. */
export async function readConfig(options: GlobalOptions, ...rest: ReadOptions): Promise<Config> {
  return await readConfigFile(new ConfigPlace(options).file, ...rest);
}

type ReadOptions = [checkedFiles?: CheckedFileCache | undefined, origin?: Origin | undefined];

/**
 * Reads this configuration file. Throws a `ConfigError` when it is missing or has mistakes. Without an origin, the servers
 * get the variables and the working folder of this process.
 */
export async function readConfigFile(file: string, ...[checkedFiles, origin]: ReadOptions): Promise<Config> {
  // A file that changes in between has another state in the next run.
  const state = stateOf(file);
  const text = readConfigText(file);
  const checked = checkedFiles?.find(file, text) ?? (await check(file, text, checkedFiles));
  const store = installedPackages({ configFile: resolve(file), ...packageFolders() });
  const environment = { env: process.env, ...(origin && { origin }) };
  const context = { ...environment, nodePath: process.execPath, ownFolder: OWN_FOLDER, store };
  const config = resolveConfig(file, checked, context);
  return state === undefined ? config : { ...config, stamp: { state, checksum: checksumOf(text) } };
}

/** Calls can wait for the check of a text up to this length; a thread for it would take longer than the check. */
const MAX_LENGTH_HERE = 16 * 1024;

async function check(file: string, text: string, checkedFiles: CheckedFileCache | undefined): Promise<CheckedFile> {
  const checked = text.length > MAX_LENGTH_HERE ? await checkLarge(text, file) : await checkSmall(text, file);
  checkedFiles?.put(file, text, checked);
  return checked;
}

async function checkSmall(text: string, file: string): Promise<CheckedFile> {
  const { checkFile } = await import('../config/check-file.js');
  return checkFile(text, file);
}

async function checkLarge(text: string, file: string): Promise<CheckedFile> {
  const { checkInThread } = await import('../config/check-in-thread.js');
  return await checkInThread(text, file);
}
