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

/** Installs missing packages. A package that several servers need is installed once. */
export class ChildInstaller implements Installer {
  readonly #options: ChildInstallerOptions;
  /** The installer, whose slots and store lock all installations of this process share. */
  #installer: Promise<PackageInstaller> | undefined;
  readonly #running = new Map<AbortController, Promise<unknown>>();
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
    const abort = new AbortController();
    const outcome = this.#obtain(missing, abort.signal).then(
      ({ program }): InstallOutcome => ({ kind: 'installed', spec: withProgram(spec, program) }),
      (error: unknown): InstallOutcome => {
        const lines = error instanceof Error && 'lines' in error ? (error.lines as readonly string[]) : [];
        if (!abort.signal.aborted) this.#options.onFailed(spec.key, lines);
        return { kind: 'failed', reason: errorMessage(error) };
      },
    );
    this.#running.set(
      abort,
      outcome.finally(() => this.#running.delete(abort)),
    );
    return { outcome, cancel: () => abort.abort() };
  }

  /** Aborts all installations. Resolves when all their processes have ended. */
  async close(): Promise<void> {
    for (const abort of this.#running.keys()) abort.abort();
    await Promise.all(this.#running.values());
  }

  /** Loads the installer, again if its code could not be loaded. */
  #open(): Promise<PackageInstaller> {
    this.#installer ??= this.#options.open().catch((error) => {
      this.#installer = undefined;
      throw error;
    });
    return this.#installer;
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
