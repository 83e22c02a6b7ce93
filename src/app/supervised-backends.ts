import { createHash } from 'node:crypto';
import type { Config, Origin, ServerConfig } from '../config/resolve/config.js';
import type { Failure } from '../downstream/failure.js';
import { withErrorBoundary } from '../errors/internal-error.js';
import type { ServerState } from '../gateway/dispatch/availability.js';
import { Backend, type ListenerFor } from '../gateway/registry/backend.js';
import type { RunningBackend } from '../gateway/registry/backend-pool.js';
import type { ServerFacts } from '../gateway/status/status-facts.js';
import type { SharedLimit } from '../io/shared-limit.js';
import { printable } from '../json/printable.js';
import type { ClientProfile } from '../mcp/handshake.js';
import { causeLines } from '../observe/cause-lines.js';
import { ChildLog } from '../observe/child-log.js';
import type { Logger } from '../observe/logger.js';
import type { KnownSecrets, Redact } from '../observe/redact.js';
import { ChildInstaller } from '../packages/child-installer.js';
import type { PackageInstaller } from '../packages/package-installer.js';
import type { PackagePaths } from '../packages/package-store.js';
import type { CatalogueCache, CatalogueCacheEntry } from '../state/catalogue-cache.js';
import type { ChildSpec, StopLadder } from '../supervision/launcher.js';
import { Supervisor } from '../supervision/supervisor.js';
import type { ChildSnapshot } from '../supervision/transition.js';
import { ServerEra } from '../upstream/server-era.js';
import { type ActiveConfig, type ServerChanged, secretSourcesOf } from './active-config.js';
import type { LaunchTarget, ServerProcesses, ServerProcessesOptions } from './server-processes.js';

export interface SupervisedBackendsOptions extends Pick<ServerProcessesOptions, 'platform' | 'logger' | 'environment'> {
  readonly config: Config;
  readonly activeConfig: Pick<ActiveConfig, 'serverFor' | 'changeOf' | 'rulesOf'>;
  /** Learns the secrets of clients. */
  readonly secrets: KnownSecrets;
  /** Limits the waiting calls of all servers together. */
  readonly waiting: SharedLimit;
  /** Where missing packages are installed. Absent if none are installed. */
  readonly packages?: Omit<PackagePaths, 'configFile'>;
  /** The cached catalogues of earlier runs. Nothing is cached if absent. */
  readonly catalogues: CatalogueCache | undefined;
}

/** One backend with the log of its server. Processes come and go. */
interface Instance extends LaunchTarget {
  readonly backend: Backend;
  /** The origin of the client that the instance was created for. */
  readonly origin: Origin | undefined;
  readonly log: ChildLog;
  server: ServerConfig;
  /** The cache for this server and its client. Evaluated late: a package may be installed by then. */
  cacheEntry: () => CatalogueCacheEntry | undefined;
  /** Resolves, once the cached catalogue is offered, with whether there was one. Absent if nothing runs. */
  shown?: Promise<boolean>;
  /** Whether a change of the configuration has replaced or removed it. It may still have calls in flight. */
  isRetired: boolean;
  /** The secrets of its clients need not be known any more. */
  forgetSecrets: () => void;
}

/** Change of one instance by another configuration. */
interface InstanceChange extends ServerChanged {
  readonly id: string;
}

/**
 * The supervised servers behind the backends. The first instance of a server has the server's key as its id; the
 * instances for further clients have ids of their own.
 */
export class SupervisedBackends {
  readonly #options: SupervisedBackendsOptions;
  readonly #instances = new Map<string, Instance>();
  readonly #installer: ChildInstaller;
  readonly #supervisor: Supervisor;
  readonly #stateLog: StateLog;
  /** Program to run for a server. Its package may have been installed since the configuration was read. */
  readonly #withPackage = (child: ChildSpec) => this.#installer.completed(child);
  #processes: Pick<ServerProcesses, 'launcher' | 'orphanGuard'> | undefined;

  constructor(options: SupervisedBackendsOptions) {
    const { config, platform, logger } = options;
    this.#options = options;
    this.#installer = new ChildInstaller({
      open: () => this.#openInstaller(),
      logger,
      onFailed: (id, lines) => this.#instances.get(id)?.log.addAttempt(lines),
    });
    this.#stateLog = new StateLog(logger);
    platform.events.subscribe('server.changed', ({ instance }) => {
      this.#explain(instance, (failed) => this.#stateLog.changed(instance, failed));
    });
    this.#supervisor = new Supervisor({
      clock: platform.clock,
      random: Math.random,
      launcher: { launch: (...launch) => this.#running.launcher.launch(...launch) },
      installer: this.#installer,
      startLimit: config.gateway.startLimit,
      onChange: (id, snapshot) => {
        withErrorBoundary(
          () => this.#instances.get(id)?.backend.stateChanged(snapshot.state),
          platform.internalErrors.onInternalError,
        );
        platform.events.emit({ kind: 'server.changed', instance: id, snapshot });
      },
      onSlowStart: (id) => {
        const { profile, backend } = this.#instances.get(id) ?? {};
        // Before the handshake, the server waits for its first client.
        void profile?.then(() => backend?.firstStart.turnedOutSlow());
      },
    });
  }

  /** Changes of each instance by another configuration. */
  changesTo(config: Config): readonly InstanceChange[] {
    const current = [...this.#instances].filter(([, { isRetired }]) => !isRetired);
    return current.map(([id, instance]) => ({
      id,
      ...this.#options.activeConfig.changeOf(instance, config, (server) => this.#completed(server)),
    }));
  }

  /** Creates backends from this configuration from now on. Its `changes` retire instances, or give them other settings. */
  change(config: Config, changes: readonly InstanceChange[]): void {
    this.#supervisor.startLimit = config.gateway.startLimit;
    for (const { id, change, server } of changes) {
      const instance = this.#instances.get(id);
      if (instance === undefined) continue;
      instance.isRetired = change === 'replaced' || change === 'removed';
      if (change !== 'adjusted' || server === undefined) continue;
      instance.server = server;
      instance.backend.configure(this.#options.activeConfig.rulesOf(server));
      if (server.child !== undefined) this.#supervisor.adjust({ ...this.#installer.completed(server.child), key: id });
    }
  }

  /** The approvals of this server's tools changed. */
  approvalsChanged(key: string): void {
    for (const { server, backend } of this.#instances.values()) {
      if (server.key === key) backend.configure(this.#options.activeConfig.rulesOf(server));
    }
  }

  /** The configuration as it would be read now: packages that were installed since are no longer missing. */
  completed(config: Config): Config {
    return { ...config, servers: config.servers.map((server) => this.#completed(server)) };
  }

  /** The launcher finds each instance here. */
  get targets(): ReadonlyMap<string, LaunchTarget> {
    return this.#instances;
  }

  /** Starts servers with these processes. Call it before any start. */
  startWith(processes: Pick<ServerProcesses, 'launcher' | 'orphanGuard'>): void {
    this.#processes = processes;
  }

  create(
    key: string,
    id: string,
    profile: Promise<ClientProfile>,
    listenerFor: ListenerFor,
    origin: Origin | undefined,
  ): RunningBackend {
    const { logger, secrets, platform, activeConfig, catalogues } = this.#options;
    const server = activeConfig.serverFor(key, origin);
    if (server === undefined) throw new Error(`There is no server "${key}"`);
    const forgetSecrets = secrets.knowWhile(secretSourcesOf(server));
    // The log of the configuration says why a server cannot run that is the same for all clients.
    if (server.problem !== undefined && server !== activeConfig.serverFor(key, undefined))
      logger.error({ server: id, ...server.problem }, 'this server cannot run for a client, with its variables');
    const log = new ChildLog({
      redact: secrets.redact,
      now: () => platform.clock.now(),
      onLine: (line) => logger.debug({ server: id, line }, 'output'),
      isFollowed: () => logger.level === 'debug',
    });
    const backend = this.#createBackend(server, id, listenerFor);
    const instance: Instance = {
      ...{ server, origin, backend, profile, log, forgetSecrets, ...server.frames },
      era: new ServerEra(server.era, catalogues?.eraOf(server, this.#withPackage)),
      limits: () => instance.server.limits,
      cacheEntry: () => undefined,
      isRetired: false,
    };
    this.#instances.set(id, instance);
    const { child } = server;
    if (child !== undefined) this.#supervisor.add({ ...this.#withPackage(child), key: id });
    if (child !== undefined) instance.shown = profile.then((known) => this.#showCached(instance, child, known));
    return {
      backend,
      start: () => {
        if (child === undefined) return;
        if (server.start === 'eager') this.#supervisor.start(id);
        // A lazy server must start once, unless the cache already says what it offers.
        else
          void instance.shown?.then((isKnown) => {
            if (isKnown) this.#supervisor.rest(id);
            // The instance may have been removed meanwhile, together with its client.
            else if (this.#instances.has(id)) this.#supervisor.start(id);
          });
      },
      end: () => this.#end(id),
    };
  }

  /** Resolves when the cached catalogues of these instances are offered. One without a client never offers any. */
  async cachedListsShown(isClaimed: (backend: Backend) => boolean): Promise<void> {
    const claimed = [...this.#instances.values()].filter(({ backend }) => isClaimed(backend));
    await Promise.all(claimed.map(({ shown }) => shown));
  }

  /** The facts about a backend and its server, for the status. */
  factsOf({ id }: Backend): Omit<ServerFacts, 'backend' | 'instances'> {
    const instance = this.#instances.get(id);
    return {
      lifecycle: instance?.server.child === undefined ? undefined : this.#supervisor.snapshot(id),
      problem: instance?.server.problem,
      limits: instance?.server.limits,
      era: instance?.era.source,
      packageVersion: this.#installer.versionOf(instance?.server.package),
      logLines: instance?.log.lines ?? [],
      cause: this.#explain(id, causeOfFailure) ?? [],
      droppedLogBytes: instance?.log.droppedBytes ?? 0,
    };
  }

  /** Whether the server can run for the clients of this instance. */
  canRun(id: string): boolean {
    return this.#instances.get(id)?.server.child !== undefined;
  }

  restart(id: string): void {
    this.#supervisor.restart(id);
  }

  async stopAll(ladder: StopLadder): Promise<void> {
    await Promise.all([this.#supervisor.stopAll(ladder), this.#installer.close()]);
  }

  get #running(): Pick<ServerProcesses, 'launcher' | 'orphanGuard'> {
    if (this.#processes === undefined) throw new Error('Nothing can be started yet');
    return this.#processes;
  }

  async #openInstaller(): Promise<PackageInstaller> {
    const { config, platform, packages } = this.#options;
    const { orphanGuard } = this.#running;
    if (packages === undefined) throw new Error('there is no place to install to');
    const { openInstaller } = await import('../packages/package-installer.js');
    const paths = { ...packages, configFile: config.file };
    return openInstaller({ ...this.#options, orphanGuard, clock: platform.clock, paths }).installer;
  }

  /** Offers the cached catalogue for this client, before the server runs. Resolves with whether there was one. */
  async #showCached(instance: Instance, child: ChildSpec, profile: ClientProfile): Promise<boolean> {
    const { catalogues, logger } = this.#options;
    if (catalogues === undefined) return false;
    const { backend } = instance;
    instance.cacheEntry = () => catalogues.of(instance.server, this.#withPackage(child), profile);
    const cached = instance.cacheEntry()?.find();
    if (cached === 'missed') backend.expectLate();
    if (cached === undefined || cached === 'missed') return false;
    const fault = await backend.loadCached(cached);
    if (fault !== undefined) logger.debug({ server: backend.key, fault }, 'not used of the last run');
    return fault === undefined;
  }

  async #end(id: string): Promise<void> {
    if (this.#instances.get(id)?.server.child !== undefined) await this.#supervisor.remove(id);
    this.#instances.get(id)?.forgetSecrets();
    this.#instances.delete(id);
    this.#stateLog.forget(id);
  }

  #completed(server: ServerConfig): ServerConfig {
    return server.child === undefined ? server : { ...server, child: this.#withPackage(server.child) };
  }

  #createBackend(server: ServerConfig, id: string, listenerFor: ListenerFor): Backend {
    const { key, child } = server;
    const { platform, waiting, activeConfig } = this.#options;
    return new Backend({
      ...activeConfig.rulesOf(server),
      key,
      id,
      clock: platform.clock,
      waiting,
      listenerFor,
      events: platform.events,
      onInternalError: platform.internalErrors.onInternalError,
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      isMisconfigured: child === undefined,
      demandStart: () => this.#supervisor.demand(id),
      idleStop: () => this.#supervisor.rest(id),
      onListsRead: (catalogue) => this.#instances.get(id)?.cacheEntry()?.put(catalogue),
      onStartMissed: () => this.#instances.get(id)?.cacheEntry()?.putMissed(),
      retryInMs: () => (child === undefined ? undefined : this.#supervisor.retryInMs(id)),
      whyDown: () => this.#explain(id, whyDown),
    });
  }

  /** Describes the state of a server and its output; `undefined` for a server that cannot run. */
  #explain<T>(id: string, describe: (failed: Failed) => T): T | undefined {
    const { server, log } = this.#instances.get(id) ?? {};
    if (server?.child === undefined || log === undefined) return undefined;
    return describe({ snapshot: this.#supervisor.snapshot(id), log, redact: this.#options.secrets.redact });
  }
}

const MAX_LINES = 5;
const MAX_LINES_IN_A_SENTENCE = 2;
const MAX_SENTENCE_CHARACTERS = 400;

/** The failure of a server: its state, its output, and what removes secrets from it. */
export interface Failed {
  readonly snapshot: ChildSnapshot;
  readonly log: Pick<ChildLog, 'linesOf'>;
  readonly redact: Redact;
}

/** The lines that name the cause of the latest failure. Empty while the server runs, or if nothing failed. */
export function causeOfFailure({ snapshot, log, redact }: Failed, max = MAX_LINES): readonly string[] {
  if (!isFailing(snapshot)) return [];
  const { state, lastFailure } = snapshot;
  const lines = log.linesOf(state === 'starting' ? 'previous' : 'latest');
  // Trunkline's own line about the end of the server only repeats the reason.
  const reason = lastFailure?.isUnfit === true ? lastFailure.reason : undefined;
  const output = reason === undefined ? lines : lines.filter((line) => !line.endsWith(reason));
  // Reading the lines can complete a secret: colors and escapes are gone.
  return causeLines(output, max).map(redact);
}

/** Why a server does not run, for the failure of a call. */
export function whyDown(failed: Failed): Pick<Failure, 'cause' | 'because'> {
  const { lastFailure } = failed.snapshot;
  return { cause: describeCause(failed), because: lastFailure?.isUnfit === true ? lastFailure.reason : undefined };
}

/** The cause as a sentence. `undefined` if it is not known, or if the server runs. */
function describeCause(failed: Failed): string | undefined {
  const output = causeOfFailure(failed, MAX_LINES_IN_A_SENTENCE).map(printable).join(' / ');
  if (output !== '') return `Its output says: "${shortened(output)}".`;
  const { snapshot, redact } = failed;
  const reason = isFailing(snapshot) ? snapshot.lastFailure?.reason : undefined;
  if (reason === undefined || !BAD_ANSWER.test(reason)) return undefined;
  return `Its last start failed: ${shortened(printable(redact(reason)))}.`;
}

/** Reports of the dialect about an unusable answer to `initialize` or `server/discover`. */
const BAD_ANSWER = /^(?:initialize|server\/discover): the /;

function shortened(text: string): string {
  return text.length > MAX_SENTENCE_CHARACTERS ? `${text.slice(0, MAX_SENTENCE_CHARACTERS)}…` : text;
}

function isFailing({ state, consecutiveFailures }: ChildSnapshot): boolean {
  return state === 'backoff' || state === 'parked' || (state === 'starting' && consecutiveFailures > 0);
}

/** Logs each change of the state of a server; in trouble with the reason and the cause. */
export class StateLog {
  readonly #logger: Pick<Logger, 'info' | 'warn'>;
  /** The last logged state of each instance. */
  readonly #logged = new Map<string, ServerState>();
  /** Failures whose last output is not read yet. */
  readonly #unlogged = new Map<string, ChildSnapshot>();

  constructor(logger: Pick<Logger, 'info' | 'warn'>) {
    this.#logger = logger;
  }

  changed(id: string, failed: Failed): void {
    const { snapshot } = failed;
    const hasFailed = snapshot.state === 'backoff' || snapshot.state === 'parked';
    // While there is a pid, the last output of a failed server may not be read yet.
    if (hasFailed && snapshot.pid !== undefined) {
      this.#unlogged.set(id, snapshot);
      return;
    }
    // The next start does not wait any longer if the end of the process took longer than the delay.
    const earlier = this.#unlogged.get(id);
    this.#unlogged.delete(id);
    if (earlier !== undefined && !hasFailed) this.#log(id, { ...failed, snapshot: { ...earlier, pid: undefined } });
    this.#log(id, failed);
  }

  #log(id: string, failed: Failed): void {
    const { state, generation, pid, lastFailure, restarts, missing } = failed.snapshot;
    if (this.#logged.get(id) === state) return;
    const hasFailed = state === 'backoff' || state === 'parked';
    this.#logged.set(id, state);
    const facts = { server: id, state, generation, pid, restarts, ...(missing && { package: missing }) };
    if (!hasFailed && state !== 'suspect') {
      this.#logger.info(facts, `server ${state}`);
      return;
    }
    const { reason, code, signal } = (hasFailed ? lastFailure : undefined) ?? {};
    this.#logger.warn({ ...facts, reason, code, signal, cause: causeOfFailure(failed) }, `server ${state}`);
  }

  forget(id: string): void {
    this.#logged.delete(id);
    this.#unlogged.delete(id);
  }
}
