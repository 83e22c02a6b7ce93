import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { CheckedFile } from '../config/checked-file.js';
import type { Config } from '../config/config.js';
import { readConfigText } from '../config/config-text.js';
import { findConfigFile } from '../config/find-config.js';
import { resolveConfig } from '../config/resolve-config.js';
import { installedPackages } from '../packages/installed-packages.js';
import type { GlobalOptions } from './global-options.js';
import { packageFolders } from './user-files.js';

/** Remembers what a file said when it was checked, which takes longer than everything else about it. */
export interface CheckedFiles {
  find(file: string, text: string): CheckedFile | undefined;
  keep(file: string, text: string, checked: CheckedFile): void;
}

/** Finds and reads the configuration; throws a `ConfigError` when it cannot be used. */
export async function readConfig({ config }: GlobalOptions, checkedFiles?: CheckedFiles): Promise<Config> {
  const file = findConfigFile({
    flag: config,
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    platform: process.platform,
  });
  return await readConfigFile(file, checkedFiles);
}

/** Reads this file and no other; throws a `ConfigError` when it cannot be used. */
export async function readConfigFile(file: string, checkedFiles?: CheckedFiles): Promise<Config> {
  const text = readConfigText(file);
  const checked = checkedFiles?.find(file, text) ?? (await check(file, text, checkedFiles));
  const store = installedPackages({ configFile: resolve(file), ...packageFolders() });
  return resolveConfig(file, checked, { env: process.env, nodePath: process.execPath, store });
}

async function check(file: string, text: string, checkedFiles: CheckedFiles | undefined): Promise<CheckedFile> {
  const { checkFile } = await import('../config/check-file.js');
  const checked = checkFile(text, file);
  checkedFiles?.keep(file, text, checked);
  return checked;
}
