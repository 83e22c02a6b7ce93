// What a test expects where Windows or macOS differs from other systems.
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';

export const IS_WINDOWS = process.platform === 'win32';
export const IS_MAC = process.platform === 'darwin';

/** Whether a process shows the variables with which it was started, so that it is found by the mark of its family. */
export const SHOWS_VARIABLES = process.platform === 'linux' || IS_MAC;

/** Whether files have permissions. Windows gives a file those of its folder. */
export const HAS_MODES = !IS_WINDOWS;

/** The temporary folder with a short path, because the path of a socket is limited. Windows has neither `/tmp` nor this limit. */
export const SHORT_TMP = IS_WINDOWS ? tmpdir() : '/tmp';

/** The permissions that a file or folder shows which was made with `mode`. Windows keeps only whether it may be changed. */
export function shownMode(mode: number): number {
  return IS_WINDOWS ? 0o666 : mode;
}

/** The variables that let Trunkline keep its data in a folder. On macOS, the data are in the home folder, whatever other variables say. */
export function dataIn(folder: string): Readonly<Record<string, string>> {
  return { XDG_DATA_HOME: folder, LOCALAPPDATA: folder, ...(IS_MAC && { HOME: folder }) };
}

/** The folder of Trunkline's data with the variables of `dataIn`. */
export function dataFolderIn(folder: string): string {
  return join(folder, ...(IS_MAC ? ['Library', 'Application Support'] : []), 'trunkline');
}

/** The variables of a home folder. On Windows, the data of programs are in a folder of their own below it. */
export function homeIn(folder: string): Readonly<Record<string, string>> {
  return IS_WINDOWS ? { USERPROFILE: folder, LOCALAPPDATA: join(folder, 'local') } : { HOME: folder };
}

/** The variables that let Trunkline look for its configuration in a folder. */
export function configIn(folder: string): Readonly<Record<string, string>> {
  return { XDG_CONFIG_HOME: folder, APPDATA: folder };
}

/** How a process ends that gets a signal. Windows has no signals, and what ends a process chooses the exit code. */
export function exitBy(signal: NodeJS.Signals): object {
  return IS_WINDOWS ? { code: expect.any(Number), signal: null } : { code: null, signal };
}

/** Removes a folder. Windows keeps a folder whose files are open, as a log is until its process ends. */
export function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (!IS_WINDOWS) throw error;
  }
}
