import { ServerFault } from '../config/file/config-error.js';
import { isExact, programIn } from '../config/resolve/package-bin.js';
import { errorMessage } from '../errors/error-text.js';
import type { ProcessLock } from '../state/process-lock.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import type { Clock } from '../timing/clock.js';
import { InstallSlots } from './install-slots.js';
import { lockKey } from './installed-packages.js';
import { type LockedPackage, type LockFile, LockFileError } from './lock-file.js';
import { type NpmClient, NpmFault } from './npm-client.js';
import type { PackageStore } from './package-store.js';

export interface PackageInstallerOptions {
  readonly clock: Clock;
  readonly store: PackageStore;
  readonly storeLock: ProcessLock;
  readonly lockFile: LockFile;
  readonly npm: Pick<NpmClient, 'install' | 'resolve'>;
  /** How many packages are installed at once. */
  readonly limit: number;
  /** Called with the path of the lock file when it cannot be next to the configuration. */
  readonly onFallbackPath: (file: string) => void;
  /** Called with the folder of an installed package that lacks a part, before it is installed again. */
  readonly onDamaged: (folder: string) => void;
}

/** An installed package. */
export interface Obtained {
  readonly locked: LockedPackage;
  /** Absolute path, to be run with Node. */
  readonly program: string;
  /** False when it was installed before. */
  readonly isNew: boolean;
}

/** A failed installation. The message is one line; `lines` is npm's own output. */
export class InstallFault extends Error {
  override readonly name = 'InstallFault';
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[], cause: unknown) {
    super(message, { cause });
    this.lines = lines;
  }
}

/**
 * Installs packages into the store: several at once, but only one gateway at a time among all that share it.
 *
 * A package is installed into a staging folder, moved into place by one rename, and then locked. An installation that
 * fails or is interrupted changes nothing else.
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
      const locked = lockFile.read().get(lockKey(request));
      const known = locked ?? (isExact(request) ? store.findVersion(name, request.version, installScripts) : undefined);
      const obtained = await this.#put(request, known, within);
      if (locked === undefined) this.#lock(request, obtained.locked);
      return obtained;
    });
  }

  /** Installs the newest versions that the request accepts, and leaves the lock file as it is; `lock` changes it. */
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
      // Throws when the package has no program to run, so that it is not published.
      programIn(staging, request);
      const folder = await store.publish(staging, { name, locked, installScripts });
      return { locked, program: programIn(folder, request), isNew: true };
    });
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
    // Nothing of this process is in staging now.
    await store.sweep();
    return release;
  }

  /** Runs `work` with a slot, while this process holds the store lock. The time limit does not include the wait for them. */
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
  const hint = error instanceof ServerFault || error instanceof LockFileError ? `; ${error.hint}` : '';
  const reason = errorMessage(error);
  const hide = hidingVariables(request);
  return new InstallFault(`${request.shown} could not be installed: ${hide(reason)}${hint}`, lines.map(hide), error);
}

/** Hides a name or a version that the configuration writes as a variable, in npm's output too. */
function hidingVariables(request: PackageRequest): (text: string) => string {
  const { name, version, shown } = request;
  const whole = lockKey(request);
  if (shown === whole) return (text) => text;
  const names = shown.startsWith(name) ? [] : [name, name.replace('/', '%2f')];
  const versions = version === undefined || shown.endsWith(`@${version}`) ? [] : [`@${version}`];
  return (text) => [whole, ...names, ...versions].reduce((hidden, part) => hidden.replaceAll(part, shown), text);
}
