import { resolve } from 'node:path';
import type { CheckedFile, CheckedFileCache } from '../config/file/checked-file.js';
import { ConfigPlace, checksumOf, readConfigText, stateOf } from '../config/file/find-config.js';
import type { Config, Origin } from '../config/resolve/config.js';
import { secretNamesIn, textsOf } from '../config/resolve/references.js';
import { type LoadOptions, resolveConfig } from '../config/resolve/resolve-config.js';
import { UsageError } from '../errors/usage-error.js';
import { didYouMean, suggest } from '../json/suggest.js';
import { installedPackages } from '../packages/package-store.js';
import { serverNode } from '../process/server-node.js';
import { packageFolders, secretFile } from '../state/user-files.js';
import { OWN_FOLDER } from '../version.js';
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
  // A change of the file after this line makes the next run check the file again.
  const state = stateOf(file);
  const text = readConfigText(file);
  const checked = checkedFiles?.find(file, text) ?? (await check(file, text, checkedFiles));
  const config = await resolved(file, checked, origin);
  return state === undefined ? config : { ...config, stamp: { state, checksum: checksumOf(text) } };
}

/** Checks a file whose result is not cached. Only this step needs the YAML library and the schema. */
async function check(file: string, text: string, cache: CheckedFileCache | undefined): Promise<CheckedFile> {
  const { checkFile } = await import('../config/file/check-file.js');
  const checked = checkFile(text, file);
  cache?.put(file, text, checked);
  return checked;
}

/** Resolves a checked file, with the secrets that it refers to. */
async function resolved(file: string, checked: CheckedFile, origin: Origin | undefined): Promise<Config> {
  const secrets = await secretsOf(file, checked);
  const store = installedPackages({ configFile: resolve(file), ...packageFolders() });
  const environment = { env: process.env, ...(origin && { origin }), ...(secrets && { secrets }) };
  return resolveConfig(file, checked, { ...environment, nodePath: serverNode().path, ownFolder: OWN_FOLDER, store });
}

async function secretsOf(file: string, checked: CheckedFile): Promise<LoadOptions['secrets']> {
  const names = secretNamesIn(checked.servers.flatMap(({ entry }) => textsOf(entry)));
  if (names.length === 0) return undefined;
  const { readSecrets } = await import('../config/resolve/secrets.js');
  return await readSecrets(names, checked, { configFile: resolve(file), secretFile: secretFile(), env: process.env });
}

/** Throws a `UsageError` if the command line names a view that the configuration does not have. */
export function requireView({ gateway, file }: Config, view: string | undefined): void {
  const names = gateway.views.map(({ name }) => name);
  if (view === undefined || view === '' || names.includes(view)) return;
  const meant = suggest(view, names);
  const known =
    names.length === 0 ? `add it below \`views:\` in ${file}` : `the configuration has: ${names.join(', ')}`;
  throw new UsageError(
    `there is no view \`${view}\` in the configuration`,
    meant === undefined ? known : didYouMean(meant),
  );
}
