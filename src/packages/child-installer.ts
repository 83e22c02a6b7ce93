import { errorMessage } from '../errors/error-text.js';
import type { Logger } from '../observe/logger.js';
import type { ChildSpec, PackageRequest } from '../supervision/child-spec.js';
import type { Installer, Installing, InstallOutcome } from '../supervision/installer.js';
import type { Obtained, PackageInstaller } from './package-installer.js';

export interface ChildInstallerOptions {
  /** Loads it when there is something to install for the first time. */
  readonly open: () => Promise<PackageInstaller>;
  readonly logger: Logger;
  /** Takes down what npm said, for the server it said it of. */
  readonly log: (key: string, line: string) => void;
}

/** One installation, for all children that want the same. */
interface Shared {
  readonly obtained: Promise<Obtained>;
  readonly abort: AbortController;
  wantedBy: number;
}

/** Installs what children lack; those that lack the same wait for one installation. */
export class ChildInstaller implements Installer {
  readonly #options: ChildInstallerOptions;
  readonly #running = new Map<string, Shared>();
  /** What has been installed since we started, by what was asked for. */
  readonly #programs = new Map<string, string>();

  constructor(options: ChildInstallerOptions) {
    this.#options = options;
  }

  /** The same child without what it lacked, if that has been installed meanwhile. */
  completed(spec: ChildSpec): ChildSpec {
    const program = spec.missing && this.#programs.get(keyOf(spec.missing));
    return program === undefined ? spec : withProgram(spec, program);
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
      // Whoever still waits goes on.
      if (shared.wantedBy === 0) shared.abort.abort();
    };
    const outcome = shared.obtained.then(
      ({ program }): InstallOutcome => ({ kind: 'installed', spec: withProgram(spec, program) }),
      (error: unknown): InstallOutcome => {
        const lines = error instanceof Error && 'lines' in error ? (error.lines as readonly string[]) : [];
        if (isWanted) for (const line of lines) this.#options.log(spec.key, line);
        return { kind: 'failed', reason: errorMessage(error) };
      },
    );
    return { outcome, cancel: leave };
  }

  /** Gives up whatever is being installed; resolves when nothing of it runs any more. */
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

  async #obtain(request: PackageRequest, signal: AbortSignal): Promise<Obtained> {
    const { open, logger } = this.#options;
    const { shown } = request;
    logger.info({ package: shown }, 'to be installed');
    const installer = await open();
    const obtained = await installer.obtain(request, signal);
    const { locked, isNew } = obtained;
    logger.info({ package: shown, version: locked.version }, isNew ? 'installed' : 'was installed already');
    this.#programs.set(keyOf(request), obtained.program);
    return obtained;
  }
}

function keyOf({ name, version, bin, installScripts }: PackageRequest): string {
  return JSON.stringify([name, version, bin, installScripts]);
}

function withProgram({ missing: _, ...spec }: ChildSpec, program: string): ChildSpec {
  return { ...spec, args: [program, ...spec.args] };
}
