import type { InstalledPackages } from '../config/package-bin.js';
import { ServerFault } from '../config/server-fault.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import { LockFile, LockFileError } from './lock-file.js';
import { PackageStore } from './package-store.js';

/** Where the packages of a configuration are. */
export interface PackagePlaces {
  readonly configFile: string;
  readonly storeFolder: string;
  /** For the locks of configurations whose folders cannot be written. */
  readonly locksFolder: string;
}

export function openStore({ storeFolder }: PackagePlaces): PackageStore {
  const { platform, arch, versions } = process;
  return new PackageStore(storeFolder, { platform, arch, abi: versions.modules });
}

export function openLockFile({ configFile, locksFolder }: PackagePlaces): LockFile {
  return new LockFile({ configFile, fallbackFolder: locksFolder });
}

/** How the configuration asks for a package, with variables expanded: what its lock is found by. */
export function lockKey({ name, version }: Pick<PackageRequest, 'name' | 'version'>): string {
  return version === undefined ? name : `${name}@${version}`;
}

/** What is locked and installed. The files are looked at only when something is asked for. */
export function installedPackages(places: PackagePlaces): InstalledPackages {
  const store = openStore(places);
  let locked: ReturnType<LockFile['read']> | undefined;
  return {
    find: (request) => {
      try {
        locked ??= openLockFile(places).read();
      } catch (error) {
        if (!(error instanceof LockFileError)) throw error;
        throw new ServerFault(error.message, error.hint);
      }
      const entry = locked.get(lockKey(request));
      if (entry === undefined) return undefined;
      const wanted = { name: request.name, locked: entry, installScripts: request.installScripts };
      return store.has(wanted) ? { folder: store.folderOf(wanted), version: entry.version } : undefined;
    },
  };
}
