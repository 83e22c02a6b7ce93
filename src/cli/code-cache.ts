import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** `module.enableCompileCache`, which Node has from version 22.8 on. It does not throw. */
type EnableCompileCache = (folder: string) => unknown;

/**
 * Lets Node keep the compiled code of the modules that are loaded from now on, so that the next start need not compile
 * them. Node writes it at the end of the process.
 *
 * `folder` belongs to the user alone: Node's default lies in the system's folder for temporary files, where another user
 * could put code for this process to run. Node lets `NODE_COMPILE_CACHE` and `NODE_DISABLE_COMPILE_CACHE` decide instead, if
 * they are set.
 */
export function cacheCompiledCode(folder: string, version: string, enable = enableCompileCache()): void {
  if (enable === undefined) return;
  const ownFolder = join(folder, version);
  try {
    const isNew = mkdirSync(ownFolder, { recursive: true, mode: 0o700 }) !== undefined;
    if (isNew) removeOthers(folder, version);
    enable(ownFolder);
  } catch {
    // Where the folder cannot be written, each start compiles the code.
  }
}

/** Removes the code of other versions of Trunkline: nearly a megabyte each. */
function removeOthers(folder: string, version: string): void {
  for (const name of readdirSync(folder)) {
    if (name !== version) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function enableCompileCache(): EnableCompileCache | undefined {
  return (process.getBuiltinModule('node:module') as { enableCompileCache?: EnableCompileCache }).enableCompileCache;
}
