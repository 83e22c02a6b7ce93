import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FoundPackage } from '../config/resolve/config.js';
import { readJsonFile } from '../files/json-file.js';
import { isRecord } from '../json/is-record.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import { lockKey, openLockFile, openStore, type PackagePlaces } from './installed-packages.js';
import { type LockedPackage, LockFileError } from './lock-file.js';
import type { InstalledTree } from './package-needs.js';

/** The tree of a package in the store. */
export function storedTree(request: PackageRequest, locked: LockedPackage, places: PackagePlaces): InstalledTree {
  const folder = openStore(places).folderOf({ ...request, locked });
  return { name: request.name, tree: locked.tree, isPresent: (path) => existsSync(join(folder, path)) };
}

/**
 * The tree of the package that a server runs; `undefined` if it is not installed. Of a package in `node_modules`, the tree
 * is the package alone: the npm that installed it has reported on its dependencies.
 */
export function installedTree(
  request: PackageRequest,
  found: FoundPackage | undefined,
  places: PackagePlaces,
): InstalledTree | undefined {
  if (found?.place === 'near') {
    const manifest = manifestOf(found.program, request.name);
    if (manifest === undefined) return undefined;
    const { version, engines } = manifest;
    const tree = { [`node_modules/${request.name}`]: { version, engines } };
    return { name: request.name, tree, isPresent: () => true };
  }
  const locked = findLocked(request, places);
  return locked === undefined ? undefined : storedTree(request, locked, places);
}

function findLocked(request: PackageRequest, places: PackagePlaces): LockedPackage | undefined {
  let locked: LockedPackage | undefined;
  try {
    locked = openLockFile(places).read().get(lockKey(request));
  } catch (error) {
    // The servers that need this file are reported as misconfigured.
    if (!(error instanceof LockFileError)) throw error;
  }
  return locked !== undefined && openStore(places).has({ ...request, locked }) ? locked : undefined;
}

/** The package.json of the package that a file belongs to. */
function manifestOf(file: string, name: string): Readonly<Record<string, unknown>> | undefined {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = readJsonFile(join(folder, 'package.json'));
    if (isRecord(manifest) && manifest.name === name) return manifest;
  }
  return undefined;
}
