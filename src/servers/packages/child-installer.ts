import type { ServerPackage } from '../../config/resolve/config.js';
import { errorMessage } from '../../host/errors/error-text.js';
import type { Logger } from '../../host/observe/logger.js';
import type { Installer, Installing, InstallOutcome } from '../../spec/launch.js';
import type { ChildSpec, PackageRequest } from '../../spec/server-spec.js';
import type { Obtained, PackageInstaller } from './package-installer.js';

export interface ChildInstallerOptions {
  /** Loads the installer. Called for the first installation. */
  readonly open: () => Promise<PackageInstaller>;
  readonly logger: Logger;
  /** Called for each server whose package could not be installed, with the output of npm. */
  readonly onFailed: (key: string, lines: readonly string[]) => void;
}

/** One installation, shared by all servers that need the same package. */
interface Shared {
  readonly obtained: Promise<Obtained>;
  readonly abort: AbortController;
  wantedBy: number;
}

/** Installs missing packages. Servers that need the same package share one installation. */
export class ChildInstaller implements Installer {
  readonly #options: ChildInstallerOptions;
  /** The installer, whose slots and store lock all installations of this process share. */
  #installer: Promise<PackageInstaller> | undefined;
  readonly #running = new Map<string, Shared>();
  /** Packages that this process has installed, by the key of their request. */
  readonly #obtained = new Map<string, Obtained>();

  constructor(options: ChildInstallerOptions) {
    this.#options = options;
  }

  /** Returns the spec with the installed program, if this process has installed its missing package. */
  completed(spec: ChildSpec): ChildSpec {
    const obtained = spec.missing && this.#obtained.get(keyOf(spec.missing));
    return obtained === undefined ? spec : withProgram(spec, obtained.program);
  }

  /** The exact version of a server's package; `undefined` if the package is not installed. */
  versionOf(used: ServerPackage | undefined): string | undefined {
    return used?.found?.version ?? (used && this.#obtained.get(keyOf(used.request))?.locked.version);
  }

  install(spec: ChildSpec): Installing {
    const { missing } = spec;
    if (missing === undefined) throw new Error(`Nothing is missing for "${spec.key}"`);
    const shared = this.#shared(missing);
    shared.wantedBy += 1;
    let isWanted = true;
    const leave = () => {
      if (isWanted) shared.wantedBy -= 1;
      isWanted = false;
      // The installation continues while another server needs it.
      if (shared.wantedBy === 0) shared.abort.abort();
    };
    const outcome = shared.obtained.then(
      ({ program }): InstallOutcome => ({ kind: 'installed', spec: withProgram(spec, program) }),
      (error: unknown): InstallOutcome => {
        const lines = error instanceof Error && 'lines' in error ? (error.lines as readonly string[]) : [];
        if (isWanted) this.#options.onFailed(spec.key, lines);
        return { kind: 'failed', reason: errorMessage(error) };
      },
    );
    return { outcome, cancel: leave };
  }

  /** Aborts all installations. Resolves when all their processes have ended. */
  async close(): Promise<void> {
    const running = [...this.#running.values()];
    for (const { abort } of running) abort.abort();
    await Promise.allSettled(running.map(({ obtained }) => obtained));
  }

  #shared(request: PackageRequest): Shared {
    const key = keyOf(request);
    const running = this.#running.get(key);
    if (running !== undefined && !running.abort.signal.aborted) return running;
    const abort = new AbortController();
    const obtained = this.#obtain(request, abort.signal).finally(() => {
      if (this.#running.get(key) === shared) this.#running.delete(key);
    });
    const shared: Shared = { obtained, abort, wantedBy: 0 };
    this.#running.set(key, shared);
    return shared;
  }

  async #open(): Promise<PackageInstaller> {
    const opened = this.#installer ?? this.#options.open();
    this.#installer = opened;
    try {
      return await opened;
    } catch (error) {
      if (this.#installer === opened) this.#installer = undefined;
      throw error;
    }
  }

  async #obtain(request: PackageRequest, signal: AbortSignal): Promise<Obtained> {
    const { logger } = this.#options;
    const { shown } = request;
    logger.info({ package: shown }, 'installing the package');
    const installer = await this.#open();
    const obtained = await installer.obtain(request, signal);
    const { locked, isNew } = obtained;
    logger.info(
      { package: shown, version: locked.version },
      isNew ? 'installed the package' : 'the package is already installed',
    );
    this.#obtained.set(keyOf(request), obtained);
    return obtained;
  }
}

function keyOf({ name, version, bin, installScripts, foreignDependencies, isConfined }: PackageRequest): string {
  return JSON.stringify([name, version, bin, installScripts, foreignDependencies, isConfined]);
}

function withProgram({ missing: _, ...spec }: ChildSpec, program: string): ChildSpec {
  return { ...spec, args: [program, ...spec.args] };
}
