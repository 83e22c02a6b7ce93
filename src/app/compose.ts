import { type ApprovalPlaces, Approvals } from '../approvals/approvals.js';
import type { CatalogueCache } from '../cache/catalogue-cache.js';
import { type ConfigChanges, compareConfigs } from '../config/compare.js';
import type { Config, ServerConfig } from '../config/config.js';
import { Gateway, type GatewaySettings } from '../gateway/gateway.js';
import type { Backend } from '../gateway/registry/backend.js';
import type { PoolChange } from '../gateway/registry/backend-pool.js';
import type { OwnTool, VisibleBackends } from '../gateway/status/own-tool.js';
import { createRestartTool } from '../gateway/status/restart-tool.js';
import type { StatusFacts } from '../gateway/status/status-facts.js';
import { createStatusTool } from '../gateway/status/status-tool.js';
import { createToolCountWarning } from '../gateway/status/tool-count.js';
import { SharedLimit } from '../io/shared-limit.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import type { Logger } from '../observe/logger.js';
import { KnownSecrets, type SecretSource } from '../observe/redact.js';
import type { ChildSnapshot } from '../supervision/child-snapshot.js';
import type { StopLadder } from '../supervision/launcher.js';
import { VERSION } from '../version.js';
import { ActiveConfig } from './active-config.js';
import type { OrphanGuard } from './orphan-guard.js';
import { createPlatform, type Platform } from './platform.js';
import { createSeal } from './seal.js';
import { SupervisedBackends, type SupervisedBackendsOptions } from './supervised-backends.js';

export interface ComposeOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Told of the secrets in the configuration; shared with the logger. */
  readonly secrets?: KnownSecrets;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where it is written down which processes are ours, for the gateway that starts after us should we be killed. */
  readonly runFolder: string;
  readonly approvals: ApprovalPlaces;
  /** Where packages are installed that are missing; absent where none is. */
  readonly packages?: SupervisedBackendsOptions['packages'];
  /** Shared with a front that is open already. */
  readonly platform?: Platform;
  /** Seals what clients keep, such as the ids of tasks; what was sealed before a restart is good under the same one. */
  readonly secret?: string;
  /** Called when the secret is first used. */
  readonly onSealed?: () => void;
  /** What servers offered in the last run, and in which files it is; nothing is kept when absent. */
  readonly catalogues?: CatalogueCache;
  /** Clients come on a connection each, as they do over HTTP. */
  readonly hasManyConnections?: boolean;
  /** What is wrong with the configuration as a whole, when it could not be used. */
  readonly configFault?: string;
  /** Told of every change of a child, in the same tick as its cause. */
  readonly onChange?: (id: string, snapshot: ChildSnapshot) => void;
}

/** What a server is told that serves all clients in one process: what the gateway can see to for each of them. */
const ALL_CLIENTS: ClientProfile = {
  clientInfo: { name: 'trunkline', version: VERSION },
  capabilities: { sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } },
};

/** Everything that runs, for whoever opens a front before it. */
export interface Composition {
  readonly gateway: Gateway;
  readonly platform: Platform;
  readonly approvals: Pick<Approvals, 'of'>;
  /** Resolves when what was kept is offered to the clients of all processes that may be started. */
  cachedListsShown(): Promise<void>;
  /** Loads what that takes, and starts every server. */
  start(): Promise<void>;
  status(): StatusFacts;
  /** Has another configuration in force; what it does not change goes on. */
  change(config: Config): Changed;
  /** The file cannot be used, and changes nothing. Returns whether that is news. */
  refuse(report: string): boolean;
  /** Ends everything; called again with a shorter ladder, it hastens the end. Resolves when no process is left. */
  stop(ladder: StopLadder): Promise<void>;
}

export interface Changed extends ConfigChanges {
  /** Whether anything is different. */
  readonly isOther: boolean;
  /** Settings that will be in force once we are started again. */
  readonly needsRestart: readonly string[];
}

/** Puts the gateway together: the one place where the core meets processes, clock and log. */
export function compose(options: ComposeOptions): Composition {
  const {
    config,
    logger,
    environment,
    runFolder,
    packages,
    configFault,
    secrets = new KnownSecrets(),
    secret,
    onSealed = () => {},
    hasManyConnections = false,
    onChange = () => {},
    catalogues,
    platform = createPlatform(),
  } = options;
  const { clock, partialFrames, internalErrors } = platform;
  const { maxQueued, maxPartialBytes } = config.gateway;
  partialFrames.limitTo(maxPartialBytes);
  const waiting = new SharedLimit(maxQueued);
  internalErrors.listen((err) => logger.error({ err }, 'a bug in Trunkline, which failed one request and no more'));
  secrets.know(config.servers.flatMap(secretsOf));
  const startedAt = clock.now();
  let orphanGuard: OrphanGuard | undefined;
  const activeConfig = new ActiveConfig({ clock, config, fault: configFault, servesHttp: hasManyConnections });
  const { redact } = secrets;
  const approvals = new Approvals({
    places: options.approvals,
    clock,
    logger,
    onChange: (key) => instances.approvalsChanged(key),
  });
  const instances: SupervisedBackends = new SupervisedBackends({
    config,
    platform,
    logger,
    redact,
    waiting,
    environment,
    ...(packages && { packages }),
    hasManyConnections,
    catalogues,
    approvals,
    onChange,
  });

  const statusOf = ({ backends, catalogs }: VisibleBackends): StatusFacts => ({
    now: clock.now(),
    startedAt,
    version: VERSION,
    config: activeConfig.facts,
    redact,
    waiting,
    partialFrames,
    internalErrorCount: internalErrors.count,
    catalogs,
    canRestart: activeConfig.config.gateway.restartTool,
    servers: [...backends.values()].map((backend) => ({
      backend,
      ...instances.factsOf(backend),
      instances: gateway.pool.of(backend.key).map((each) => ({
        backend: each,
        lifecycle: instances.factsOf(each).lifecycle,
        isUnclaimed: gateway.pool.isUnclaimed(each),
      })),
    })),
  });
  const runnable = () => activeConfig.config.servers.flatMap(({ key, child }) => (child === undefined ? [] : [key]));
  const makeOwnTools = (): OwnTool[] => [
    createStatusTool(statusOf, activeConfig.notice),
    ...(activeConfig.config.gateway.restartTool ? [createRestartTool(runnable, (id) => instances.restart(id))] : []),
  ];
  let ownTools = makeOwnTools();
  const poolNow = (): Omit<PoolChange, 'replaced'> => ({
    servers: activeConfig.config.servers.map(({ key, child, sharing }) => ({
      key,
      sharing: child === undefined ? 'all' : sharing,
    })),
    idleStopMs: activeConfig.config.gateway.idleStopMs,
  });
  const settingsNow = (): GatewaySettings => ({
    ownTools,
    startupWaitMs: activeConfig.config.gateway.startupWaitMs,
    notice: activeConfig.notice,
  });
  const gateway = new Gateway({
    clock,
    ...poolNow(),
    ...settingsNow(),
    create: (key, id, profile) => instances.create(key, id, profile),
    profileOfAll: ALL_CLIENTS,
    seal: createSeal({ secret, onSealed }),
    hmac: createSeal(),
    onInternalError: internalErrors.onInternalError,
    onToolsListed: createToolCountWarning((advice) => logger.warn(advice)),
  });
  const apply = (changes: Pick<ConfigChanges, 'replaced'>, notice: string | undefined, hadRestartTool: boolean) => {
    const isOther = notice !== activeConfig.notice || hadRestartTool !== activeConfig.config.gateway.restartTool;
    // As they were, so that nobody is told of tools that only look new.
    if (isOther) ownTools = makeOwnTools();
    gateway.change({ ...poolNow(), replaced: new Set(changes.replaced) }, settingsNow());
  };

  let isStopped = false;
  return {
    gateway,
    platform,
    approvals,
    status: () => {
      const oldest = [...gateway.pool.keys].flatMap((key) => gateway.pool.of(key).slice(0, 1));
      const backends = new Map<string, Backend>(oldest.map((backend) => [backend.key, backend]));
      return statusOf({ backends, catalogs: gateway.catalogs });
    },
    change: (next) => {
      const { notice, config: before } = activeConfig;
      const changes = compareConfigs(instances.completed(before), instances.completed(next));
      const isOther = isChange(changes) || notice !== undefined;
      activeConfig.accept(next, isOther);
      // Before anything that is made with them can be logged.
      secrets.know(next.servers.flatMap(secretsOf));
      waiting.limitTo(next.gateway.maxQueued);
      partialFrames.limitTo(next.gateway.maxPartialBytes);
      instances.change(next, changes.adjusted);
      if (isOther) apply(changes, notice, before.gateway.restartTool);
      return { ...changes, isOther, needsRestart: activeConfig.needsRestart };
    },
    refuse: (report) => {
      const { notice, config: before } = activeConfig;
      const isNews = activeConfig.refuse(report);
      if (activeConfig.notice !== notice) apply({ replaced: [] }, notice, before.gateway.restartTool);
      return isNews;
    },
    cachedListsShown: () => instances.cachedListsShown(),
    start: async () => {
      const { OrphanGuard } = await import('./orphan-guard.js');
      const net = new OrphanGuard({ clock, logger, runFolder });
      await instances.load(net);
      if (isStopped) return;
      orphanGuard = net;
      gateway.start();
      approvals.follow();
      void net.sweep();
    },
    stop: async (ladder) => {
      isStopped = true;
      gateway.close();
      await instances.stopAll(ladder);
      await Promise.all([orphanGuard?.close(), catalogues?.settled(), approvals.close()]);
    },
  };
}

function secretsOf({ child, references }: ServerConfig): SecretSource[] {
  const fromFile = child === undefined ? [] : [child];
  return [...fromFile, { env: references, args: [] }];
}

function isChange({ added, removed, replaced, adjusted, isReordered, gateway }: ConfigChanges): boolean {
  return [added, removed, replaced, adjusted, gateway].some((keys) => keys.length > 0) || isReordered;
}
