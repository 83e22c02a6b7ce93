import { randomUUID } from 'node:crypto';
import { type OnInternalError, withErrorBoundaryAsync } from '../errors/internal-error.js';
import type { ListFailure } from '../gateway/catalog/offered-lists.js';
import type { Backend } from '../gateway/registry/backend.js';
import { FloodQueue } from '../io/streams/turn-reader.js';
import type { Logger } from '../observe/logger.js';
import type { KnownSecrets } from '../observe/redact.js';
import { networkVariables } from '../process/environment.js';
import { OrphanGuard } from '../process/orphan-guard.js';
import { ResourceWatch, readUsage } from '../process/resource-watch.js';
import type { ChildSpec, LaunchEvents, Launched, Launcher } from '../supervision/launcher.js';
import { legacyDialect } from '../upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../upstream/modern/era-dialect.js';
import type { Dialed, Dialer, DialTarget } from '../upstream/port.js';
import { StdioDialer, type StdioDialerOptions } from '../upstream/stdio/stdio-dialer.js';
import type { Platform } from './platform.js';

export interface ServerProcessesOptions extends Pick<StdioDialerOptions, 'environment' | 'hasManyConnections'> {
  readonly platform: Platform;
  readonly logger: Logger;
  /** Receives the secrets of the environment that servers and npm can log. */
  readonly secrets: Pick<KnownSecrets, 'know'>;
  readonly runFolder: string;
  /** Launch targets by the keys of their specs. */
  readonly targets: ReadonlyMap<string, LaunchTarget>;
}

/** Starts, guards and measures the processes of all servers. Loaded after the first answers to a client. */
export class ServerProcesses {
  readonly launcher: Launcher;
  readonly orphanGuard: OrphanGuard;
  readonly resources: ResourceWatch;

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
    this.resources = new ResourceWatch({ clock, readUsage, onUnreadable });
    const dialer = new StdioDialer({
      ...platform,
      ...{ logger, environment, hasManyConnections, orphanGuard: this.orphanGuard, resources: this.resources },
      dialect: new EraDialect({ legacy: legacyDialect, clock, scan, mintId: () => randomUUID() }),
      onInternalError,
      floods: new FloodQueue(clock),
    });
    this.launcher = backendLauncher({ dialer, targets, logger, onInternalError });
  }

  /** Ends the processes that killed gateways have left behind. */
  sweep(): void {
    void this.orphanGuard.sweep();
  }
}

/** Dependencies of a launch besides the server's spec. */
export interface LaunchTarget extends Omit<DialTarget, 'spec' | 'generation'> {
  readonly log: DialTarget['log'] & { beginAttempt(): void };
  readonly backend: Pick<
    Backend,
    'serverRequest' | 'notification' | 'opened' | 'loadLists' | 'attach' | 'listFailures'
  >;
}

export interface BackendLauncherOptions {
  readonly dialer: Dialer;
  /** Launch targets by the keys of their specs. */
  readonly targets: ReadonlyMap<string, LaunchTarget>;
  readonly logger: { warn(facts: object, text: string): void };
  readonly onInternalError: OnInternalError;
}

/**
 * Launches one generation of a server: connects with the dialer, reads the lists, and attaches the connection to the
 * backend. Then the server is ready.
 *
 * A list that cannot be read does not fail the launch, because a server may serve calls without listing its tools. So the
 * start timeout ends with the handshake, and the lists have a timeout of their own.
 */
export function backendLauncher({ dialer, targets, logger, onInternalError }: BackendLauncherOptions): Launcher {
  const launch = (spec: ChildSpec, generation: number, events: LaunchEvents): Launched => {
    const target = targets.get(spec.key);
    if (target === undefined) throw new Error(`No launch target for "${spec.key}"`);
    const { backend, log, era } = target;
    log.beginAttempt();
    // Reports a start that ended because of the era question, and returns whether it did.
    const reportRefusedStart = () => {
      const isRefused = era.ended();
      if (isRefused) events.startRefused();
      return isRefused;
    };
    const dialed = dialer.dial(
      { ...target, spec, generation },
      {
        handshakeStarted: () => events.began(),
        request: (request) => backend.serverRequest(request),
        notification: (notification) => backend.notification(notification),
        suspected: () => events.suspected(),
        cleared: () => events.cleared(),
        unfit: (reason) => {
          // Added even if the era question ended the process, because no other line says why the process ended.
          log.add(`Trunkline restarts this server: ${reason}`);
          if (!reportRefusedStart()) events.unfit(reason);
        },
        closed: (exit) => {
          if (!reportRefusedStart()) events.exited(exit);
        },
      },
    );
    const attached = attach(dialed, target, events, (unread) => {
      for (const { method, reason } of unread)
        logger.warn({ server: spec.key, reason }, `server runs, but ${method} fails; Trunkline asks again`);
    });
    void withErrorBoundaryAsync(attached, onInternalError, () => events.failed({ reason: 'a bug in Trunkline' }));
    return dialed;
  };
  return { launch };
}

async function attach(
  { connection }: Dialed,
  { backend, era }: LaunchTarget,
  events: LaunchEvents,
  report: (unread: readonly ListFailure[]) => void,
): Promise<void> {
  const outcome = await connection;
  if (outcome.kind === 'failed') {
    const { reason, isHostFault = false } = outcome;
    if (!isHostFault && era.ended()) events.startRefused();
    else events.failed({ reason, hostFault: isHostFault });
    return;
  }
  events.answered();
  backend.opened(outcome.connection);
  await backend.loadLists(outcome.connection);
  // Usually `exited` was reported before, and the supervisor ignores this event.
  if (outcome.connection.isClosed) {
    events.failed({ reason: 'exited' });
    return;
  }
  backend.attach(outcome.connection);
  events.ready();
  report(backend.listFailures);
}
