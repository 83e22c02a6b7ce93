import { randomUUID } from 'node:crypto';
import type { SoleServerDialer } from '../extras/feature.js';
import type { Backend } from '../gateway/registry/backend.js';
import { type OnInternalError, withErrorBoundaryAsync } from '../host/errors/internal-error.js';
import type { Logger } from '../host/observe/logger.js';
import type { KnownSecrets } from '../host/observe/redact.js';
import { networkVariables } from '../servers/process/environment.js';
import { OrphanGuard } from '../servers/process/orphan-guard.js';
import { ResourceWatch, readUsage } from '../servers/process/resource-watch.js';
import type { LaunchEvents, Launched, Launcher } from '../spec/launch.js';
import type { ChildSpec, RemoteSpec, ServerSpec } from '../spec/server-spec.js';
import type { SharedLogins, SharedLoginsOptions } from '../upstream/auth/shared-logins.js';
import type { Vault } from '../upstream/auth/vault.js';
import type { OpenedAccess } from '../upstream/http/access.js';
import type { HttpDialer, HttpReading, RemoteTarget } from '../upstream/http/http-dialer.js';
import type { ToolHeaders } from '../upstream/http/http-session.js';
import { legacyDialect } from '../upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../upstream/modern/era-dialect.js';
import { StdioDialer, type StdioDialerOptions } from '../upstream/stdio/stdio-dialer.js';
import {
  type Dialed,
  type Dialer,
  type DialTarget,
  dialLater,
  type LaunchPlace,
  type UpstreamListener,
} from '../upstream/upstream-connection.js';
import { FloodQueue } from '../wire/io/streams/turn-reader.js';
import { secretsIn } from './active-config.js';
import { ConfinedDialer, type ConfinementOptions, isConfined } from './confined-servers.js';
import type { Platform } from './platform.js';

/** The parts of the gateway around its servers. */
export interface ServerSurroundings {
  readonly platform: Platform;
  readonly logger: Logger;
  /** The gateway's own environment. Servers get only the variables of an allowlist. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface ServerProcessesOptions extends ServerSurroundings, OpensAccess {
  /** Whether each client has its own connection to Trunkline, as over HTTP. */
  readonly hasManyConnections: boolean;
  /** Receives the secrets of the environment that servers and npm can log. */
  readonly secrets: KnownSecrets;
  readonly runFolder: string;
  /** Called when a login at a server has begun or ended, with the principal if the login is of a user. */
  readonly onLoginChange: SharedLoginsOptions['onChange'];
  /** Called with the id of an instance when the token of its process has been replaced or is no longer valid. */
  readonly onTokenOver: (id: string) => void;
  /** Launch targets by the keys of their specs. */
  readonly targets: ReadonlyMap<string, LaunchTarget>;
  readonly confinement: ConfinementOptions;
  /** The servers that run on one gateway of the cluster only. Absent without a cluster. */
  readonly soleServers?: SoleServerDialer | undefined;
  /** Makes the dialer for servers with a command. Absent if their commands are to be run. */
  readonly openStdio?: ((options: StdioDialerOptions) => { readonly dial: StdioDialer['dial'] }) | undefined;
}

interface OpensAccess {
  /** Opens the vault with the logins at remote servers. Called before the first connection to one. */
  readonly openVault: () => Promise<Vault>;
  /** Opens the access to a server that a feature provides. Returns `undefined` if the entry or a login gives the access. */
  readonly openAccess?: ((spec: RemoteSpec) => OpenedAccess | undefined) | undefined;
}

/** Starts, guards and measures the processes of all servers. Loaded after the first answers to a client. */
export class ServerProcesses {
  readonly launcher: Launcher;
  readonly orphanGuard: OrphanGuard;
  readonly resources: ResourceWatch;
  readonly confined: ConfinedDialer;
  readonly #remote: RemoteDialer;
  readonly #logger: Logger;
  readonly #onTokenOver: (id: string) => void;

  constructor(options: ServerProcessesOptions) {
    const { platform, logger, secrets, environment, runFolder, hasManyConnections, targets } = options;
    this.#logger = logger;
    this.#onTokenOver = options.onTokenOver;
    const { clock } = platform;
    const { onInternalError } = platform.internalErrors;
    secrets.know([{ env: networkVariables(environment), args: [] }]);
    this.orphanGuard = new OrphanGuard({ clock, logger, runFolder });
    const onUnreadable = (err: unknown) =>
      logger.warn(
        { err },
        'the limits of memory and processes have no effect, because the system does not report the usage of servers',
      );
    this.resources = new ResourceWatch({ clock, readUsage, onUnreadable });
    const shared = {
      ...platform,
      dialect: new EraDialect({ legacy: legacyDialect, clock, mintId: () => randomUUID() }),
      onInternalError,
      floods: new FloodQueue(clock),
      redact: secrets.redact,
    };
    const { openStdio = (dialerOptions) => new StdioDialer(dialerOptions) } = options;
    const stdio = openStdio({
      ...shared,
      logger,
      environment,
      hasManyConnections,
      orphanGuard: this.orphanGuard,
      resources: this.resources,
    });
    this.#remote = new RemoteDialer(shared, options, {
      clock,
      keepSecret: (headers) => secrets.knowWhile([{ env: secretsIn(headers), args: [] }]),
      onChange: options.onLoginChange,
      onRenewed: (server, result) => platform.events.emit({ kind: 'login.renewed', server, result }),
    });
    const remote = this.#remote;
    this.confined = new ConfinedDialer(stdio, { ...options.confinement, clock, environment, logger });
    const { confined } = this;
    const dialProcess: Dialer<ChildSpec>['dial'] = ({ spec, ...target }, listener) =>
      (isConfined(spec) ? confined : stdio).dial({ ...target, spec }, listener);
    const processes: Dialer<ChildSpec> = {
      dial: ({ spec, ...target }, listener) =>
        spec.token === undefined
          ? dialProcess({ ...target, spec }, listener)
          : this.#dialWithToken({ ...target, spec }, spec.token, listener, dialProcess),
    };
    const { soleServers } = options;
    const dialer = {
      dial: ({ spec, ...target }: ServerTarget, listener: UpstreamListener) => {
        if (spec.kind === 'remote') return remote.dial({ ...target, spec }, listener);
        const { soleKey } = spec;
        if (soleKey === undefined || soleServers === undefined) return processes.dial({ ...target, spec }, listener);
        return soleServers.dial(soleKey, { ...target, spec }, listener, { processes, remote: shared });
      },
    };
    this.launcher = backendLauncher({ dialer, targets, logger, onInternalError });
  }

  /** Begins a login at a server, or returns the login that already waits for the person. Rejects if it cannot begin. */
  async beginLogin(spec: RemoteSpec): ReturnType<SharedLogins['begin']> {
    return await this.#remote.beginLogin(spec);
  }

  /** Starts a process with the token of a login, and has it replaced before the token ends. */
  #dialWithToken(
    { spec, ...target }: DialTarget<ChildSpec>,
    { variables, from }: NonNullable<ChildSpec['token']>,
    listener: UpstreamListener,
    dial: Dialer<ChildSpec>['dial'],
  ): Dialed {
    return dialLater(async (isEnded) => {
      const taken = await this.#remote.takeToken(from, () => this.#onTokenOver(spec.key));
      if ('because' in taken) return { kind: 'failed', reason: taken.because, fault: 'blocked' };
      if (isEnded()) {
        taken.release();
        return { kind: 'failed', reason: 'stopped', fault: 'host' };
      }
      const tokens = Object.fromEntries(variables.map((name) => [name, taken.token]));
      const dialed = dial({ ...target, spec: { ...spec, env: { ...spec.env, ...tokens } } }, listener);
      return {
        get pid() {
          return dialed.pid;
        },
        connection: dialed.connection,
        end: async (ladder) => {
          taken.release();
          await dialed.end(ladder);
        },
      };
    });
  }

  async untilLogin(spec: RemoteSpec): Promise<void> {
    await this.#remote.untilLogin(spec);
  }

  /** Stops watching logins and guarding processes. Call this when all servers have ended. */
  async close(): Promise<void> {
    const onLost = (err: unknown) => this.#logger.error({ err }, 'a renewed login is lost; log in again');
    await Promise.all([this.#remote.close().catch(onLost), this.orphanGuard.close()]);
  }

  /** Ends the processes that killed gateways have left behind. */
  sweep(): void {
    void this.orphanGuard.sweep();
  }
}

type ServerTarget = DialTarget & ToolHeaders;

/** Loads the code for servers behind a URL with the first of them, because most gateways have none. */
class RemoteDialer implements Dialer<RemoteSpec> {
  readonly #load: () => Promise<HttpDialer>;
  #logins: SharedLogins | undefined;

  constructor(
    shared: HttpReading,
    { openVault, openAccess }: OpensAccess,
    options: Omit<SharedLoginsOptions, 'vault'>,
  ) {
    let loading: Promise<HttpDialer> | undefined;
    const load = async () => {
      const [{ HttpDialer }, { SharedLogins }, vault] = await Promise.all([
        import('../upstream/http/http-dialer.js'),
        import('../upstream/auth/shared-logins.js'),
        openVault(),
      ]);
      const logins = new SharedLogins({ ...options, vault });
      this.#logins = logins;
      return new HttpDialer({ ...shared, openAccess: (spec) => openAccess?.(spec) ?? logins.open(spec) });
    };
    this.#load = () => {
      loading ??= load();
      return loading;
    };
  }

  async beginLogin(spec: RemoteSpec): ReturnType<SharedLogins['begin']> {
    return await (await this.#loaded()).begin(spec);
  }

  async untilLogin(spec: RemoteSpec): Promise<void> {
    await (await this.#loaded()).untilLogin(spec);
  }

  async takeToken(...of: Parameters<SharedLogins['takeToken']>): ReturnType<SharedLogins['takeToken']> {
    return await (await this.#loaded()).takeToken(...of);
  }

  async close(): Promise<void> {
    await this.#logins?.close();
  }

  dial(target: RemoteTarget, listener: UpstreamListener): Dialed {
    return dialLater(async () => (await this.#load()).dial(target, listener));
  }

  async #loaded(): Promise<SharedLogins> {
    await this.#load();
    if (this.#logins === undefined) throw new Error('The logins are not loaded');
    return this.#logins;
  }
}

export interface LaunchTarget extends LaunchPlace {
  readonly log: DialTarget['log'] & { beginAttempt(): void };
  readonly backend: LaunchedBackend;
}

interface LaunchedBackend {
  readonly listFailures: Backend['listFailures'];
  readonly serverRequest: Backend['serverRequest'];
  readonly notification: Backend['notification'];
  readonly opened: Backend['opened'];
  readonly loadLists: Backend['loadLists'];
  readonly attach: Backend['attach'];
  readonly mirroredParams: Backend['mirroredParams'];
  readonly rereadTools: Backend['rereadTools'];
}

export interface BackendLauncherOptions {
  readonly dialer: { dial(target: ServerTarget, listener: UpstreamListener): Dialed };
  /** Launch targets by the keys of their specs. */
  readonly targets: ReadonlyMap<string, LaunchTarget>;
  readonly logger: { warn(facts: object, text: string): void };
  readonly onInternalError: OnInternalError;
}

/**
 * Launches one generation of a server: connects with the dialer, reads the lists, and attaches the connection to the backend. Then the
 * server is ready.
 *
 * A list that cannot be read does not fail the launch, because a server may serve calls without listing its tools. The start timeout ends
 * with the handshake for this reason, and the lists have a timeout of their own.
 */
export function backendLauncher({ dialer, targets, logger, onInternalError }: BackendLauncherOptions): Launcher {
  const launch = (spec: ServerSpec, generation: number, events: LaunchEvents): Launched => {
    const target = targets.get(spec.key);
    if (target === undefined) throw new Error(`No launch target for "${spec.key}"`);
    const { backend, log, era } = target;
    log.beginAttempt();
    // Reports a start that ended because of the probe of the era, and returns whether it did.
    const reportRefusedStart = () => {
      const isRefused = era.ended();
      if (isRefused) events.endedByProbe();
      return isRefused;
    };
    const dialed = dialer.dial(
      {
        ...target,
        spec,
        generation,
        paramsOf: (tool) => backend.mirroredParams(tool),
        rereadTools: () => backend.rereadTools(),
      },
      {
        handshakeStarted: () => events.began(),
        request: (request) => backend.serverRequest(request),
        notification: (notification) => backend.notification(notification),
        suspected: () => events.suspected(),
        cleared: () => events.cleared(),
        unfit: (reason) => {
          // Adds the line even if the probe of the era ended the process, because no other line says why it ended.
          log.add(`Trunkline ${spec.kind === 'remote' ? 'connects again' : 'restarts this server'}: ${reason}`);
          if (!reportRefusedStart()) events.unfit(reason);
        },
        closed: (exit) => {
          if (!reportRefusedStart()) events.exited(exit);
        },
        lost: (fault, reason) => {
          log.add(`The connection ended, because ${reason}.`);
          events.lost(fault, reason);
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
  report: (unread: Backend['listFailures']) => void,
): Promise<void> {
  const outcome = await connection;
  if (outcome.kind === 'failed') {
    const { reason, fault = 'server', retryAfterMs } = outcome;
    if (fault === 'server' && era.ended()) events.endedByProbe();
    else events.failed({ reason, fault, retryAfterMs });
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
