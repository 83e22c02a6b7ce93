import { randomUUID } from 'node:crypto';
import { FloodQueue } from '../io/streams/flood-bound.js';
import type { Logger } from '../observe/logger.js';
import type { Launcher } from '../supervision/launcher.js';
import type { StdioDialerOptions } from '../upstream/stdio/stdio-dialer.js';
import { BackendLauncher, type LaunchTarget } from './backend-launcher.js';
import type { Platform } from './platform.js';

/** Dependencies of starting processes. */
export type ProcessServices = Pick<StdioDialerOptions, 'orphanGuard' | 'resources' | 'headStart'>;

export interface LateLauncherOptions extends Pick<StdioDialerOptions, 'environment' | 'hasManyConnections'> {
  readonly platform: Platform;
  readonly logger: Logger;
  /** By the keys of the specs that the supervisor launches. */
  readonly targets: ReadonlyMap<string, LaunchTarget & { readonly log: { beginAttempt(): void } }>;
}

/** Launches servers with code that is loaded after the first answers to a client, which do not need it. */
export class LateLauncher implements Launcher {
  readonly #options: LateLauncherOptions;
  #launcher: Launcher | undefined;

  constructor(options: LateLauncherOptions) {
    this.#options = options;
  }

  /** Loads the code. Call it before any launch. */
  async load(processes: ProcessServices): Promise<void> {
    const [{ StdioDialer }, { legacyDialect }, { EraDialect }] = await Promise.all([
      import('../upstream/stdio/stdio-dialer.js'),
      import('../upstream/legacy/legacy-dialect.js'),
      import('../upstream/modern/era-dialect.js'),
    ]);
    const { platform, logger, environment, hasManyConnections, targets } = this.#options;
    const { onInternalError } = platform.internalErrors;
    const { clock, scan } = platform;
    const dialect = new EraDialect({ legacy: legacyDialect, clock, scan, mintId: () => randomUUID() });
    const dialer = new StdioDialer({
      ...platform,
      ...processes,
      ...{ dialect, logger, environment, hasManyConnections, onInternalError },
      floods: new FloodQueue(platform.clock),
    });
    this.#launcher = new BackendLauncher({ dialer, targets, logger, onInternalError });
  }

  launch(...[spec, ...launch]: Parameters<Launcher['launch']>): ReturnType<Launcher['launch']> {
    this.#options.targets.get(spec.key)?.log.beginAttempt();
    if (this.#launcher === undefined) throw new Error('Nothing can be started yet');
    return this.#launcher.launch(spec, ...launch);
  }
}
