import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import {
  type ConfigEdit,
  disabledByInit,
  editConfig,
  entriesIn,
  type NewEntry,
  type OpenConfig,
  openConfig,
  saveConfig,
} from '../../../config/edit/edit-config.js';
import { EnvDraft } from '../../../config/edit/env-draft.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation, userConfigFile } from '../../../config/file/find-config.js';
import { variableNamesIn } from '../../../config/resolve/references.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { LockFile, LockFileError } from '../../../servers/packages/lock-file.js';
import { openStore } from '../../../servers/packages/package-store.js';
import { writtenIn } from '../../../servers/packages/written-files.js';
import { ownFileNamed } from '../../../setup/clients/import/kept-file.js';
import { runOf } from '../../../setup/clients/import/run.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { packageFolders } from '../../../state/user-files.js';
import { isRecord } from '../../../wire/json/json-value.js';
import type { Invocation } from '../../command.js';
import { printJson, tell, withoutHome } from '../../output.js';

/** `trunkline remove`, `enable` and `disable`: change one server of the configuration, and keep the rest of the file. */
export async function changeServer(
  command: 'remove' | 'enable' | 'disable',
  { settings, words: [key = ''], isJson }: Invocation,
): Promise<number> {
  return await withChangeLock(async () => {
    const config = openConfigToEdit(settings);
    const { file, text } = config;
    if (text === undefined) throw new UsageError('there is no configuration yet', '`trunkline add` creates one');
    const edit: ConfigEdit =
      command === 'remove' ? { kind: 'remove', key } : { kind: 'disable', key, isDisabled: command === 'disable' };
    const before = entriesIn(text);
    if (command === 'remove' && Object.hasOwn(before, key) && Object.keys(before).length === 1) {
      const hint = `use \`trunkline disable ${key}\`, or delete ${file}`;
      throw new UsageError(`${key} is the only server, and a configuration needs one`, hint);
    }
    const edited = editConfig(text, file, edit);
    const isChanged = edited !== text;
    if (isChanged) saveConfig(config, edited);
    const files = command === 'remove' ? filesOf(file, before[key]) : [];
    const unused = command === 'remove' ? unusedOf(file, namesOf(before[key]), edited) : undefined;
    if (isJson) {
      const result = isChanged ? DONE[command].toLowerCase() : 'unchanged';
      await printJson({ configFile: file, server: key, result, unused: unused?.names ?? [], files });
      return EXIT.ok;
    }
    if (!isChanged) tell(`${key} is ${command}d already.`);
    else tell(`${DONE[command]} ${key} ${command === 'remove' ? 'from' : 'in'} ${file}.`);
    if (command === 'disable' && disabledByInit(text).has(key)) tell('`trunkline init` does not try it again.');
    if (unused !== undefined)
      tell(`No server uses ${unused.names.join(', ')} in ${unused.file} now; remove what you do not need.`);
    for (const path of files) tell(`It has written ${withoutHome(path, homedir())}, which stays.`);
    return EXIT.ok;
  });
}

/** The files that a server has written beside its program, or to the file that its variable names. */
function filesOf(configFile: string, entry: unknown): string[] {
  const run = runOf(entry);
  if (run === undefined || !('package' in run.program)) return [];
  const named = ownFileNamed(run, process.env);
  const paths = { ...packageFolders(), configFile };
  const spec = isRecord(entry) && typeof entry.package === 'string' ? entry.package : '';
  try {
    const locked = new LockFile(paths).read().get(spec);
    if (locked === undefined) return named;
    const installScripts = isRecord(entry) && entry.installScripts === true;
    const folder = openStore(paths).folderOf({ name: run.program.package, locked, installScripts });
    return [...named, ...writtenIn(folder).map((path) => join(folder, path))];
  } catch (error) {
    // A damaged lock file does not prevent the removal.
    if (error instanceof LockFileError) return named;
    throw error;
  }
}

const DONE = { remove: 'Removed', enable: 'Enabled', disable: 'Disabled' } as const;

/** Returns the variables of the environment file that only the removed server used, or `undefined` if there are none. */
function unusedOf(configFile: string, names: readonly string[], edited: string) {
  const secrets = secretsBeside(configFile, edited);
  // Any setting may refer to a variable, including those of `defaults`.
  const used = variableNamesIn([edited]);
  const unused = names.filter((name) => !used.includes(name) && Object.hasOwn(secrets?.values ?? {}, name));
  return secrets === undefined || unused.length === 0 ? undefined : { file: secrets.file, names: unused };
}

function secretsBeside(configFile: string, text: string): EnvDraft | undefined {
  try {
    return EnvDraft.open(configFile, text, homedir());
  } catch (error) {
    // An unusable environment file does not prevent the removal.
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

function namesOf(entry: unknown): string[] {
  const run = runOf(entry);
  return run === undefined ? [] : variableNamesIn([...run.args, ...Object.values(run.env)]);
}

/** The configuration to edit, and its environment file. */
export interface EditableConfig {
  readonly config: OpenConfig;
  readonly secrets: EnvDraft;
}

/** Opens the configuration that Trunkline would use, or the one to create if there is none. Throws a `ConfigError`. */
function openConfigToEdit({ config: named }: GlobalOptions): OpenConfig {
  return openConfig(fileToEdit(named));
}

/** Opens the configuration to edit and its environment file, for secrets. Throws a `ConfigError` if one of them cannot be used. */
export function openEditableConfig(settings: GlobalOptions): EditableConfig {
  const config = openConfigToEdit(settings);
  return { config, secrets: EnvDraft.open(config.file, config.text, homedir()) };
}

function fileToEdit(named: string | undefined): string {
  try {
    return new ConfigLocation({ config: named }).file;
  } catch (error) {
    if (!(error instanceof ConfigError) || error.code !== 'config-not-found') throw error;
    const { env, platform } = process;
    const wanted = named ?? env.TRUNKLINE_CONFIG;
    return wanted ? resolve(wanted) : userConfigFile({ env, home: homedir(), platform });
  }
}

/** Writes both files. The secrets are first, because an entry without its secrets would not start. */
export function saveEdit({ config, secrets }: EditableConfig, edited: string): void {
  secrets.save();
  saveConfig(config, edited);
  if (secrets.added.length > 0) {
    // Windows gives a file the permissions of its folder.
    const readers = process.platform === 'win32' ? 'everyone who can read its folder' : 'only you';
    tell(`Wrote ${secrets.added.join(', ')} to ${secrets.file}, which ${readers} can read. Do not commit it.`);
  }
}

/** Returns the place to set the variables of a new entry. The environment file is a place only if `defaults` or the entry names it. */
export function whereToSet(entry: NewEntry, { secrets: { file, envFile } }: EditableConfig): string {
  if (envFile === undefined || entry.envFile !== undefined) return `in ${file} or in your environment`;
  return `in your environment, or in ${file} with \`envFile: ${envFile}\` in its entry`;
}
