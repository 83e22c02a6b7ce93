import { type OnInternalError, withErrorBoundaryAsync } from '../errors/error-boundary.js';
import type { Backend } from '../gateway/registry/backend.js';
import type { ChildSpec } from '../supervision/child-spec.js';
import type { LaunchEvents, Launched, Launcher } from '../supervision/launcher.js';
import type { Dialed, Dialer, DialTarget } from '../upstream/port.js';

/** What a launch of one server needs besides its spec. */
export interface LaunchTarget extends Omit<DialTarget, 'spec' | 'generation'> {
  readonly backend: Pick<Backend, 'serverRequest' | 'notification' | 'opened' | 'loadLists' | 'attach'>;
}

export interface BackendLauncherOptions {
  readonly dialer: Dialer;
  /** By the keys of the specs that the supervisor launches. */
  readonly targets: ReadonlyMap<string, LaunchTarget>;
  readonly onInternalError: OnInternalError;
}

/**
 * Launches one generation of a server: connects to it, reads its lists, and attaches the connection to its backend. Only
 * then is the server ready. How the server is reached is the dialer's concern.
 */
export class BackendLauncher implements Launcher {
  readonly #options: BackendLauncherOptions;

  constructor(options: BackendLauncherOptions) {
    this.#options = options;
  }

  launch(spec: ChildSpec, generation: number, events: LaunchEvents): Launched {
    const { dialer, targets, onInternalError } = this.#options;
    const target = targets.get(spec.key);
    if (target === undefined) throw new Error(`No launch target for "${spec.key}"`);
    const { backend, log } = target;
    const dialed = dialer.dial(
      { ...target, spec, generation },
      {
        handshakeStarted: () => events.began(),
        request: (request) => backend.serverRequest(request),
        notification: (notification) => backend.notification(notification),
        suspected: () => events.suspected(),
        cleared: () => events.cleared(),
        unfit: (reason) => {
          log.add(`Trunkline restarts this server: ${reason}`);
          events.unfit(reason);
        },
        closed: (exit) => events.exited(exit),
      },
    );
    void withErrorBoundaryAsync(attach(dialed, target, events), onInternalError, () =>
      events.failed({ reason: 'a bug in Trunkline' }),
    );
    return dialed;
  }
}

async function attach({ connection }: Dialed, { backend }: LaunchTarget, events: LaunchEvents): Promise<void> {
  const outcome = await connection;
  if (outcome.kind === 'failed') {
    const { reason, isHostFault = false } = outcome;
    events.failed({ reason, hostFault: isHostFault });
    return;
  }
  backend.opened(outcome.connection);
  const fault = await backend.loadLists(outcome.connection);
  if (fault !== undefined) {
    events.failed({ reason: fault });
    return;
  }
  if (outcome.connection.isClosed) return;
  backend.attach(outcome.connection);
  events.ready();
}
