import { resolve } from 'node:path';
import type { CheckedFile } from '../config/file/check-file.js';
import { ConfigError, type ConfigProblem } from '../config/file/config-error.js';
import { ConfigLocation, checksumOf, readConfigText } from '../config/file/find-config.js';
import { type Config, isPerUser, type Origin, withRules } from '../config/resolve/config.js';
import { secretNamesIn, textsOfEntry } from '../config/resolve/references.js';
import { type LoadOptions, resolveConfig } from '../config/resolve/resolve-config.js';
import { UsageError } from '../host/errors/usage-error.js';
import type { Logger } from '../host/observe/logger.js';
import { installedPackages } from '../servers/packages/package-store.js';
import { serverNode } from '../servers/process/environment.js';
import type { ConfigCache } from '../state/config-cache.js';
import { packageFolders, secretFile } from '../state/user-files.js';
import { OWN_FOLDER } from '../version.js';
import { hintFor } from '../wire/json/suggest.js';
import type { GlobalOptions } from './global-options.js';
import { type LayerScope, withLayers } from './read-layers.js';

/** Finds the configuration file and reads it as `readConfigFile` does. Throws a `ConfigError` when there is none. */
export async function readConfig(options: GlobalOptions, ...rest: ReadOptions): Promise<Config> {
  return await readConfigFile(new ConfigLocation(options).file, ...rest);
}

/** Reads the configuration, and returns the `ConfigError` of one that cannot be used. */
export async function readConfigOrError(options: GlobalOptions): Promise<Config | ConfigError> {
  return await readConfig(options).catch((error: unknown) => {
    if (error instanceof ConfigError) return error;
    throw error;
  });
}

type ReadOptions = [
  checkedFiles?: ConfigCache | undefined,
  origin?: Origin | undefined,
  layers?: LayerScope | undefined,
];

/**
 * Reads a configuration file. Throws a `ConfigError` when the file is missing or has mistakes. The default origin has the
 * variables and the working folder of this process.
 */
export async function readConfigFile(file: string, ...[checkedFiles, origin, scope]: ReadOptions): Promise<Config> {
  const text = readConfigText(file);
  const checked = checkedFiles?.find(file, text) ?? (await check(file, text, checkedFiles));
  const own = await resolved(file, checked, origin);
  if (scope === undefined) return { ...(await withRules(own)), stamp: checksumOf(text) };
  const whole = await withLayers(own, checked, { scope, origin, checkedFiles, resolve: loadOptions });
  return { ...(await withRules(whole)), stamp: checksumOf(text) };
}

/**
 * Reads a configuration that a program has made, as the file `name` would be read. Throws a `ConfigError` when it has mistakes, whose
 * problems have no lines.
 */
export async function readConfigObject(configuration: object, name: string): Promise<Config> {
  const text = JSON.stringify(configuration) ?? '';
  try {
    const checked = await check(name, text, undefined);
    return await resolved(name, { ...checked, warnings: checked.warnings.map(withoutLine) }, undefined);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [first, ...others] = error.problems;
    throw new ConfigError(error.code, name, [withoutLine(first), ...others.map(withoutLine)], { cause: error });
  }
}

function withoutLine({ message, hint }: ConfigProblem): ConfigProblem {
  return hint === undefined ? { message } : { message, hint };
}

/** Checks a file without a cached result. Only this step loads the YAML library and the schema. */
async function check(file: string, text: string, cache: ConfigCache | undefined): Promise<CheckedFile> {
  const { checkFile } = await import('../config/file/check-file.js');
  const checked = checkFile(text, file);
  cache?.put(file, text, checked);
  return checked;
}

/** Reads the secrets of a checked file, and resolves the file with them. */
async function resolved(file: string, checked: CheckedFile, origin: Origin | undefined): Promise<Config> {
  return resolveConfig(file, checked, await loadOptions(file, checked, origin));
}

/** The facts about this machine with which a file is resolved. The secrets are those of `checked`, packages those of `file`. */
async function loadOptions(file: string, checked: CheckedFile, origin: Origin | undefined): Promise<LoadOptions> {
  const secrets = await readSecretsOf(file, checked);
  const store = installedPackages({ configFile: resolve(file), ...packageFolders() });
  const environment = { env: process.env, ...(origin && { origin }), ...(secrets && { secrets }) };
  return { ...environment, nodePath: serverNode().path, ownFolder: OWN_FOLDER, store };
}

async function readSecretsOf(file: string, checked: CheckedFile): Promise<LoadOptions['secrets']> {
  const { tracing, cluster } = checked.gateway;
  const names = secretNamesIn([
    ...checked.servers.flatMap(textsOfEntry),
    ...[tracing, cluster].flatMap((settings) => (settings === undefined ? [] : [JSON.stringify(settings)])),
  ]);
  if (names.length === 0) return undefined;
  const { readSecrets } = await import('../config/resolve/secrets.js');
  return await readSecrets(names, checked, { configFile: resolve(file), secretFile: secretFile(), env: process.env });
}

/** Throws a `UsageError` if the command line names a view that the configuration does not have. */
export function requireView({ gateway, file }: Config, view: string | undefined): void {
  const names = gateway.views.map(({ name }) => name);
  if (view === undefined || view === '' || names.includes(view)) return;
  const known =
    names.length === 0 ? `add it below \`views:\` in ${file}` : `the configuration has: ${names.join(', ')}`;
  throw new UsageError(`there is no view \`${view}\` in the configuration`, hintFor(view, names, known));
}

/**
 * Logs the warnings of a configuration, and the problems of servers that cannot run. Leaves out the problem of servers that lack only the
 * variables of users.
 */
export function logConfig(config: Config, logger: Logger): void {
  for (const warning of config.warnings) logger.warn(warning);
  for (const server of config.servers) {
    const { isOfUser: _, ...problem } = server.problem ?? {};
    if (server.problem !== undefined && !isPerUser(config, server)) logger.error({ server: server.key, ...problem });
  }
}

/** Throws a `UsageError` for a name of a disabled server. */
export function refuseDisabled(names: readonly string[], disabled: Config['disabled']): void {
  const off = names.find((name) => disabled.includes(name));
  if (off !== undefined)
    throw new UsageError(`the server \`${off}\` is disabled in the configuration`, `run: trunkline enable ${off}`);
}
