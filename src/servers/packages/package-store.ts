import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ServerFault } from '../../config/file/config-error.js';
import type { FoundPackage } from '../../config/resolve/config.js';
import type { InstalledPackages } from '../../config/resolve/package-bin.js';
import { systemFault } from '../../host/errors/file-error.js';
import { whenFree } from '../../host/files/held-files.js';
import { fileNamesIn, readJsonFile } from '../../host/files/whole-file.js';
import type { PackageName, PackageRequest } from '../../spec/server-spec.js';
import { isRecord } from '../../wire/json/json-value.js';
import { INTEGRITY, type LockedPackage, LockFile, LockFileError, REGISTRY_VERSION } from './lock-file.js';
import type { InstalledTree } from './package-needs.js';
import { COPIES, carryOver, refreshCopies } from './written-files.js';

interface StoredPackage {
  readonly name: string;
  readonly locked: LockedPackage;
  /** Whether install scripts ran. They may have built code for this version of Node. */
  readonly installScripts: boolean;
}

/** Properties of the machine on which the installed packages, and the results of install scripts, depend. */
interface Machine {
  readonly platform: string;
  readonly arch: string;
  /** ABI version of Node, as in `process.versions.modules`. */
  readonly abi: string;
}

/**
 * The packages that Trunkline has installed, each with its dependencies in a folder named `name@version-digest`. The digest covers
 * the versions and integrities of all packages in the folder, and the machine. Configurations share the folders.
 *
 * A folder appears by one rename, and its packages never change. So it is complete, unless the machine lost power before all files
 * were on the disk. Servers may write files into their folders.
 */
export class PackageStore {
  readonly #folder: string;
  readonly #machine: Machine;

  constructor(folder: string, machine: Machine) {
    this.#folder = folder;
    this.#machine = machine;
  }

  folderOf({ name, locked, installScripts }: StoredPackage): string {
    const { platform, arch, abi } = this.#machine;
    const made = installScripts ? [abi] : [];
    const content = JSON.stringify([contentOf(locked.tree), platform, arch, ...made]);
    const digest = createHash('sha256').update(content).digest('hex').slice(0, DIGEST_LENGTH);
    return join(this.#folder, `${folderName(name, locked.version)}${digest}`);
  }

  /** Whether the package is installed. Reads only the package.json of the package itself, because servers wait for the answer. */
  has(wanted: StoredPackage): boolean {
    return isSound(this.folderOf(wanted), `node_modules/${wanted.name}`);
  }

  /** Whether the folder exists and lacks a package.json, as after a power failure. Such a package is installed again. */
  isDamaged(wanted: StoredPackage): boolean {
    const folder = this.folderOf(wanted);
    return existsSync(folder) && !isWhole(folder, wanted);
  }

  /** Finds a version that was installed for any configuration. */
  findVersion(name: string, version: string, installScripts: boolean): LockedPackage | undefined {
    const prefix = folderName(name, version);
    for (const entry of fileNamesIn(this.#folder)) {
      if (!entry.startsWith(prefix) || entry.length !== prefix.length + DIGEST_LENGTH) continue;
      const folder = join(this.#folder, entry);
      const locked = readInstalled(folder, name);
      if (locked !== undefined && this.folderOf({ name, locked, installScripts }) === folder) return locked;
    }
    return undefined;
  }

  /** Creates a folder to install into, on the same file system as the store. */
  async newStaging(): Promise<string> {
    const folder = join(this.#folder, STAGING);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await mkdtemp(join(folder, 'install-'));
  }

  /** Moves a staging folder into the store, unless the package is installed and whole. Returns the folder of the package. */
  async publish(staging: string, wanted: StoredPackage): Promise<string> {
    const folder = this.folderOf(wanted);
    // Removes the list of copies, because an install script may have written it.
    await this.discard(join(staging, COPIES));
    // Files that the server has written in a damaged folder must not go with it.
    if (this.isDamaged(wanted)) {
      carryOver(folder, staging);
      const aside = await this.newStaging();
      await whenFree(() => rename(folder, join(aside, 'damaged')));
      await this.discard(aside);
    }
    try {
      await whenFree(() => rename(staging, folder));
    } catch (error) {
      if (!existsSync(folder)) throw error;
    }
    return folder;
  }

  /** Removes a staging folder that was not published. */
  async discard(staging: string): Promise<void> {
    await rm(staging, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Removes staging folders of killed installations. The caller must hold the store lock. Errors are ignored. */
  async sweep(): Promise<void> {
    const folder = join(this.#folder, STAGING);
    const names = await readdir(folder).catch((): string[] => []);
    await Promise.allSettled(names.map((name) => this.discard(join(folder, name))));
  }
}

/** Whether each package in the folder has its package.json. Optional packages of other machines have no folder. */
function isWhole(folder: string, { name, locked }: StoredPackage): boolean {
  const own = `node_modules/${name}`;
  return Object.keys(locked.tree).every((path) => {
    return isSound(folder, path) || (path !== own && !existsSync(join(folder, path)));
  });
}

function isSound(folder: string, path: string): boolean {
  return isRecord(readJsonFile(join(folder, path, 'package.json')));
}

const STAGING = '.staging';
const DIGEST_LENGTH = 16;

/** The folder name without the digest. `+` joins scope and name, since no package name contains it. */
function folderName(name: string, version: string): string {
  return `${name.replace('/', '+')}@${version}-`;
}

/**
 * Reads npm's lock file in a folder; `undefined` if it does not contain the package. Checks the form of version and integrity,
 * because an install script may have written the file, and Trunkline's lock file could not be read with others.
 */
export function readInstalled(folder: string, name: string): LockedPackage | undefined {
  const value = readJsonFile(join(folder, 'package-lock.json'));
  if (!isRecord(value) || !isRecord(value.packages)) return undefined;
  // The entry "" is the folder itself.
  const { '': _, ...tree } = value.packages;
  const own = tree[`node_modules/${name}`];
  const { version, integrity } = isRecord(own) ? own : {};
  if (typeof version !== 'string' || !REGISTRY_VERSION.test(version)) return undefined;
  return typeof integrity === 'string' && INTEGRITY.test(integrity) ? { version, integrity, tree } : undefined;
}

/** The fields that identify the content. Other fields are left out, because new versions of npm add more. */
function contentOf(tree: LockedPackage['tree']): unknown {
  const entries = Object.entries(tree as Readonly<Record<string, Readonly<Record<string, unknown>>>>);
  return entries
    .map(([path, { version, integrity, resolved }]) => [path, version ?? null, integrity ?? resolved ?? null])
    .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));
}

export interface PackagePaths extends PackageFolders {
  readonly configFile: string;
}

export interface PackageFolders {
  readonly storeFolder: string;
  /** For lock files of configurations in folders that cannot be written. */
  readonly locksFolder: string;
}

export function openStore({ storeFolder }: PackagePaths): PackageStore {
  const { platform, arch, versions } = process;
  return new PackageStore(storeFolder, { platform, arch, abi: versions.modules });
}

/** The key of a package in the lock file: `name`, or `name@` and the version, range or tag in the configuration. */
export function lockKey({ name, version }: PackageName): string {
  return version === undefined ? name : `${name}@${version}`;
}

/** Finds packages that are locked and installed. Reads the lock file at the first call. `find` throws a `ServerFault`. */
export function installedPackages(paths: PackagePaths): InstalledPackages {
  const store = openStore(paths);
  let locked: ReturnType<LockFile['read']> | undefined;
  return {
    find: (request) => {
      try {
        locked ??= new LockFile(paths).read();
      } catch (error) {
        throw error instanceof LockFileError ? new ServerFault(error.message, error.hint) : error;
      }
      const entry = locked.get(lockKey(request));
      if (entry === undefined) return undefined;
      const wanted = { ...request, locked: entry };
      if (!store.has(wanted)) return undefined;
      const folder = store.folderOf(wanted);
      refresh(folder);
      return { folder, version: entry.version };
    },
  };
}

/** Copies the files of the earlier version again, because they may have changed since the last copy. Throws a `ServerFault`. */
function refresh(folder: string): void {
  try {
    refreshCopies(folder);
  } catch (error) {
    const { reason, hint } = systemFault(error);
    const message = `files that an earlier version of the server has written cannot be copied to ${folder}: ${reason}`;
    throw new ServerFault(message, hint);
  }
}

export function storedTree(request: PackageRequest, locked: LockedPackage, paths: PackagePaths): InstalledTree {
  const folder = openStore(paths).folderOf({ ...request, locked });
  return { name: request.name, tree: locked.tree, isPresent: (path) => existsSync(join(folder, path)) };
}

/**
 * The tree of the package that a server runs; `undefined` if the package is not installed. The tree of a package in
 * `node_modules` is only the package itself, because npm has reported on the dependencies when the user installed it.
 */
export function installedTree(
  request: PackageRequest,
  found: FoundPackage | undefined,
  paths: PackagePaths,
): InstalledTree | undefined {
  if (found?.location === 'near') {
    const manifest = manifestOf(found.program, request.name);
    if (manifest === undefined) return undefined;
    const { version, engines } = manifest;
    const tree = { [`node_modules/${request.name}`]: { version, engines } };
    return { name: request.name, tree, isPresent: () => true };
  }
  const locked = findLocked(request, paths);
  return locked === undefined ? undefined : storedTree(request, locked, paths);
}

function findLocked(request: PackageRequest, paths: PackagePaths): LockedPackage | undefined {
  let locked: LockedPackage | undefined;
  try {
    locked = new LockFile(paths).read().get(lockKey(request));
  } catch (error) {
    // A damaged lock file is reported elsewhere, because the servers that need it are misconfigured.
    if (!(error instanceof LockFileError)) throw error;
  }
  return locked !== undefined && openStore(paths).has({ ...request, locked }) ? locked : undefined;
}

function manifestOf(file: string, name: string): Readonly<Record<string, unknown>> | undefined {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = readJsonFile(join(folder, 'package.json'));
    if (isRecord(manifest) && manifest.name === name) return manifest;
  }
  return undefined;
}
