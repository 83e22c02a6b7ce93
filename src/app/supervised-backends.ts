import { createHash } from 'node:crypto';
import {
  type Config,
  isForFolder,
  isInView,
  isPerUser,
  type Origin,
  type ServerConfig,
  variantOf,
} from '../config/resolve/config.js';
import type { LoginPage, Person } from '../extras/feature.js';
import { Backend, type ListenerFor, type OfferedLogin, type RunningBackend } from '../gateway/registry/backend.js';
import type { PoolSettings } from '../gateway/registry/backend-pool.js';
import { withErrorBoundary } from '../host/errors/internal-error.js';
import { ChildLog } from '../host/observe/child-log.js';
import type { KnownSecrets } from '../host/observe/redact.js';
import type { OutputLine } from '../hub/control.js';
import { ChildInstaller } from '../servers/packages/child-installer.js';
import type { PackageInstaller } from '../servers/packages/package-installer.js';
import type { PackageFolders } from '../servers/packages/package-store.js';
import { Supervisor } from '../servers/supervision/supervisor.js';
import type { StopLadder } from '../spec/launch.js';
import { loginServerOf, programOf, type ServerSpec } from '../spec/server-spec.js';
import type { CatalogueCacheEntry, CatalogueServer, CatalogueStore } from '../state/catalogue-cache.js';
import type { SupervisedFacts } from '../status/status-facts.js';
import { ServerEra } from '../upstream/server-era.js';
import type { SharedLimit } from '../wire/io/shared-limit.js';
import type { ClientProfile } from '../wire/mcp/handshake.js';
import { type ActiveConfig, type ServerChanged, secretSourcesOf } from './active-config.js';
import { causeOfFailure, type Failed, StateLog, whyDown } from './server-failure.js';
import type { LaunchTarget, ServerProcesses, ServerSurroundings } from './server-processes.js';

export interface SupervisedBackendsOptions extends ServerSurroundings {
  readonly config: Config;
  readonly activeConfig: ActiveConfig;
  readonly secrets: KnownSecrets;
  /** Limit on the waiting calls of all servers together. */
  readonly waiting: SharedLimit;
  /** The folders into which missing packages are installed. Absent if none are installed. */
  readonly packages?: PackageFolders | undefined;
  /** The cached catalogues of earlier runs. Nothing is cached if absent. */
  readonly catalogues?: CatalogueStore | undefined;
  readonly servesHttp: boolean;
  readonly hasUsers: boolean;
  /** The page on which a user logs in at a server; `undefined` if this gateway has no such pages. */
  readonly offerLogin: (server: string, person: Person) => LoginPage | undefined;
  /** The view of the client, if there is only one. Servers outside of the view do not start. */
  readonly onlyView?: string | undefined;
}

/** One instance of a server: its backend, its log and its settings. An instance outlives its processes. */
interface Instance extends LaunchTarget {
  readonly backend: Backend;
  /** The origin of the client that the instance was created for. */
  readonly origin: Origin | undefined;
  readonly log: ChildLog;
  server: ServerConfig;
  /** The cache entry for this server and its client. A function, because the entry changes when a package is installed. */
  cacheEntry: () => CatalogueCacheEntry | undefined;
  /** Resolves with true once the cached catalogue is offered, or with false if there is none. Absent if the server cannot run. */
  shown?: Promise<boolean>;
  /** Whether the configuration has replaced or removed the instance, which may still have calls in flight. */
  isRetired: boolean;
  forgetSecrets: () => void;
}

interface InstanceChange extends ServerChanged {
  readonly id: string;
}

/** The first instance of a server has the server's key as its id; the instances for further clients have ids of their own. */
export class SupervisedBackends {
  readonly #options: SupervisedBackendsOptions;
  readonly #instances = new Map<string, Instance>();
  readonly #installer: ChildInstaller;
  readonly #supervisor: Supervisor;
  readonly #stateLog: StateLog;
  /** Adds the program of a package that was installed after the configuration was read. */
  readonly #withPackage = (spec: ServerSpec): ServerSpec =>
    spec.kind === 'remote' ? spec : this.#installer.completed(spec);
  #processes: ServerProcesses | undefined;

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
        // A start without a client waits for the first client, so it counts as slow only once the profile is known.
        void profile?.then(() => backend?.firstStart.turnedOutSlow());
      },
    });
  }

  changesTo(config: Config): readonly InstanceChange[] {
    const current = [...this.#instances].filter(([, { isRetired }]) => !isRetired);
    return current.map(([id, instance]) => ({
      id,
      ...this.#options.activeConfig.changeOf(instance, config, (server) => this.#completed(server)),
    }));
  }

  /** Uses this configuration for new backends. The `changes` retire instances or give them other settings. */
  change(config: Config, changes: readonly InstanceChange[]): void {
    this.#supervisor.startLimit = config.gateway.startLimit;
    for (const { id, change, server } of changes) {
      const instance = this.#instances.get(id);
      if (instance === undefined) continue;
      instance.isRetired = change === 'replaced' || change === 'removed';
      if (change !== 'adjusted' || server === undefined) continue;
      instance.server = server;
      instance.backend.configure(this.#options.activeConfig.rulesOf(server));
      if (server.spec !== undefined) this.#supervisor.adjust({ ...this.#withPackage(server.spec), key: id });
    }
  }

  /** Applies changed approvals of this server's tools. */
  approvalsChanged(key: string): void {
    for (const { server, backend } of this.#instances.values()) {
      if (server.key === key) backend.configure(this.#options.activeConfig.rulesOf(server));
    }
  }

  /** The configuration with the packages that were installed after it was read. */
  completed(config: Config): Config {
    return { ...config, servers: config.servers.map((server) => this.#completed(server)) };
  }

  /** The instances, for the launcher. */
  get targets(): ReadonlyMap<string, LaunchTarget> {
    return this.#instances;
  }

  /** The servers of the active configuration, for the gateway. */
  get poolSettings(): PoolSettings {
    const { activeConfig, onlyView, hasUsers } = this.#options;
    const { config } = activeConfig;
    const servers = config.servers.map((server) => ({
      key: server.key,
      sharing: activeConfig.sharingOf(server).sharing,
      isSessionless: () => this.#isKnownModern(server),
      isMisconfigured: server.spec === undefined,
      ...(config.layers !== undefined &&
        config.layers.hidden.size > 0 && {
          isFor: (origin: Origin | undefined) => isForFolder(activeConfig.config, server, origin?.folder),
        }),
      // A process that acts for users needs a client, because without a user it would have no login. So does one of a project.
      waitsForClient:
        server.isInterceptor !== true &&
        (!isInView(config, server.key, onlyView) ||
          !isForFolder(config, server, undefined) ||
          (hasUsers && server.actsForUsers === true)),
      isInterceptor: server.isInterceptor,
      variantOf: (origin: Origin | undefined) => variantOf(server, origin),
    }));
    return { servers, idleStopMs: config.gateway.idleStopMs };
  }

  /** The processes that run, each with the key of its server. */
  get running(): readonly { readonly server: string; readonly pid: number }[] {
    return [...this.#instances].flatMap(([id, { server }]) => {
      const pid = server.spec === undefined ? undefined : this.#supervisor.snapshot(id).pid;
      return pid === undefined ? [] : [{ server: server.key, pid }];
    });
  }

  /** Sets the processes that start servers. Must be called before any start. */
  startWith(processes: ServerProcesses): void {
    this.#processes = processes;
  }

  /** Creates the instance `id` of a server, for clients of this origin. Throws for an unknown server. */
  create(
    key: string,
    id: string,
    profile: Promise<ClientProfile>,
    listenerFor: ListenerFor,
    origin: Origin | undefined,
  ): RunningBackend {
    const { logger, secrets, platform, activeConfig } = this.#options;
    const server = activeConfig.serverFor(key, origin);
    if (server === undefined) throw new Error(`There is no server "${key}"`);
    const forgetSecrets = secrets.knowWhile(secretSourcesOf(server));
    // A problem for all clients is in the log already, because `logConfig` has logged the problems of the configuration.
    if (server.problem !== undefined && server !== activeConfig.serverFor(key, undefined)) {
      const user = origin?.userName;
      const whose = user === undefined ? 'a client' : 'a user';
      const { message: reason, hint } = server.problem;
      logger.error({ server: id, user, reason, hint }, `this server cannot run for ${whose}, with its variables`);
    }
    const log = new ChildLog({
      redact: secrets.redact,
      now: () => platform.clock.now(),
      onLine: (line) => logger.debug({ server: id, line }, 'output'),
      isFollowed: () => logger.level === 'debug',
    });
    const backend = this.#createBackend(server, id, listenerFor, origin);
    const instance: Instance = {
      server,
      origin,
      backend,
      profile,
      log,
      forgetSecrets,
      maxFrameBytes: server.maxFrameBytes,
      maxUnwrittenBytes: server.maxUnwrittenBytes,
      era: new ServerEra(server.era, this.#cachedEraOf(server)),
      limits: () => instance.server.limits,
      cacheEntry: () => undefined,
      isRetired: false,
    };
    this.#instances.set(id, instance);
    const { spec } = server;
    if (spec !== undefined) this.#supervisor.add({ ...this.#withPackage(spec), key: id });
    if (spec !== undefined) instance.shown = profile.then((known) => this.#showCached(instance, spec, known));
    return {
      backend,
      start: (waitsForCall) => {
        if (spec === undefined) return;
        if (server.start === 'eager' && !waitsForCall) this.#supervisor.start(id);
        // A server that waits must start once, unless its catalogue is cached.
        else
          void instance.shown?.then((isKnown) => {
            if (isKnown) this.#supervisor.rest(id);
            // The instance may have been removed with its client in the meantime.
            else if (this.#instances.has(id)) this.#supervisor.start(id);
          });
      },
      end: () => this.#end(id),
    };
  }

  /** Resolves when the claimed instances offer their cached catalogues. An instance that no client has claimed never offers one. */
  async cachedListsShown(isClaimed: (backend: Backend) => boolean): Promise<void> {
    const claimed = [...this.#instances.values()].filter(({ backend }) => isClaimed(backend));
    await Promise.all(claimed.map(({ shown }) => shown));
  }

  factsOf({ id }: Backend): SupervisedFacts {
    const instance = this.#instances.get(id);
    const sandboxed = confinedIn(instance?.server);
    return {
      lifecycle: instance?.server.spec === undefined ? undefined : this.#supervisor.snapshot(id),
      problem: instance?.server.problem,
      isPerUser: instance && isPerUser(this.#options.activeConfig.config, instance.server),
      isRemote: instance?.server.spec?.kind === 'remote',
      layer: instance?.server.layer,
      isInsecure: isInsecure(instance?.server.spec),
      userLogin: loginServerOf(instance?.server.spec)?.user && 'Its user logs in on a page that a refused call names.',
      sharing: instance && this.#options.activeConfig.sharingOf(instance.server),
      limits: instance?.server.limits,
      era: instance?.era.source,
      packageVersion: this.#installer.versionOf(instance?.server.package),
      logLines: instance?.log.lines ?? [],
      cause: this.#explain(id, causeOfFailure) ?? [],
      droppedLogBytes: instance?.log.droppedBytes ?? 0,
      sandboxRemarks: sandboxed && (this.#processes?.confined.remarksOn(sandboxed) ?? []),
    };
  }

  /** The last output of all instances, in the order of time. Lines of all instances but the first begin with its id. */
  outputOf(key: string): readonly OutputLine[] {
    const named = (id: string, line: OutputLine) => (id === key ? line : { ...line, text: `${id}: ${line.text}` });
    return [...this.#instances]
      .filter(([, { server }]) => server.key === key)
      .flatMap(([id, { log }]) => [...log.starts.map(startAt), ...log.timedLines].map((line) => named(id, line)))
      .sort((one, other) => one.at - other.at);
  }

  /** Whether the configuration or an earlier run says that the server speaks a revision without sessions. */
  #isKnownModern(server: ServerConfig): boolean {
    const era = server.era === 'auto' ? this.#cachedEraOf(server)?.find()?.era : server.era;
    return era === 'modern';
  }

  canRun(id: string): boolean {
    return this.#instances.get(id)?.server.spec !== undefined;
  }

  /** The ids of the instances that use the login of this user at a server, or the login of the machine if `user` is absent. */
  idsWithLogin(server: string, user: string | undefined): readonly string[] {
    return [...this.#instances].flatMap(([id, instance]) => {
      const at = loginServerOf(instance.server.spec);
      return at?.login.server === server && at.user === user ? [id] : [];
    });
  }

  /** The ids of the instances that were created for a user. */
  idsOf(user: string): readonly string[] {
    return [...this.#instances].flatMap(([id, { origin }]) => (origin?.user === user ? [id] : []));
  }

  restart(id: string): void {
    this.#supervisor.restart(id);
  }

  async stopAll(ladder: StopLadder): Promise<void> {
    await Promise.all([this.#supervisor.stopAll(ladder), this.#installer.close()]);
  }

  get #running(): ServerProcesses {
    if (this.#processes === undefined) throw new Error('Nothing can be started yet');
    return this.#processes;
  }

  async #openInstaller(): Promise<PackageInstaller> {
    const { activeConfig, config, platform, packages } = this.#options;
    const { orphanGuard } = this.#running;
    const requests = () => activeConfig.config.servers.flatMap((server) => server.package?.request ?? []);
    if (packages === undefined) throw new Error('there is no place to install to');
    const { openInstaller } = await import('../servers/packages/package-installer.js');
    const paths = { ...packages, configFile: config.file };
    return openInstaller({ ...this.#options, orphanGuard, requests, clock: platform.clock, paths }).installer;
  }

  /** Offers the cached catalogue for this client before the server runs. Resolves with false if there is none. */
  async #showCached(instance: Instance, spec: ServerSpec, profile: ClientProfile): Promise<boolean> {
    const { catalogues, logger } = this.#options;
    if (catalogues === undefined) return false;
    const { backend } = instance;
    instance.cacheEntry = () => catalogues.of(this.#cachedAs(instance.server), this.#withPackage(spec), profile);
    const entry = instance.cacheEntry();
    const cached = entry?.find();
    if (cached === 'missed') backend.expectLate();
    const isOwn = cached !== undefined && cached !== 'missed';
    const shown = isOwn ? cached : entry?.findForAll();
    if (shown === undefined) return false;
    const fault = await backend.loadCached(shown, { isOfOthers: !isOwn });
    if (fault !== undefined) logger.debug({ server: backend.key, fault }, 'the cached catalogue is not used');
    return isOwn && fault === undefined;
  }

  #cachedEraOf(server: ServerConfig) {
    const { spec } = server;
    if (spec === undefined) return undefined;
    return this.#options.catalogues?.eraOf(
      () => this.#cachedAs(server),
      () => this.#withPackage(spec),
    );
  }

  /** The server for the cache, with the version of a package that was installed after the configuration was read. */
  #cachedAs({ key, package: used }: ServerConfig): CatalogueServer {
    const configFile = this.#options.activeConfig.config.file;
    return { key, configFile, version: this.#installer.versionOf(used) };
  }

  async #end(id: string): Promise<void> {
    if (this.#instances.get(id)?.server.spec !== undefined) await this.#supervisor.remove(id);
    this.#instances.get(id)?.forgetSecrets();
    this.#instances.delete(id);
    this.#stateLog.forget(id);
  }

  #completed(server: ServerConfig): ServerConfig {
    return server.spec === undefined ? server : { ...server, spec: this.#withPackage(server.spec) };
  }

  #createBackend(server: ServerConfig, id: string, listenerFor: ListenerFor, origin: Origin | undefined): Backend {
    const { key, spec } = server;
    const { platform, waiting, activeConfig, hasUsers } = this.#options;
    // The output of a process for all users may be about another user than the caller.
    const isOfAll = activeConfig.sharingOf(server).sharing === 'all' && server.actsForUsers !== true;
    const isQuiet = hasUsers && isOfAll;
    const confined = isQuiet ? undefined : confinedIn(server);
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
      isMisconfigured: spec === undefined,
      demandStart: () => this.#supervisor.demand(id),
      idleStop: () => this.#supervisor.rest(id),
      onListsRead: (catalogue) => this.#instances.get(id)?.cacheEntry()?.put(catalogue),
      onStartMissed: () => this.#instances.get(id)?.cacheEntry()?.putMissed(),
      beginLogin: this.#loginOf(spec, origin),
      loginAdvice: () => this.#loginAdvice(id),
      retryInMs: () => (spec === undefined ? undefined : this.#supervisor.retryInMs(id)),
      whyDown: () => {
        if (server.problem !== undefined) return { because: `${server.problem.message}; ${server.problem.hint}` };
        return isQuiet
          ? undefined
          : this.#explain(id, (failed) =>
              whyDown(failed, spec?.kind === 'remote' || failed.snapshot.state === 'blocked'),
            );
      },
      remarkSince: confined && ((at, error) => this.#processes?.confined.refusedSince(confined, at, error)),
    });
  }

  /**
   * Returns a function that begins the login at a server for a call. Returns `undefined` over HTTP unless each user has a login, because
   * the caller may be another person than the owner of the login.
   */
  #loginOf(spec: ServerSpec | undefined, origin: Origin | undefined): (() => Promise<OfferedLogin>) | undefined {
    const at = loginServerOf(spec);
    if (at?.login.grant !== 'authorization_code') return undefined;
    const { servesHttp, offerLogin } = this.#options;
    const person = personIn(origin);
    if (at.user === undefined) return servesHttp ? undefined : () => this.#running.beginLogin(at);
    if (person === undefined) return undefined;
    return async () => {
      const page = offerLogin(at.login.server, person);
      if (page === undefined) throw new Error('This gateway has no pages for logins');
      return { ...page, finished: this.#running.untilLogin(at) };
    };
  }

  /** Tells the user of this instance how to log in at its server, or how to log out. `undefined` if the login is not the user's own. */
  userLoginOf({ id }: Backend): string | undefined {
    const { publicUrl } = this.#options.activeConfig.config.gateway.http;
    const at = loginServerOf(this.#instances.get(id)?.server.spec);
    if (at?.user === undefined) return undefined;
    const { server } = at.login;
    const isBlocked = this.#supervisor.snapshot(id).state === 'blocked';
    const advice = isBlocked ? this.#loginAdvice(id) : undefined;
    if (advice !== undefined) return `You have no login at ${server}, or it is over: ${advice}.`;
    return `You use your own login at ${server}; ${publicUrl}/logins shows it and ends it.`;
  }

  /** Says as a clause on which page the user of an instance logs in. `undefined` if the login is not the user's own. */
  #loginAdvice(id: string): string | undefined {
    const { server, origin } = this.#instances.get(id) ?? {};
    const at = loginServerOf(server?.spec);
    const person = personIn(origin);
    if (at?.user === undefined || person === undefined) return undefined;
    const page = this.#options.offerLogin(at.login.server, person);
    return page && `log in at ${page.url} within 10 minutes (the page must show the code ${page.code})`;
  }

  /** Describes the failure of a server. `undefined` for a server that cannot run. */
  #explain<T>(id: string, describe: (failed: Failed) => T): T | undefined {
    const { server, log } = this.#instances.get(id) ?? {};
    if (server?.spec === undefined || log === undefined) return undefined;
    return describe({ snapshot: this.#supervisor.snapshot(id), log, redact: this.#options.secrets.redact });
  }
}

function personIn({ user, userName = '' }: Partial<Origin> = {}): Person | undefined {
  return user === undefined ? undefined : { principal: user, name: userName };
}

/** The program of a server that may only run confined. */
function confinedIn(server: ServerConfig | undefined) {
  const spec = server && programOf(server);
  return spec?.sandbox === undefined ? undefined : { ...spec, sandbox: spec.sandbox };
}

function startAt(at: number): OutputLine {
  return { at, text: 'started', isStart: true };
}

/** Whether the messages of a server cross a network in plain text. */
function isInsecure(spec: ServerSpec | undefined): boolean {
  return spec?.kind === 'remote' && spec.isInsecure === true && spec.url.startsWith('http:');
}
