import { ServerFault } from '../config/file/config-error.js';
import type { InstalledPackages } from '../config/resolve/package-bin.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import { LockFile, LockFileError } from './lock-file.js';
import { PackageStore } from './package-store.js';

/** The configuration file, and the folders of its packages. */
export interface PackagePlaces {
  readonly configFile: string;
  readonly storeFolder: string;
  /** For lock files of configurations in folders that cannot be written. */
  readonly locksFolder: string;
}

export function openStore({ storeFolder }: PackagePlaces): PackageStore {
  const { platform, arch, versions } = process;
  return new PackageStore(storeFolder, { platform, arch, abi: versions.modules });
}

export function openLockFile(
  { configFile, locksFolder }: PackagePlaces,
  onEmpty: (file: string) => void = () => {},
): LockFile {
  return new LockFile({ configFile, fallbackFolder: locksFolder, onEmpty });
}

/** The key of a package in the lock file: `name`, or `name@` and the version, range or tag that the configuration asks for. */
export function lockKey({ name, version }: Pick<PackageRequest, 'name' | 'version'>): string {
  return version === undefined ? name : `${name}@${version}`;
}

/** Finds packages that are locked and installed. The lock file is read at the first call. */
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
