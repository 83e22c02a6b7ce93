import { symlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Gives a folder the packages of this repository, so that a configuration there finds them without an installation. */
export function linkOwnPackages(folder: string): void {
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'), 'junction');
}
