import { realpathSync } from 'node:fs';

/** The path behind all symbolic links; `undefined` if it is missing or not accessible. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
