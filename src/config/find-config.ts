import { statSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import { ConfigError } from './config-error.js';
import type { Variables } from './expand.js';

export interface FindConfigOptions {
  /** What `--config` says. */
  flag: string | undefined;
  env: Variables;
  cwd: string;
  home: string;
  platform: NodeJS.Platform;
  /** Whether there is a file at this path; asks the disk unless a test knows better. */
  isFile?: (path: string) => boolean;
}

const FILE_NAMES = ['trunkline.yaml', 'trunkline.yml'];

/**
 * The absolute path of the configuration file to use.
 *
 * A file asked for by name, with `--config` or `TRUNKLINE_CONFIG`, is the one or none. Otherwise the current folder
 * comes before the user's own. Throws a `ConfigError` that tells where it looked.
 */
export function findConfigFile({ flag, env, cwd, home, platform, isFile = isFileOnDisk }: FindConfigOptions): string {
  const path = platform === 'win32' ? win32 : posix;
  for (const [source, asked] of [
    ['--config', flag],
    ['TRUNKLINE_CONFIG', env.TRUNKLINE_CONFIG],
  ] as const) {
    if (!asked) continue;
    const file = path.resolve(cwd, asked);
    if (isFile(file)) return file;
    throw new ConfigError('config-not-found', file, [
      { message: `there is no such file; ${source} asks for it`, hint: `correct ${source}, or create the file` },
    ]);
  }

  const candidates = candidateFiles({ cwd, env, home, platform });
  const found = candidates.find(isFile);
  if (found !== undefined) return found;
  throw new ConfigError('config-not-found', undefined, [
    {
      message: `no configuration file; looked for\n${candidates.map((candidate) => `  ${candidate}`).join('\n')}`,
      hint: `create ${candidates[0]}, or name a file with --config FILE or TRUNKLINE_CONFIG`,
    },
  ]);
}

/** Where a file is looked for that nobody names, the first choice first. */
export function candidateFiles({ cwd, env, home, platform }: Omit<FindConfigOptions, 'flag' | 'isFile'>): string[] {
  const path = platform === 'win32' ? win32 : posix;
  const folders = [cwd, ...userFolders(env, home, platform)];
  return folders.flatMap((folder) => FILE_NAMES.map((name) => path.join(folder, name)));
}

function userFolders(env: Variables, home: string, platform: NodeJS.Platform): string[] {
  if (platform === 'win32') {
    return [win32.join(env.APPDATA || win32.join(home, 'AppData', 'Roaming'), 'trunkline')];
  }
  // The XDG specification has relative paths ignored.
  const xdg = env.XDG_CONFIG_HOME;
  const folders = [posix.join(xdg && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.config'), 'trunkline')];
  if (platform === 'darwin') folders.push(posix.join(home, 'Library', 'Application Support', 'trunkline'));
  return folders;
}

function isFileOnDisk(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    // Missing, or behind a folder we may not enter: not a file we can use.
    return false;
  }
}
