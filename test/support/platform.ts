// What a test expects where Windows differs from other systems.
import { rmSync } from 'node:fs';

const IS_WINDOWS = process.platform === 'win32';

/** The permissions that a file or folder shows which was made with `mode`. Windows keeps only whether it may be changed. */
export function shownMode(mode: number): number {
  return IS_WINDOWS ? 0o666 : mode;
}

/** Removes a folder. Windows keeps a folder whose files are open, as a log is until its process ends. */
export function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (!IS_WINDOWS) throw error;
  }
}
