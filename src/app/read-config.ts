import { resolve } from 'node:path';
import type { CheckedFile, CheckedFileCache } from '../config/file/checked-file.js';
import { ConfigError } from '../config/file/config-error.js';
import { readConfigText } from '../config/file/find-config.js';
import { checkQuickly } from '../config/file/quick-check.js';
import { checksumOf, stateOf } from '../config/file/stamp.js';
import type { Config, Origin } from '../config/resolve/config.js';
import { textsOf } from '../config/resolve/entry-texts.js';
import { secretNamesIn } from '../config/resolve/expand.js';
import { type LoadOptions, resolveConfig } from '../config/resolve/resolve-config.js';
import { installedPackages } from '../packages/installed-packages.js';
import { serverNode } from '../process/server-node.js';
import { packageFolders, secretFile } from '../state/user-files.js';
import { OWN_FOLDER } from '../version.js';
import { ConfigPlace } from './config-place.js';
import type { GlobalOptions } from './global-options.js';

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
  const config = configWithoutFaults(file, text, origin) ?? (await configWithSecrets(file, text, checkedFiles, origin));
  return stamped(config, state, text);
}

/** Calls can wait for the check of a text up to this length; a thread for it would take longer than the check. */
const MAX_LENGTH_HERE = 16 * 1024;

/** The configuration if there is nothing to say about the file, which needs neither the schema nor the YAML library. */
function configWithoutFaults(file: string, text: string, origin: Origin | undefined): Config | undefined {
  const checked = text.length > MAX_LENGTH_HERE ? undefined : checkQuickly(text);
  const config = checked && resolved(file, checked, origin);
  return config?.servers.some(({ problem }) => problem !== undefined) ? undefined : config;
}

/** Checks the file in full, and reads the secrets that it refers to. */
async function configWithSecrets(
  file: string,
  text: string,
  checkedFiles: CheckedFileCache | undefined,
  origin: Origin | undefined,
): Promise<Config> {
  const checked = await checkedFile(file, text, checkedFiles);
  const names = secretNamesIn(checked.servers.flatMap(({ entry }) => textsOf(entry)));
  if (names.length === 0) return resolved(file, checked, origin);
  const { readSecrets } = await import('../config/resolve/read-secrets.js');
  const places = { configFile: resolve(file), secretFile: secretFile(), env: process.env };
  return resolved(file, checked, origin, await readSecrets(names, checked, places));
}

function resolved(
  file: string,
  checked: CheckedFile,
  origin: Origin | undefined,
  secrets?: LoadOptions['secrets'],
): Config {
  const store = installedPackages({ configFile: resolve(file), ...packageFolders() });
  const environment = { env: process.env, ...(origin && { origin }), ...(secrets && { secrets }) };
  return resolveConfig(file, checked, { ...environment, nodePath: serverNode().path, ownFolder: OWN_FOLDER, store });
}

/** The same at once, without caches and threads; `undefined` unless the file can be read and there is nothing to say about it. */
export function readPlainConfig(place: ConfigPlace, origin: Origin | undefined): Config | undefined {
  try {
    const { file } = place;
    const state = stateOf(file);
    const text = readConfigText(file);
    const config = configWithoutFaults(file, text, origin);
    return config && stamped(config, state, text);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

function stamped(config: Config, state: string | undefined, text: string): Config {
  return state === undefined ? config : { ...config, stamp: { state, checksum: checksumOf(text) } };
}

async function checkedFile(file: string, text: string, cache: CheckedFileCache | undefined): Promise<CheckedFile> {
  const cached = cache?.find(file, text);
  if (cached !== undefined) return cached;
  const checked = text.length > MAX_LENGTH_HERE ? await checkLarge(text, file) : await checkSmall(text, file);
  cache?.put(file, text, checked);
  return checked;
}

async function checkSmall(text: string, file: string): Promise<CheckedFile> {
  const { checkFile } = await import('../config/file/check-file.js');
  return checkFile(text, file);
}

async function checkLarge(text: string, file: string): Promise<CheckedFile> {
  const { checkInThread } = await import('../config/file/check-in-thread.js');
  return await checkInThread(text, file);
}
