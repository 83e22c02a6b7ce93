import { EventEmitter, once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ServerFault } from '../../config/file/config-error.js';
import { isExact, programIn } from '../../config/resolve/package-bin.js';
import { explain } from '../../host/errors/file-error.js';
import { statOf } from '../../host/files/whole-file.js';
import type { Logger } from '../../host/observe/logger.js';
import { openProcessLock, type ProcessLock } from '../../host/process/process-lock.js';
import type { PackageName, PackageRequest } from '../../spec/server-spec.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { GroupGuard } from '../process/orphan-guard.js';
import { type LockedPackage, LockFile } from './lock-file.js';
import { NpmClient, NpmFault } from './npm-client.js';
import { lockKey, openStore, type PackagePaths, type PackageStore } from './package-store.js';
import { carryOver, writtenIn } from './written-files.js';

interface PackageInstallerOptions {
  readonly clock: Clock;
  readonly store: PackageStore;
  readonly storeLock: ProcessLock;
  readonly lockFile: LockFile;
  readonly npm: { readonly install: NpmClient['install']; readonly resolve: NpmClient['resolve'] };
  readonly limit: number;
  /** Called with the path of a lock file that cannot be next to the configuration. */
  readonly onFallbackPath: (file: string) => void;
  /** Called with the folder of a damaged package, before the package is installed again. */
  readonly onDamaged: (folder: string) => void;
  readonly requests: () => readonly PackageName[];
  /** Called with the paths of the files that were copied from the folder of an earlier version, and with this folder. */
  readonly onCarried: (files: readonly string[], from: string) => void;
}

export interface Obtained {
  readonly locked: LockedPackage;
  /** Absolute path, to be run with Node. */
  readonly program: string;
  /** False if the package was installed before. */
  readonly isNew: boolean;
}

/** A failed installation. The message is one line. `lines` is npm's own output. */
export class InstallFault extends Error {
  override readonly name = 'InstallFault';
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[], cause: unknown) {
    super(message, { cause });
    this.lines = lines;
  }
}

/**
 * Installs packages into the store. One gateway at a time installs, several packages at once.
 *
 * Installs each package into a staging folder, moves it into place with one rename, and then locks it. A failed or
 * interrupted installation changes nothing in the store.
 */
export class PackageInstaller {
  readonly #options: PackageInstallerOptions;
  readonly #slots: InstallSlots;

  constructor(options: PackageInstallerOptions) {
    this.#options = options;
    this.#slots = new InstallSlots({ limit: options.limit, acquire: (signal) => this.#acquire(signal) });
  }

  /** Resolves when the package is installed and locked. Rejects with an `InstallFault`, or when `signal` is aborted. */
  async obtain(request: PackageRequest, signal: AbortSignal): Promise<Obtained> {
    return await this.#inSlot(request, signal, async (within) => {
      const { lockFile, store } = this.#options;
      const { name, installScripts } = request;
      const entries = lockFile.read();
      const locked = entries.get(lockKey(request));
      const known = locked ?? (isExact(request) ? store.findVersion(name, request.version, installScripts) : undefined);
      const obtained = await this.#put(request, known, within);
      if (locked === undefined) {
        this.#carryOver(request, obtained.locked, entries);
        this.#lock(request, obtained.locked);
      }
      return obtained;
    });
  }

  /** Installs the newest versions that the request accepts. The lock file stays as it is until `lock` is called. */
  async obtainNewest(request: PackageRequest, signal: AbortSignal): Promise<Obtained> {
    return await this.#inSlot(request, signal, async (within) => {
      const newest = await this.#inStaging((folder) => this.#options.npm.resolve(folder, request, within));
      return await this.#put(request, newest, within);
    });
  }

  async lock(request: PackageRequest, locked: LockedPackage, signal: AbortSignal): Promise<void> {
    await this.#inSlot(request, signal, async () => this.#lock(request, locked));
  }

  async #put(request: PackageRequest, known: LockedPackage | undefined, signal: AbortSignal): Promise<Obtained> {
    const { npm, store, onDamaged } = this.#options;
    const { name, installScripts } = request;
    if (known !== undefined) {
      const wanted = { name, locked: known, installScripts };
      const folder = store.folderOf(wanted);
      if (store.isDamaged(wanted)) onDamaged(folder);
      else if (store.has(wanted)) return { locked: known, program: programIn(folder, request), isNew: false };
    }
    return await this.#inStaging(async (staging) => {
      // npm checks the integrity of every package against the lock.
      const locked = await npm.install(staging, request, known, signal);
      // Throws if the package has no program to run, before it is published.
      programIn(staging, request);
      const folder = await store.publish(staging, { name, locked, installScripts });
      return { locked, program: programIn(folder, request), isNew: true };
    });
  }

  /**
   * Copies the files that a server has written beside its program, from the version that the configuration had before. If there are
   * several such versions, it is the one with the latest of these files.
   */
  #carryOver(
    { name, installScripts }: PackageRequest,
    locked: LockedPackage,
    entries: ReturnType<LockFile['read']>,
  ): void {
    const { store, requests, onCarried } = this.#options;
    const used = new Set(requests().map(lockKey));
    const to = store.folderOf({ name, locked, installScripts });
    const folders = [...entries].flatMap(([key, earlier]) => {
      const isReplaced = (key === name || key.startsWith(`${name}@`)) && !used.has(key);
      return isReplaced ? [store.folderOf({ name, locked: earlier, installScripts })] : [];
    });
    const writtenAt = (folder: string) =>
      Math.max(0, ...writtenIn(folder).map((path) => statOf(join(folder, path))?.mtimeMs ?? 0));
    const [from] = folders
      .filter((folder) => folder !== to && writtenAt(folder) > 0)
      .sort((one, other) => writtenAt(other) - writtenAt(one));
    if (from === undefined) return;
    const { carried } = carryOver(from, to);
    if (carried.length > 0) onCarried(carried, from);
  }

  async #inStaging<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const { store } = this.#options;
    const staging = await store.newStaging();
    try {
      return await work(staging);
    } finally {
      await store.discard(staging);
    }
  }

  #lock(request: PackageRequest, locked: LockedPackage): void {
    const { lockFile, onFallbackPath } = this.#options;
    const file = lockFile.lock(lockKey(request), locked);
    if (file !== lockFile.path) onFallbackPath(file);
  }

  async #acquire(signal: AbortSignal): Promise<() => Promise<void>> {
    const { store, storeLock } = this.#options;
    const release = await storeLock.acquire(signal);
    // This process has no staging folder now, so all staging folders are leftovers.
    await store.sweep();
    return release;
  }

  /** Runs `work` with a slot and with the store lock. The time limit begins when both are there. */
  async #inSlot<T>(
    request: PackageRequest,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#options;
    try {
      const leave = await this.#slots.enter(request.name, signal);
      const tooLong = new AbortController();
      const cancel = clock.schedule(request.budgetMs, () => tooLong.abort(new TookTooLong(request.budgetMs)));
      try {
        return await work(AbortSignal.any([signal, tooLong.signal]));
      } finally {
        cancel();
        await leave();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw toInstallFault(request, error);
    }
  }
}

class TookTooLong extends Error {
  constructor(budgetMs: number) {
    super(`it took longer than \`installTimeout\`, ${budgetMs / 1000} s`);
  }
}

function toInstallFault(request: PackageRequest, error: unknown): InstallFault {
  const lines = error instanceof NpmFault ? error.lines : [];
  const reason = error instanceof ServerFault ? `${error.message}; ${error.hint}` : explain(error);
  const hide = hidingVariables(request);
  return new InstallFault(`${request.shown} could not be installed: ${hide(reason)}`, lines.map(hide), error);
}

/** Returns a function that replaces name and version of a package by the text in the configuration, if it has variables there. */
function hidingVariables(request: PackageRequest): (text: string) => string {
  const { name, version, shown } = request;
  const whole = lockKey(request);
  if (shown === whole) return (text) => text;
  const names = shown.startsWith(name) ? [] : [name, name.replace('/', '%2f')];
  const versions = version === undefined || shown.endsWith(`@${version}`) ? [] : [`@${version}`];
  return (text) => [whole, ...names, ...versions].reduce((hidden, part) => hidden.replaceAll(part, shown), text);
}

interface OpenInstallerOptions {
  readonly paths: PackagePaths;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly orphanGuard: GroupGuard;
  readonly requests: PackageInstallerOptions['requests'];
}

/** The installer and the npm client that it uses. */
export interface OpenedInstaller {
  readonly installer: PackageInstaller;
  readonly npm: NpmClient;
}

/** Installations beyond the number of processors, because npm waits for registry and disk half of the time. */
const EXTRA_INSTALLS = 2;
/** Limit on installations at once, because each npm may take some hundred MB of memory. */
const MAX_INSTALLS = 8;

/** Creates the package installer. Callers load this file only to install or update packages. */
export function openInstaller(options: OpenInstallerOptions): OpenedInstaller {
  const { paths, clock, logger, environment, orphanGuard } = options;
  const npm = new NpmClient({ clock, environment, orphanGuard, folder: paths.storeFolder });
  const storeLock = openProcessLock(paths.storeFolder, (file, reason) =>
    logger.warn({ file, reason }, 'a lock of the package store is torn, so nobody can hold it: it is passed over'),
  );
  const installer = new PackageInstaller({
    clock,
    store: openStore(paths),
    storeLock,
    lockFile: new LockFile({
      ...paths,
      onEmpty: (file) =>
        logger.warn({ file }, 'the lock file is empty, as after a power failure, so its packages are locked again'),
    }),
    npm,
    limit: Math.min(availableParallelism() + EXTRA_INSTALLS, MAX_INSTALLS),
    onFallbackPath: (file) =>
      logger.warn(
        { file },
        'the folder of the configuration cannot be written, so the lock file is stored in the data folder',
      ),
    requests: options.requests,
    onCarried: (files, from) =>
      logger.info({ files, from }, 'copied the files that a server has written into the folder of the earlier version'),
    onDamaged: (folder) =>
      logger.warn({ folder }, 'an installed package is damaged, as after a power failure, so it is installed again'),
  });
  return { installer, npm };
}

interface InstallSlotsOptions {
  /** Largest number of installations that run at once. */
  readonly limit: number;
  /** Takes the store lock. Resolves with the function that releases the lock. */
  readonly acquire: (signal: AbortSignal) => Promise<() => Promise<void>>;
}

/** The hold of this process on the store lock. It lasts while an installation of this process runs or waits for the lock. */
interface Lease {
  readonly held: Promise<() => Promise<void>>;
  /** Aborted when the last wait for the lock is given up. */
  readonly abort: AbortController;
}

/**
 * Limits how many installations of this process run at once. All of them share one lease of the store lock. Installations of
 * the same package run one after the other, so that the second one finds the installed package.
 */
class InstallSlots {
  readonly #options: InstallSlotsOptions;
  /** Names of the packages that are being installed. */
  readonly #running = new Set<string>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #lease: Lease | undefined;

  constructor(options: InstallSlotsOptions) {
    this.#options = options;
  }

  /** Waits for a slot and for the store lock. Resolves with the function that frees the slot. Rejects when `signal` is aborted. */
  async enter(name: string, signal: AbortSignal): Promise<() => Promise<void>> {
    while (this.#running.size >= this.#options.limit || this.#running.has(name)) {
      await once(this.#events, 'left', { signal });
    }
    signal.throwIfAborted();
    this.#running.add(name);
    const lease = this.#lease ?? this.#newLease();
    const over = new AbortController();
    const aborted = once(signal, 'abort', { signal: over.signal }).catch(() => {});
    try {
      await Promise.race([lease.held, aborted]);
      signal.throwIfAborted();
    } catch (error) {
      await this.#leave(name);
      throw error;
    } finally {
      over.abort();
    }
    return () => this.#leave(name);
  }

  #newLease(): Lease {
    const abort = new AbortController();
    this.#lease = { held: this.#options.acquire(abort.signal), abort };
    return this.#lease;
  }

  async #leave(name: string): Promise<void> {
    this.#running.delete(name);
    this.#events.emit('left');
    if (this.#running.size > 0) return;
    const lease = this.#lease;
    this.#lease = undefined;
    lease?.abort.abort();
    const release = await lease?.held.catch(() => undefined);
    await release?.();
  }
}
