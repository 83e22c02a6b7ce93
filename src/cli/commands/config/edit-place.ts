import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { ConfigPlace } from '../../../app/config-place.js';
import type { GlobalOptions } from '../../../app/global-options.js';
import { type OpenConfig, openConfig, saveConfig } from '../../../config/edit/config-file.js';
import type { NewEntry } from '../../../config/edit/edit-config.js';
import { EnvDraft } from '../../../config/edit/env-draft.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { userConfigFile } from '../../../config/file/find-config.js';
import { tell } from '../../output.js';

/** The configuration to edit, and its environment file. */
export interface EditPlace {
  readonly config: OpenConfig;
  readonly secrets: EnvDraft;
}

/** Opens the configuration that Trunkline would use, or the one to create if there is none. Throws a `ConfigError`. */
export function openConfigToEdit({ config: named }: GlobalOptions): OpenConfig {
  return openConfig(fileToEdit(named));
}

/** The same with its environment file, which may take secrets. Throws a `ConfigError` if one of them cannot be used. */
export function openEditPlace(settings: GlobalOptions): EditPlace {
  const config = openConfigToEdit(settings);
  return { config, secrets: EnvDraft.open(config.file, config.text, homedir()) };
}

function fileToEdit(named: string | undefined): string {
  try {
    return new ConfigPlace({ config: named }).file;
  } catch (error) {
    if (!(error instanceof ConfigError) || error.code !== 'config-not-found') throw error;
    const { env, platform } = process;
    const wanted = named ?? env.TRUNKLINE_CONFIG;
    return wanted ? resolve(wanted) : userConfigFile({ env, home: homedir(), platform });
  }
}

/** Writes both files, the secrets first: an entry without its secrets would not start. */
export function saveEdit({ config, secrets }: EditPlace, edited: string): void {
  secrets.save();
  saveConfig(config, edited);
  if (secrets.added.length > 0) {
    tell(`Wrote ${secrets.added.join(', ')} to ${secrets.file}, which only you can read. Do not commit it.`);
  }
}

/** Where people set the variables that a new entry refers to: the environment file counts only if the entry names it. */
export function whereToSet(entry: NewEntry, { secrets: { file, envFile } }: EditPlace): string {
  if (envFile === undefined || entry.envFile !== undefined) return `in ${file} or in your environment`;
  return `in your environment, or in ${file} with \`envFile: ${envFile}\` in its entry`;
}
