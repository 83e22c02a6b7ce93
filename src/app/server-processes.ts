import type { KnownSecrets } from '../observe/redact.js';
import { networkVariables } from '../process/environment.js';
import type { OrphanGuard } from '../process/orphan-guard.js';
import type { ResourceWatch } from '../process/resource-watch.js';
import type { Clock } from '../timing/clock.js';
import type { StartedServers } from './head-start.js';
import type { LateLauncherOptions, ProcessServices } from './late-launcher.js';

interface ServerProcessesOptions extends Pick<LateLauncherOptions, 'environment' | 'logger'> {
  readonly clock: Clock;
  /** Learns what servers and npm can log of the environment. */
  readonly secrets: Pick<KnownSecrets, 'know'>;
  readonly runFolder: string;
  /** The servers that run already. */
  readonly started: StartedServers | undefined;
}

/** Guards, measures and starts the processes of all servers. Loaded when the first server starts. */
export class ServerProcesses {
  readonly #options: ServerProcessesOptions;
  #orphanGuard: OrphanGuard | undefined;
  #resources: ResourceWatch | undefined;

  constructor(options: ServerProcessesOptions) {
    this.#options = options;
    this.#orphanGuard = options.started?.guard;
  }

  /** Loads the code, and resolves with what starts a server. */
  async load(): Promise<ProcessServices> {
    const [{ OrphanGuard }, { ResourceWatch, readUsage }] = await Promise.all([
      import('../process/orphan-guard.js'),
      import('../process/resource-watch.js'),
    ]);
    const { clock, logger, secrets, environment, runFolder, started } = this.#options;
    secrets.know([{ env: networkVariables(environment), args: [] }]);
    this.#orphanGuard ??= new OrphanGuard({ clock, logger, runFolder });
    const onUnreadable = (err: unknown) =>
      logger.warn(
        { err },
        'the limits of memory and processes have no effect: the system does not tell what servers use',
      );
    this.#resources = new ResourceWatch({ clock, readUsage, onUnreadable });
    return {
      orphanGuard: this.#orphanGuard,
      resources: this.#resources,
      headStart: started,
    };
  }

  /** Ends what gateways have left behind that were killed. */
  sweep(): void {
    void this.#orphanGuard?.sweep();
  }

  usageOf(pid: number): ReturnType<ResourceWatch['readingOf']> {
    return this.#resources?.readingOf(pid);
  }

  /** Reads what this process uses now. */
  async refreshUsage(pid: number): Promise<void> {
    await this.#resources?.refresh(pid);
  }

  limitsChanged(): void {
    this.#resources?.limitsChanged();
  }

  /** Call this when all servers have ended. */
  async close(): Promise<void> {
    await this.#orphanGuard?.close();
  }
}
