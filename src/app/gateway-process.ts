import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Config, type ConfigChanges, compareConfigs, isChange } from '../config/resolve/config.js';
import { type CreateFeature, type FeatureHost, Features } from '../extras/feature.js';
import { CallFeed } from '../gateway/call-feed.js';
import { Gateway, type GatewaySettings } from '../gateway/gateway.js';
import { HELD_MS } from '../host/observe/events/events.js';
import type { Logger } from '../host/observe/logger.js';
import { KnownSecrets } from '../host/observe/redact.js';
import { backgroundClock, watchEventLoop } from '../host/observe/system-clock.js';
import type { OutputLine } from '../hub/control.js';
import type { StopLadder } from '../spec/launch.js';
import { type ApprovalFolders, Approvals } from '../state/approvals.js';
import type { CatalogueStore } from '../state/catalogue-cache.js';
import { createSeals, type Seals } from '../state/seal.js';
import type { ServiceFacts, StatusFacts } from '../status/status-facts.js';
import { loadStatus } from '../status/status-tools.js';
import type { Vault } from '../upstream/auth/vault.js';
import { VERSION } from '../version.js';
import { SharedLimit } from '../wire/io/shared-limit.js';
import type { ClientProfile } from '../wire/mcp/handshake.js';
import { ActiveConfig, secretSourcesOf } from './active-config.js';
import type { ConfinementOptions } from './confined-servers.js';
import { GatewayStatus } from './gateway-status.js';
import { logEvents } from './log-events.js';
import { createPlatform, type Platform } from './platform.js';
import type { ServerProcesses, ServerProcessesOptions } from './server-processes.js';
import { ServerUsage } from './server-usage.js';
import { SupervisedBackends, type SupervisedBackendsOptions } from './supervised-backends.js';

export interface GatewayProcessOptions {
  readonly config: Config;
  /** The report about the configuration file, if the file is rejected as a whole. */
  readonly configFault?: string | undefined;
  readonly logger: Logger;
  /** Receives the secrets; shared with the logger. */
  readonly secrets?: KnownSecrets;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Shared with a transport that is already open. */
  readonly platform?: Platform;
  readonly features?: readonly CreateFeature[];
  /** Default: random keys, so that ids of tasks and cursors end with the process. */
  readonly seals?: Seals;
  /** The folder in which the next gateway finds the processes that a killed gateway has left behind. */
  readonly runFolder: string;
  readonly approvals: ApprovalFolders;
  /** The folders into which missing packages are installed; nothing is installed when absent. */
  readonly packages?: SupervisedBackendsOptions['packages'];
  /** Catalogues of earlier runs; nothing is cached when absent. */
  readonly catalogues?: CatalogueStore | undefined;
  /** The view of the client, if there is only one. Servers outside of the view do not start. */
  readonly onlyView?: string | undefined;
  /** Set if HTTP is served. With `users`, the clients belong to users who must not learn of each other. */
  readonly http?: 'one user' | 'users' | undefined;
  /** Returns the facts about the service of the clients, for the status. `undefined` if the status says nothing about it. */
  readonly service?: () => ServiceFacts | undefined;
  /** A trial of confined servers, which finds out what they need. */
  readonly trial?: ConfinementOptions['trial'];
  /** For servers that a test plays in memory. */
  readonly openStdio?: ServerProcessesOptions['openStdio'];
}

/**
 * The composition root, which connects all rooms below: the gateway with its processes, features, clock and log, to which the
 * transports open for clients (`serve.ts`). `start` starts the servers, `change` applies another configuration, and `stop` ends
 * everything. The hub's commands and `cli` use this room. Begin here; `serve-clients.ts` lists the features.
 */
export class GatewayProcess implements FeatureHost {
  readonly platform: Platform;
  readonly logger: Logger;
  readonly environment: FeatureHost['environment'];
  readonly secrets: KnownSecrets;
  readonly seals: Seals;
  readonly approvals: Approvals;
  readonly calls: CallFeed;
  readonly notices = new Map<string, string>();
  readonly features: Features;
  readonly usage: ServerUsage;
  readonly gateway: Gateway;
  /** Resolves when the features follow the configuration. */
  readonly prepared: Promise<void>;
  readonly #options: GatewayProcessOptions;
  readonly #active: ActiveConfig;
  readonly #instances: SupervisedBackends;
  readonly #waiting: SharedLimit;
  readonly #eventLoop: ReturnType<typeof watchEventLoop>;
  readonly #status: GatewayStatus;
  #processes: ServerProcesses | undefined;
  #closing: Promise<void> | undefined;
  #vault: Promise<Vault> | undefined;

  constructor(options: GatewayProcessOptions) {
    const { config, logger, environment, platform = createPlatform(), secrets = new KnownSecrets() } = options;
    const servesHttp = options.http !== undefined;
    const hasUsers = options.http === 'users';
    const { clock, events } = platform;
    const { onInternalError } = platform.internalErrors;
    this.#options = options;
    this.platform = platform;
    this.logger = logger;
    this.environment = environment;
    this.secrets = secrets;
    this.seals = options.seals ?? createSeals();
    this.calls = new CallFeed(clock, onInternalError);
    this.#eventLoop = watchEventLoop(backgroundClock, HELD_MS, (ms) => events.emit({ kind: 'loop.held', ms }));
    this.#waiting = new SharedLimit(config.gateway.maxQueued);
    platform.unfinishedLines.limitTo(config.gateway.maxPartialBytes);
    logEvents(events, logger);
    secrets.know(config.servers.flatMap(secretSourcesOf));
    const onChange = (key: string) => this.#instances.approvalsChanged(key);
    this.approvals = new Approvals({ folders: options.approvals, clock, logger, onChange });
    const { approvals } = this;
    this.#active = new ActiveConfig({ clock, config, approvals, logger, fault: options.configFault, servesHttp });
    this.#instances = new SupervisedBackends({
      ...options,
      platform,
      secrets,
      servesHttp,
      hasUsers,
      activeConfig: this.#active,
      waiting: this.#waiting,
      offerLogin: (server, person) => this.features.first('offerLogin')?.(server, person),
    });
    this.usage = new ServerUsage(this.#instances, this.calls, events);
    this.features = new Features((options.features ?? []).map((create) => create(this)));
    // A recording has taken the held messages by then, and no other feature wants them.
    this.prepared = this.features.apply(config).then(() => platform.messages.letGo());
    this.#status = new GatewayStatus({
      platform,
      redact: secrets.redact,
      notices: this.notices,
      active: this.#active,
      instances: this.#instances,
      features: this.features,
      usage: this.usage,
      waiting: this.#waiting,
      eventLoop: this.#eventLoop,
      hasUsers,
      service: options.service ?? (() => undefined),
      gateway: () => this.gateway,
    });
    this.gateway = new Gateway({
      clock,
      events,
      onInternalError,
      calls: this.calls,
      ...this.#instances.poolSettings,
      settings: this.#settings(),
      seals: this.seals,
      create: (...which) => this.#instances.create(...which),
      profileOfAll: ALL_CLIENTS,
    });
  }

  get config(): Config {
    return this.#active.config;
  }

  /** Resolves when the cached catalogues are listed to the clients. */
  cachedListsShown(): Promise<void> {
    return this.#instances.cachedListsShown((backend) => !this.gateway.pool.isUnclaimed(backend));
  }

  /** Opens the vault of the logins, once. */
  openVault(): Promise<Vault> {
    this.#vault ??= (async () =>
      (await this.features.first('openVault')?.()) ??
      (await import('../extras/cluster/open-stores.js')).openVault(this.config))().catch((error: unknown) => {
      // The next login tries again.
      this.#vault = undefined;
      throw error;
    });
    return this.#vault;
  }

  /** Loads the code that starts processes, and starts every server. */
  async start(): Promise<void> {
    const { runFolder, http, trial, openStdio } = this.#options;
    const { platform, logger, secrets, environment } = this;
    const [{ ServerProcesses }] = await Promise.all([import('./server-processes.js'), loadStatus()]);
    const processes = new ServerProcesses({
      platform,
      logger,
      secrets,
      environment,
      runFolder,
      openStdio,
      hasManyConnections: http !== undefined,
      targets: this.#instances.targets,
      openVault: () => this.openVault(),
      confinement: { config: () => this.config, ...(trial && { trial }) },
      onLoginChange: (server, user) => this.#loginChanged(server, user),
      onTokenOver: (id) => this.#retire([id]),
      openAccess: (spec) => this.features.openAccess(spec),
      soleServers: this.features.first('soleServers'),
    });
    this.#processes = processes;
    this.usage.measureWith(processes.resources);
    this.#instances.startWith(processes);
    // One turn reads a call that came meanwhile, so that its server starts before the others.
    await nextTurn();
    if (this.#closing !== undefined) return;
    this.gateway.start();
    this.approvals.follow();
    processes.sweep();
  }

  status(): StatusFacts {
    return this.#status.facts;
  }

  /** The last output of all processes of a server. */
  outputOf(key: string): readonly OutputLine[] {
    return this.#instances.outputOf(key);
  }

  /** Restarts all processes of a server. Returns false if the server has none. */
  restart(key: string): boolean {
    const running = this.gateway.pool.of(key).filter((each) => this.#instances.factsOf(each).lifecycle !== undefined);
    for (const { id } of running) this.#instances.restart(id);
    return running.length > 0;
  }

  accessChanged(server: string, user: string): void {
    const own = this.#instances.idsOf(user);
    for (const { id } of this.gateway.pool.of(server)) if (own.includes(id)) this.#instances.restart(id);
  }

  /** Restarts the servers of the owner of a login that has begun or ended. Other users keep their connections. */
  #loginChanged(server: string, user: string | undefined): void {
    const { pool } = this.gateway;
    // Leaves out the instances that are being replaced.
    const pooled = new Set([...pool.keys].flatMap((key) => pool.of(key).map(({ id }) => id)));
    for (const id of this.#instances.idsWithLogin(server, user)) if (pooled.has(id)) this.#instances.restart(id);
  }

  /**
   * Ends the processes and the connections of a user, after their calls in flight, and removes the data that features keep about the user.
   * A client of the user that stays gets new ones.
   */
  forget(user: string): void {
    this.features.forget(user);
    this.#retire(this.#instances.idsOf(user));
  }

  #retire(ids: readonly string[]): void {
    if (ids.length > 0) this.#changeGateway({ replaced: new Set(), retired: new Set(ids) });
  }

  /** Applies another configuration. Unchanged servers keep running. */
  change(next: Config): Changed {
    const { notice, config: before } = this.#active;
    const ofInstances = this.#instances.changesTo(next);
    const completed = [this.#instances.completed(before), this.#instances.completed(next)] as const;
    const changes = compareConfigs(...completed, ofInstances);
    const hasOtherLayers = !isDeepStrictEqual(before.layers?.hidden, next.layers?.hidden);
    const isOther = isChange(changes) || hasOtherLayers || notice !== undefined;
    this.#active.accept(next, isOther);
    // Secrets must be known before anything about the new servers is logged.
    this.secrets.know(next.servers.flatMap(secretSourcesOf));
    this.#waiting.limitTo(next.gateway.maxQueued);
    this.platform.unfinishedLines.limitTo(next.gateway.maxPartialBytes);
    this.#instances.change(next, ofInstances);
    this.#processes?.resources.limitsChanged();
    void this.features.apply(next);
    const retired = ofInstances.flatMap(({ id, change }) => (change === 'replaced' ? [id] : []));
    if (isOther) this.#changeGateway({ replaced: new Set(changes.replaced), retired: new Set(retired) });
    this.platform.events.emit({ kind: 'config.read' });
    return { ...changes, isOther, needsRestart: this.#active.needsRestart };
  }

  /** Reports a file with mistakes and changes nothing else. Returns false if the last report was the same. */
  refuse(report: string): boolean {
    const { notice } = this.#active;
    const isNews = this.#active.refuse(report);
    if (this.#active.notice !== notice) this.#changeGateway({ replaced: new Set(), retired: new Set() });
    this.platform.events.emit({ kind: 'config.read' });
    return isNews;
  }

  /** Stops all servers. Resolves when no process is left. A second call can shorten the times of `ladder`. */
  async stop(ladder: StopLadder): Promise<void> {
    this.#eventLoop.close();
    this.usage.close();
    this.gateway.close();
    const stopped = this.#instances.stopAll(ladder);
    this.#closing ??= this.features.close(stopped);
    await stopped;
    const catalogues = this.#options.catalogues?.settled();
    await Promise.all([this.#closing, this.#processes?.close(), catalogues, this.approvals.close()]);
  }

  #changeGateway(changes: { readonly replaced: ReadonlySet<string>; readonly retired: ReadonlySet<string> }): void {
    this.gateway.change({ ...this.#instances.poolSettings, ...changes }, this.#settings());
  }

  #settings(): GatewaySettings {
    const { tools: ownTools } = this.#status;
    const { features } = this;
    return { ...this.#active.gatewaySettings, ownTools, results: features.first('results'), gates: features.gates };
  }
}

export interface Changed extends ConfigChanges {
  readonly isOther: boolean;
  /** Changed settings that take effect when Trunkline is restarted. */
  readonly needsRestart: readonly string[];
}

/** Client profile for a process that all clients share. It declares every request that the gateway can route to a client. */
const ALL_CLIENTS: ClientProfile = {
  clientInfo: { name: 'trunkline', version: VERSION },
  capabilities: { sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } },
};
