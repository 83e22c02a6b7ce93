import { posix, win32 } from 'node:path';

export interface DataFolderOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** As in `process.platform`. */
  readonly platform: string;
}

/** The folder for Trunkline's data of this user. Variables with relative paths count as unset. */
export function dataFolder({ env, home, platform }: DataFolderOptions): string {
  const path = platform === 'win32' ? win32 : posix;
  const set = (value: string | undefined) => (value !== undefined && path.isAbsolute(value) ? value : undefined);
  switch (platform) {
    case 'win32':
      return path.join(set(env.LOCALAPPDATA) ?? path.join(home, 'AppData', 'Local'), 'trunkline');
    case 'darwin':
      return path.join(home, 'Library', 'Application Support', 'trunkline');
    default:
      return path.join(set(env.XDG_DATA_HOME) ?? path.join(home, '.local', 'share'), 'trunkline');
  }
}
