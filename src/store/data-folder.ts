import { join } from 'node:path';

export interface DataFolderOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly platform: string;
}

/** Where the user's programs keep what is theirs and is no configuration. */
export function dataFolder({ env, home, platform }: DataFolderOptions): string {
  if (platform === 'win32') return join(env.LOCALAPPDATA || join(home, 'AppData', 'Local'), 'trunkline');
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'trunkline');
  return join(env.XDG_DATA_HOME || join(home, '.local', 'share'), 'trunkline');
}
