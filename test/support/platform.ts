// What a test expects where Windows differs from other systems.
import { rmSync } from 'node:fs';
import { expect } from 'vitest';

export const IS_WINDOWS = process.platform === 'win32';

/** Whether files have permissions. Windows gives a file those of its folder. */
export const HAS_MODES = !IS_WINDOWS;

/** The permissions that a file or folder shows which was made with `mode`. Windows keeps only whether it may be changed. */
export function shownMode(mode: number): number {
  return IS_WINDOWS ? 0o666 : mode;
}

/** The variables that let Trunkline keep its data in a folder. */
export function dataIn(folder: string): Readonly<Record<string, string>> {
  return { XDG_DATA_HOME: folder, LOCALAPPDATA: folder };
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
