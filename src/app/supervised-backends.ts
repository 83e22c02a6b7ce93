import { createHash } from 'node:crypto';
import type { Approvals } from '../approvals/approvals.js';
import type { CatalogueCache, CatalogueCacheEntry } from '../cache/catalogue-cache.js';
import type { Config, ServerConfig } from '../config/config.js';
import { withErrorBoundary } from '../errors/error-boundary.js';
import { loadQueue } from '../gateway/dispatch/concurrency-limit.js';
import { Backend, type ListenerFor } from '../gateway/registry/backend.js';
import type { BackendRules } from '../gateway/registry/backend-options.js';
import type { RunningBackend } from '../gateway/registry/instances.js';
import type { ServerFacts } from '../gateway/status/status-facts.js';
import type { SharedLimit } from '../io/shared-limit.js';
import { WorkBudget } from '../io/work-budget.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import { ChildLog } from '../observe/child-log.js';
import type { Logger } from '../observe/logger.js';
import type { Redact } from '../observe/redact.js';
import { ChildInstaller } from '../packages/child-installer.js';
import type { PackagePlaces } from '../packages/installed-packages.js';
import type { PackageInstaller } from '../packages/package-installer.js';
import type { ChildSpec } from '../supervision/child-spec.js';
import type { Launcher, StopLadder } from '../supervision/launcher.js';
import { Supervisor } from '../supervision/supervisor.js';
import { timed } from '../timing/work-time.js';
import { loadBreaker } from '../upstream/health/circuit-breaker.js';
import type { StdioDialerOptions } from '../upstream/stdio/stdio-dialer.js';
import { BackendLauncher, type LaunchTarget } from './backend-launcher.js';
import { rulesOf } from './backend-rules.js';
import { causeOfFailure, type Failed, StateLog, whyDown } from './failures.js';
import type { Platform } from './platform.js';

/** What starting processes needs. */
type ProcessServices = Pick<StdioDialerOptions, 'orphanGuard' | 'resources' | 'spawnHelper'>;

export interface SupervisedBackendsOptions {
  readonly config: Config;
  readonly platform: Platform;
  readonly logger: Logger;
  readonly redact: Redact;
  /** Limits the waiting calls of all servers together. */
  readonly waiting: SharedLimit;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where missing packages are installed. Absent if none are installed. */
  readonly packages?: Omit<PackagePlaces, 'configFile'>;
  /** Whether each client has its own connection, as over HTTP. */
  readonly hasManyConnections: boolean;
  /** The cached catalogues of earlier runs. Nothing is cached if absent. */
  readonly catalogues: CatalogueCache | undefined;
  /** The approvals of tools, for servers that require them. */
  readonly approvals: Approvals;
}

/** One backend with the log of its server. Processes come and go. */
interface Instance extends LaunchTarget {
  readonly backend: Backend;
  readonly log: ChildLog;
  server: ServerConfig;
  /** The cache for this server and its client. Evaluated late: a package may be installed by then. */
  cacheEntry: () => CatalogueCacheEntry | undefined;
  /** Resolves, once the cached catalogue is offered, with whether there was one. Absent if nothing runs. */
  shown?: Promise<boolean>;
}

/**
 * The supervised servers behind the backends. The first instance of a server has the server's key as its id; the
 * instances for further clients have ids of their own.
 */
export class SupervisedBackends {
  readonly #options: SupervisedBackendsOptions;
  #servers: ReadonlyMap<string, ServerConfig> = new Map();
  #configFile = '';
  readonly #instances = new Map<string, Instance>();
  readonly #installer: ChildInstaller;
  readonly #supervisor: Supervisor;
  readonly #stateLog: StateLog;
  #launcher: Launcher = NOT_LOADED;
  #orphanGuard: ProcessServices['orphanGuard'] | undefined;

  constructor(options: SupervisedBackendsOptions) {
    const { config, platform, logger } = options;
    this.#options = options;
    this.#know(config);
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
      launcher: {
        launch: (spec, ...launch) => {
          this.#instances.get(spec.key)?.log.beginAttempt();
          return timed(platform, 'start', spec.key, () => this.#launcher.launch(spec, ...launch));
        },
      },
      installer: this.#installer,
      startLimit: config.gateway.startLimit,
      onChange: (id, snapshot) => {
        withErrorBoundary(
          () => this.#instances.get(id)?.backend.stateChanged(snapshot.state),
          platform.internalErrors.onInternalError,
        );
        platform.events.emit({ kind: 'server.changed', instance: id, snapshot });
      },
    });
  }

  /** Creates backends from this configuration from now on. Instances of the `adjusted` servers get its settings. */
  change(config: Config, adjusted: readonly string[]): void {
    this.#know(config);
    this.#supervisor.startLimit = config.gateway.startLimit;
    for (const [id, instance] of this.#instances) {
      const server = this.#servers.get(instance.server.key);
      if (server === undefined || !adjusted.includes(server.key)) continue;
      instance.server = server;
      instance.backend.configure(this.#rulesOf(server));
      if (server.child !== undefined) this.#supervisor.adjust({ ...this.#installer.completed(server.child), key: id });
    }
  }

  /** The approvals of this server's tools changed. */
  approvalsChanged(key: string): void {
    for (const { server, backend } of this.#instances.values()) {
      if (server.key === key) backend.configure(this.#rulesOf(server));
    }
  }

  /** The configuration as it would be read now: packages that were installed since are no longer missing. */
  completed(config: Config): Config {
    const servers = config.servers.map((server) => {
      const { child } = server;
      return child === undefined ? server : { ...server, child: this.#installer.completed(child) };
    });
    return { ...config, servers };
  }

  /** Loads the code that starts servers, which the first answers to a client do not need. Call it before any start. */
  async load(processes: ProcessServices): Promise<void> {
    const [{ StdioDialer }, { legacyDialect }] = await Promise.all([
      import('../upstream/stdio/stdio-dialer.js'),
      import('../upstream/legacy/legacy-dialect.js'),
    ]);
    const { platform, logger, environment, hasManyConnections } = this.#options;
    const { onInternalError } = platform.internalErrors;
    const dialect = legacyDialect;
    const dialer = new StdioDialer({
      ...platform,
      ...processes,
      ...{ dialect, logger, environment, hasManyConnections, onInternalError },
      workBudget: new WorkBudget(platform.clock, setImmediate),
    });
    this.#orphanGuard = processes.orphanGuard;
    this.#launcher = new BackendLauncher({ dialer, targets: this.#instances, logger, onInternalError });
  }

  /** Loads what calls need that wait or fail. */
  async prepare(): Promise<void> {
    await Promise.all([loadBreaker(), loadQueue()]);
  }

  create(key: string, id: string, profile: Promise<ClientProfile>, listenerFor: ListenerFor): RunningBackend {
    const server = this.#servers.get(key);
    if (server === undefined) throw new Error(`There is no server "${key}"`);
    const { logger, redact, platform } = this.#options;
    const log = new ChildLog({
      redact,
      now: () => platform.clock.now(),
      onLine: (line) => logger.debug({ server: id, line }, 'output'),
      isFollowed: () => logger.level === 'debug',
    });
    const backend = this.#createBackend(server, id, listenerFor);
    const limits = () => instance.server.limits;
    const instance: Instance = { server, backend, profile, log, limits, cacheEntry: () => undefined, ...server.frames };
    this.#instances.set(id, instance);
    const { child } = server;
    if (child !== undefined) this.#supervisor.add({ ...this.#installer.completed(child), key: id });
    if (child !== undefined) instance.shown = profile.then((known) => this.#showCached(instance, child, known));
    return {
      backend,
      start: () => {
        if (child === undefined) return;
        if (server.start === 'eager') this.#supervisor.start(id);
        // A lazy server must start once, unless the cache already says what it offers.
        else void instance.shown?.then((isKnown) => (isKnown ? this.#supervisor.rest(id) : this.#startLate(id)));
      },
      end: () => this.#end(id),
    };
  }

  /** Resolves when the cached catalogues of all instances are offered. */
  async cachedListsShown(): Promise<void> {
    await Promise.all([...this.#instances.values()].map(({ shown }) => shown));
  }

  /** The facts about a backend and its server, for the status. */
  factsOf({ id }: Backend): Omit<ServerFacts, 'backend' | 'instances'> {
    const instance = this.#instances.get(id);
    return {
      lifecycle: instance?.server.child === undefined ? undefined : this.#supervisor.snapshot(id),
      problem: instance?.server.problem,
      limits: instance?.server.limits,
      packageVersion: this.#installer.versionOf(instance?.server.package),
      logLines: instance?.log.lines ?? [],
      cause: this.#explain(id, causeOfFailure) ?? [],
      droppedLogBytes: instance?.log.droppedBytes ?? 0,
    };
  }

  restart(id: string): void {
    this.#supervisor.restart(id);
  }

  async stopAll(ladder: StopLadder): Promise<void> {
    await Promise.all([this.#supervisor.stopAll(ladder), this.#installer.close()]);
  }

  async #openInstaller(): Promise<PackageInstaller> {
    const { config, platform, packages } = this.#options;
    const orphanGuard = this.#orphanGuard;
    if (packages === undefined || orphanGuard === undefined) throw new Error('there is no place to install to');
    const { openInstaller } = await import('../packages/open-installer.js');
    const places = { ...packages, configFile: config.file };
    return openInstaller({ ...this.#options, orphanGuard, clock: platform.clock, places }).installer;
  }

  /** Offers the cached catalogue for this client. Resolves with whether there was one. */
  async #showCached(instance: Instance, child: ChildSpec, profile: ClientProfile): Promise<boolean> {
    const { catalogues } = this.#options;
    if (catalogues === undefined) return false;
    instance.cacheEntry = () => catalogues.of(instance.server, this.#installer.completed(child), profile);
    const cached = instance.cacheEntry()?.find();
    if (cached === 'missed') instance.backend.expectLate();
    if (cached === undefined || cached === 'missed') return false;
    const fault = await instance.backend.loadCached(cached);
    if (fault !== undefined)
      this.#options.logger.debug({ server: instance.server.key, fault }, 'not used of the last run');
    return fault === undefined;
  }

  /** The instance may have been removed meanwhile, together with its client. */
  #startLate(id: string): void {
    if (this.#instances.has(id)) this.#supervisor.start(id);
  }

  async #end(id: string): Promise<void> {
    if (this.#instances.get(id)?.server.child !== undefined) await this.#supervisor.remove(id);
    this.#instances.delete(id);
    this.#stateLog.forget(id);
  }

  #know({ file, servers }: Config): void {
    this.#configFile = file;
    this.#servers = new Map(servers.map((server) => [server.key, server]));
  }

  #rulesOf(server: ServerConfig): BackendRules {
    return rulesOf(server, this.#configFile, this.#options.approvals);
  }

  #createBackend(server: ServerConfig, id: string, listenerFor: ListenerFor): Backend {
    const { key, child } = server;
    const { platform, waiting } = this.#options;
    return new Backend({
      ...this.#rulesOf(server),
      key,
      id,
      clock: platform.clock,
      workTime: platform.workTime,
      waiting,
      listenerFor,
      events: platform.events,
      onInternalError: platform.internalErrors.onInternalError,
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      isMisconfigured: child === undefined,
      demandStart: () => this.#supervisor.demand(id),
      idleStop: () => this.#supervisor.rest(id),
      onListsRead: (catalogue) => this.#instances.get(id)?.cacheEntry()?.put(catalogue),
      onFirstListMissed: (because) => this.#instances.get(id)?.cacheEntry()?.putMissed(because),
      retryInMs: () => (child === undefined ? undefined : this.#supervisor.retryInMs(id)),
      whyDown: () => this.#explain(id, whyDown),
    });
  }

  /** Describes the state of a server and its output; `undefined` for a server that cannot run. */
  #explain<T>(id: string, describe: (failed: Failed) => T): T | undefined {
    const { server, log } = this.#instances.get(id) ?? {};
    if (server?.child === undefined || log === undefined) return undefined;
    return describe({ snapshot: this.#supervisor.snapshot(id), log, redact: this.#options.redact });
  }
}

const NOT_LOADED: Launcher = {
  launch: () => {
    throw new Error('Nothing can be started yet');
  },
};
