import { randomUUID } from 'node:crypto';
import { FloodQueue } from '../io/streams/flood-bound.js';
import type { Logger } from '../observe/logger.js';
import type { KnownSecrets } from '../observe/redact.js';
import { networkVariables } from '../process/environment.js';
import { OrphanGuard } from '../process/orphan-guard.js';
import { ResourceWatch, readUsage } from '../process/resource-watch.js';
import type { Launcher } from '../supervision/launcher.js';
import { legacyDialect } from '../upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../upstream/modern/era-dialect.js';
import { StdioDialer, type StdioDialerOptions } from '../upstream/stdio/stdio-dialer.js';
import { BackendLauncher, type LaunchTarget } from './backend-launcher.js';
import type { Platform } from './platform.js';

export interface ServerProcessesOptions extends Pick<StdioDialerOptions, 'environment' | 'hasManyConnections'> {
  readonly platform: Platform;
  readonly logger: Logger;
  /** Learns what servers and npm can log of the environment. */
  readonly secrets: Pick<KnownSecrets, 'know'>;
  readonly runFolder: string;
  /** By the keys of the specs that the supervisor launches. */
  readonly targets: ReadonlyMap<string, LaunchTarget>;
}

/** Starts, guards and measures the processes of all servers. Its code is loaded after the first answers to a client. */
export class ServerProcesses {
  readonly launcher: Launcher;
  readonly orphanGuard: OrphanGuard;
  readonly #resources: ResourceWatch;

  constructor(options: ServerProcessesOptions) {
    const { platform, logger, secrets, environment, runFolder, hasManyConnections, targets } = options;
    const { clock, scan } = platform;
    const { onInternalError } = platform.internalErrors;
    secrets.know([{ env: networkVariables(environment), args: [] }]);
    this.orphanGuard = new OrphanGuard({ clock, logger, runFolder });
    const onUnreadable = (err: unknown) =>
      logger.warn(
        { err },
        'the limits of memory and processes have no effect: the system does not tell what servers use',
      );
    this.#resources = new ResourceWatch({ clock, readUsage, onUnreadable });
    const dialer = new StdioDialer({
      ...platform,
      ...{ logger, environment, hasManyConnections, orphanGuard: this.orphanGuard, resources: this.#resources },
      dialect: new EraDialect({ legacy: legacyDialect, clock, scan, mintId: () => randomUUID() }),
      onInternalError,
      floods: new FloodQueue(clock),
    });
    this.launcher = new BackendLauncher({ dialer, targets, logger, onInternalError });
  }

  /** Ends the processes that killed gateways have left behind. */
  sweep(): void {
    void this.orphanGuard.sweep();
  }

  usageOf(pid: number): ReturnType<ResourceWatch['readingOf']> {
    return this.#resources.readingOf(pid);
  }

  /** Reads what this process uses now. */
  async refreshUsage(pid: number): Promise<void> {
    await this.#resources.refresh(pid);
  }

  limitsChanged(): void {
    this.#resources.limitsChanged();
  }

  /** Call this when all servers have ended. */
  async close(): Promise<void> {
    await this.orphanGuard.close();
  }
}
