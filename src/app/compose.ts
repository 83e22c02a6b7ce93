import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  type Config,
  type ConfigChanges,
  compareConfigs,
  isChange,
  isInView,
  variantOf,
} from '../config/resolve/config.js';
import type { SoleServers } from '../extras/cluster/sole-servers.js';
import type { ClusterStore } from '../extras/cluster/store.js';
import type { LargeResults } from '../extras/large-results/large-results.js';
import type { ClusterFacts } from '../extras/metrics/exposition.js';
import { Metrics } from '../extras/metrics/metrics.js';
import type { Tracing } from '../extras/tracing/tracing.js';
import { CallFeed } from '../gateway/call-feed.js';
import { Gateway, type GatewaySettings } from '../gateway/gateway.js';
import type { Backend } from '../gateway/registry/backend.js';
import type { PoolChange } from '../gateway/registry/backend-pool.js';
import type { OwnTool, VisibleBackends } from '../gateway/routing/own-tool.js';
import { type EventSource, HELD_MS } from '../host/observe/events/events.js';
import type { Logger } from '../host/observe/logger.js';
import { KnownSecrets } from '../host/observe/redact.js';
import { backgroundClock, watchEventLoop } from '../host/observe/system-clock.js';
import type { OutputLine } from '../hub/control.js';
import type { StopLadder } from '../spec/launch.js';
import { programOf } from '../spec/server-spec.js';
import { type ApprovalFolders, Approvals } from '../state/approvals.js';
import type { CatalogueStore } from '../state/catalogue-cache.js';
import { createSeals, type SharedKeys } from '../state/seal.js';
import { createToolCountWarning } from '../status/status-advice.js';
import type { ServiceFacts, StatusFacts } from '../status/status-facts.js';
import { createRestartTool, createStatusTool, loadStatus } from '../status/status-tools.js';
import { type HistoryReport, UsageHistory } from '../status/usage-history.js';
import { VERSION } from '../version.js';
import { SharedLimit } from '../wire/io/shared-limit.js';
import { quotedPath } from '../wire/json/printable.js';
import type { ClientProfile } from '../wire/mcp/handshake.js';
import { ActiveConfig, secretSourcesOf } from './active-config.js';
import type { ConfinementOptions } from './confined-servers.js';
import { createPlatform, LOCAL_USER, type Platform } from './platform.js';
import type { ServerProcesses, ServerProcessesOptions } from './server-processes.js';
import { SupervisedBackends, type SupervisedBackendsOptions } from './supervised-backends.js';

export interface ComposeOptions {
  readonly config: Config;
  /** Code that the configuration needs. */
  readonly code?: OptionalCode;
  readonly logger: Logger;
  /** Receives the secrets of the configuration; shared with the logger. */
  readonly secrets?: KnownSecrets;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Folder of the run files, in which the next gateway finds the processes that a killed gateway has left behind. */
  readonly runFolder: string;
  readonly approvals: ApprovalFolders;
  /** Where missing packages are installed; nothing is installed when absent. */
  readonly packages?: SupervisedBackendsOptions['packages'];
  /** Shared with a transport that is already open. */
  readonly platform?: Platform;
  /** Key that signs task ids. With the same key after a restart, task ids stay valid. */
  readonly secret?: string;
  /** Keys that several gateways share. They replace the secret and the random key for cursors. */
  readonly sharedKeys?: SharedKeys | undefined;
  /** The store of the cluster if this process is a member. */
  readonly clusterStore?: ClusterStore | undefined;
  /** For servers that a test plays in memory. */
  readonly openStdio?: ServerProcessesOptions['openStdio'];
  /** Called when the secret is first used. */
  readonly onSealed?: () => void;
  /** Catalogues of earlier runs; nothing is cached when absent. */
  readonly catalogues?: CatalogueStore | undefined;
  /** A trial of confined servers, which finds out what they need. */
  readonly trial?: ConfinementOptions['trial'];
  /** The view of the client, if there is only one. Servers outside of the view do not start. */
  readonly onlyView?: string | undefined;
  /** Each client has its own connections, as over HTTP. */
  readonly hasManyConnections?: boolean;
  /** Clients over HTTP belong to different users, who must not learn of each other. */
  readonly hasUsers?: boolean;
  /** The report about a configuration file that is rejected as a whole. */
  readonly configFault?: string;
  /** How the clients are served, for the status. `undefined` if the status says nothing about it. */
  readonly service?: () => ServiceFacts | undefined;
  /** The cluster of this gateway, for the metrics. `undefined` if the gateway serves alone. */
  readonly cluster?: () => ClusterFacts | undefined;
}

/** Code that only some configurations need. */
export interface OptionalCode {
  readonly LargeResults?: typeof LargeResults;
  readonly Tracing?: typeof Tracing;
}

/** Loads the code that only some configurations or environments need, if these need it. */
export async function codeFor({ servers, gateway }: Config, environment = process.env): Promise<OptionalCode> {
  const limits = [...servers, ...gateway.views].flatMap(({ results }) => [results?.maxBytes, results?.maxBinaryBytes]);
  const cutsResults = limits.some((limit = 0) => limit > 0);
  const traces = gateway.tracing !== undefined || Object.keys(environment).some((name) => name.startsWith('OTEL_'));
  const [ofResults, ofTraces] = await Promise.all([
    cutsResults ? import('../extras/large-results/large-results.js') : undefined,
    traces ? import('../extras/tracing/tracing.js') : undefined,
  ]);
  return { ...ofResults, ...ofTraces };
}

/** Client profile for a server process that all clients share. It declares every request that the gateway can route to a client. */
const ALL_CLIENTS: ClientProfile = {
  clientInfo: { name: 'trunkline', version: VERSION },
  capabilities: { sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } },
};

/** Creates the gateway and connects it with processes, clock and log: the composition root. */
export function compose(options: ComposeOptions): Composition {
  const {
    config,
    logger,
    environment,
    runFolder,
    packages,
    configFault,
    service = () => undefined,
    cluster = () => undefined,
    secrets = new KnownSecrets(),
    hasManyConnections = false,
    hasUsers = false,
    catalogues,
    platform = createPlatform(),
  } = options;
  const { clock, events, unfinishedLines, internalErrors } = platform;
  const eventLoop = watchEventLoop(backgroundClock, HELD_MS, (ms) => events.emit({ kind: 'loop.held', ms }));
  unfinishedLines.limitTo(config.gateway.maxPartialBytes);
  const waiting = new SharedLimit(config.gateway.maxQueued);
  logEvents(events, logger);
  secrets.know(config.servers.flatMap(secretSourcesOf));
  const startedAt = clock.now();
  const notices = new Map<string, string>();
  let processes: ServerProcesses | undefined;
  let soleServers: SoleServers | undefined;
  const { redact } = secrets;
  const seals = createSeals(options);
  const largeResultsOf = ({ LargeResults }: OptionalCode = {}) =>
    LargeResults && new LargeResults(clock, seals.runSeal);
  let results = largeResultsOf(options.code);
  const approvals = new Approvals({
    folders: options.approvals,
    clock,
    logger,
    onChange: (key) => instances.approvalsChanged(key),
  });
  const activeConfig = new ActiveConfig({
    ...{ clock, config, approvals, logger },
    fault: configFault,
    servesHttp: hasManyConnections,
  });
  const instances: SupervisedBackends = new SupervisedBackends({
    config,
    activeConfig,
    platform,
    logger,
    secrets,
    waiting,
    environment,
    ...(packages && { packages }),
    catalogues,
    servesHttp: hasManyConnections,
    hasUsers,
  });

  const statusOf = (visible: VisibleBackends): StatusFacts => {
    const { principal } = visible;
    const isOfUser = hasUsers && principal !== undefined && principal !== LOCAL_USER;
    return isOfUser ? factsForUser(allFacts(visible), principal) : allFacts(visible);
  };
  const allFacts = ({ backends, ...visible }: VisibleBackends): StatusFacts => ({
    ...visible,
    now: clock.now(),
    startedAt,
    version: VERSION,
    config: activeConfig.facts,
    service: service(),
    tracing: tracing?.facts,
    notices: [...notices.values()],
    redact,
    waiting,
    partialFrames: unfinishedLines,
    requestBodies: platform.requestBodies,
    keptResults: results?.kept,
    internalErrorCount: internalErrors.count,
    eventLoop,
    usageOf: (pid) => processes?.resources.readingOf(pid),
    canRestart: activeConfig.config.gateway.restartTool,
    restartCommand: (server) =>
      `trunkline restart ${server} --config ${quotedPath(activeConfig.config.file, process.platform)}`,
    servers: [...backends.values()].map((backend) => ({
      backend,
      ...instances.factsOf(backend),
      instances: gateway.pool.of(backend.key).map((each) => {
        const { lifecycle, problem, isPerUser } = instances.factsOf(each);
        return { backend: each, lifecycle, problem, isPerUser, isUnclaimed: gateway.pool.isUnclaimed(each) };
      }),
    })),
  });
  const runnable = ({ backends }: VisibleBackends) =>
    [...backends.values()].flatMap(({ key, id }) => (instances.canRun(id) ? [key] : []));
  const makeOwnTools = (): OwnTool[] => [
    createStatusTool(statusOf, {
      notice: activeConfig.notice,
      readUsage: async (pid) => processes?.resources.refresh(pid),
    }),
    ...(activeConfig.config.gateway.restartTool ? [createRestartTool(runnable, (id) => instances.restart(id))] : []),
    ...(results === undefined ? [] : [results.tool]),
  ];
  let ownTools = makeOwnTools();
  const calls = new CallFeed(clock, internalErrors.onInternalError);
  const tracingOf = ({ Tracing }: OptionalCode = {}) =>
    Tracing && new Tracing({ calls, secrets, logger, env: environment, now: () => clock.now(), scan: platform.scan });
  let tracing = tracingOf(options.code);
  const makeViews = ({ views, clientViews }: Config['gateway']) => ({ views, clients: clientViews });
  let views = makeViews(config.gateway);
  const poolNow = (): Omit<PoolChange, 'replaced' | 'retired'> => ({
    servers: activeConfig.config.servers.map((server) => ({
      key: server.key,
      sharing: activeConfig.sharingOf(server).sharing,
      isSessionless: () => instances.isKnownModern(server),
      isMisconfigured: server.spec === undefined,
      waitsForClient: !isInView(activeConfig.config, server.key, options.onlyView),
      variantOf: (origin) => variantOf(server, origin),
    })),
    idleStopMs: activeConfig.config.gateway.idleStopMs,
  });
  const settingsNow = (): GatewaySettings => ({
    ownTools,
    results,
    startupWaitMs: activeConfig.config.gateway.startupWaitMs,
    notice: activeConfig.notice,
    views,
    mode: activeConfig.config.gateway.mode,
    maxInstructionsBytes: activeConfig.config.gateway.maxInstructionsBytes,
  });
  const gateway = new Gateway({
    clock,
    ...poolNow(),
    ...settingsNow(),
    create: (...which) => instances.create(...which),
    profileOfAll: ALL_CLIENTS,
    ...seals,
    onInternalError: internalErrors.onInternalError,
    events,
    calls,
  });
  const metrics = new Metrics(gateway, events);
  metrics.hasTools = config.gateway.metrics.tools;
  calls.observe(metrics);
  const apply = (changes: Pick<PoolChange, 'replaced' | 'retired'>, notice: string | undefined, before: Config) => {
    const isOther = notice !== activeConfig.notice || !offersSameTools(before, activeConfig.config);
    // Unchanged tools stay the same objects, because clients are notified of every new list.
    if (isOther) ownTools = makeOwnTools();
    gateway.change({ ...poolNow(), ...changes }, settingsNow());
  };

  const restart = (key: string): boolean => {
    const running = gateway.pool.of(key).filter((backend) => instances.factsOf(backend).lifecycle !== undefined);
    for (const { id } of running) instances.restart(id);
    return running.length > 0;
  };
  const status = () => {
    const backends = new Map<string, Backend>(gateway.pool.oldest.map((backend) => [backend.key, backend]));
    const keys = activeConfig.config.servers.map(({ key }) => key);
    const withoutInstance = keys.filter((key) => !backends.has(key));
    return { ...statusOf({ backends, catalogs: gateway.catalogs }), withoutInstance };
  };
  const processesNow = () =>
    [...gateway.pool.keys].flatMap((server) =>
      gateway.pool.of(server).flatMap((backend) => {
        const pid = instances.factsOf(backend).lifecycle?.pid;
        return pid === undefined ? [] : [{ server, pid }];
      }),
    );
  let history: UsageHistory | undefined;
  const beginHistory = () => {
    const begun = new UsageHistory({
      now: Date.now,
      schedule: backgroundClock.schedule,
      processes: processesNow,
      readUsage: async () => await processes?.resources.readAll({ countsSharedOnce: true }),
    });
    calls.observe(begun);
    events.subscribe('server.changed', () => begun.processesChanged());
    return begun;
  };
  let exposition: Promise<() => Promise<string>> | undefined;
  let isStopped = false;
  return {
    gateway,
    seals,
    platform,
    get config() {
      return activeConfig.config;
    },
    approvals,
    secrets,
    calls,
    tracing: {
      apply: async (applied) => await tracing?.apply(applied),
      close: async () => await tracing?.close(),
    },
    notices,
    status,
    readMetrics: async () => {
      exposition ??= import('../extras/metrics/exposition.js').then(({ createExposition }) =>
        createExposition({
          ...{ metrics, gateway, status, cluster },
          readAllUsage: async () => (await processes?.resources.readAll()) ?? new Map(),
        }),
      );
      return await (await exposition)();
    },
    readUsage: async () => await processes?.resources.refresh(...processesNow().map(({ pid }) => pid)),
    readHistory: () => {
      history ??= beginHistory();
      return history.report(gateway.pool.keys);
    },
    outputOf: (key) => instances.outputOf(key),
    restart,
    change: (next, code) => {
      const { notice, config: before } = activeConfig;
      results ??= largeResultsOf(code);
      tracing ??= tracingOf(code);
      const ofInstances = instances.changesTo(next);
      const changes = compareConfigs(instances.completed(before), instances.completed(next), ofInstances);
      const isOther = isChange(changes) || notice !== undefined;
      activeConfig.accept(next, isOther);
      // Secrets must be known before anything about the new servers is logged.
      secrets.know(next.servers.flatMap(secretSourcesOf));
      waiting.limitTo(next.gateway.maxQueued);
      metrics.hasTools = next.gateway.metrics.tools;
      unfinishedLines.limitTo(next.gateway.maxPartialBytes);
      instances.change(next, ofInstances);
      processes?.resources.limitsChanged();
      const retired = ofInstances.flatMap(({ id, change }) => (change === 'replaced' ? [id] : []));
      const replaced = { replaced: new Set(changes.replaced), retired: new Set(retired) };
      // Unchanged views stay the same object, so that the lists of their clients stay, too.
      if (changes.gateway.some((name) => name === 'views' || name === 'clientViews')) views = makeViews(next.gateway);
      if (isOther) apply(replaced, notice, before);
      events.emit({ kind: 'config.read' });
      return { ...changes, isOther, needsRestart: activeConfig.needsRestart };
    },
    refuse: (report) => {
      const { notice, config: before } = activeConfig;
      const isNews = activeConfig.refuse(report);
      if (activeConfig.notice !== notice) apply(NOTHING_REPLACED, notice, before);
      events.emit({ kind: 'config.read' });
      return isNews;
    },
    placeSoleServers: (placing) => {
      soleServers = placing;
      placing.isConfigured = (key) => activeConfig.config.servers.some((server) => programOf(server)?.soleKey === key);
    },
    cachedListsShown: () => instances.cachedListsShown((backend) => !gateway.pool.isUnclaimed(backend)),
    start: async () => {
      const [{ ServerProcesses }] = await Promise.all([import('./server-processes.js'), loadStatus()]);
      const { targets } = instances;
      processes = new ServerProcesses({
        platform,
        logger,
        secrets,
        environment,
        runFolder,
        hasManyConnections,
        targets,
        openVault: async () => {
          const { openVault } = await import('./open-stores.js');
          return await openVault(config, options.clusterStore);
        },
        confinement: { config: () => activeConfig.config, ...(options.trial && { trial: options.trial }) },
        onLoginChange: restart,
        soleServers,
        openStdio: options.openStdio,
      });
      instances.startWith(processes);
      // One turn reads a call that came meanwhile, so that its server starts before the others.
      await nextTurn();
      if (isStopped) return;
      gateway.start();
      approvals.follow();
      processes.sweep();
    },
    stop: async (ladder) => {
      isStopped = true;
      eventLoop.close();
      history?.close();
      gateway.close();
      await instances.stopAll(ladder);
      await Promise.all([soleServers?.close(), processes?.close(), catalogues?.settled(), approvals.close()]);
    },
  };
}

/** Whether clients get the same tools of Trunkline's own with both configurations. */
function offersSameTools(before: Config, after: Config): boolean {
  const [one, other] = [before, after].map(({ servers, gateway }) => ({
    restartTool: gateway.restartTool,
    limits: [
      ...servers.map(({ key, results }) => [key, results]),
      ...gateway.views.map(({ name, results }) => [name, results]),
    ],
  }));
  return isDeepStrictEqual(one, other);
}

/**
 * The facts that a user may know: about the user's own processes, about no other user, and about the machine only what
 * explains a failure. The output of a process for all users may be about any of them.
 */
function factsForUser(facts: StatusFacts, principal: string): StatusFacts {
  const isOwn = ({ clients }: Backend) => [...clients].some((client) => client.principal === principal);
  return {
    ...facts,
    config: { ...facts.config, file: undefined },
    restartCommand: undefined,
    keptResults: undefined,
    ...(facts.service?.kind === 'http' && { service: { kind: 'http', refusedNames: [] } }),
    servers: facts.servers.map((server) => ({
      ...server,
      ...(server.sharing?.sharing === 'all' && {
        ...{ logLines: [], cause: [] },
        ...(server.sandboxRemarks && { sandboxRemarks: [] }),
      }),
      instances: server.instances.filter(({ backend }) => isOwn(backend)),
    })),
  };
}

const NOTHING_REPLACED = { replaced: new Set<string>(), retired: new Set<string>() };

/** Logs the events of the gateway. `StateLog` logs the states of servers, because their output belongs into the record. */
function logEvents(events: EventSource, logger: Logger): void {
  events.subscribe('internal.error', ({ error }) => {
    logger.error({ err: error }, 'internal error: one request failed; please report this bug');
  });
  const warnOfToolCount = createToolCountWarning((advice) => logger.warn(advice));
  events.subscribe('lists.merged', ({ tools, only }) => {
    if (only === undefined) warnOfToolCount(tools);
  });
  events.subscribe('loop.held', ({ ms }) => logger.warn({ ms }, 'one piece of work held up all servers and clients'));
  events.subscribe('client.connected', ({ kind, fault, ...client }) => {
    logger.info(client, 'client connected');
    if (fault !== undefined) logger.error({ name: client.name }, fault);
  });
  events.subscribe('client.left', ({ kind, fault, ...client }) => logger.info(client, 'client left'));
}

/** The running gateway, for the transports that open for clients. */
export interface Composition {
  readonly gateway: Gateway;
  /** The name of this process, and keys for what outlives the process. */
  readonly seals: Pick<ReturnType<typeof createSeals>, 'instance' | 'keysFor'>;
  readonly platform: Platform;
  /** The active configuration. */
  readonly config: Config;
  readonly approvals: Pick<Approvals, 'of'>;
  /** Finds the known secrets in recorded messages. */
  readonly secrets: Pick<KnownSecrets, 'find' | 'redact'>;
  /** The calls of all clients, for the call log. */
  readonly calls: CallFeed;
  readonly tracing: Pick<Tracing, 'apply' | 'close'>;
  /** Sentences to the user about Trunkline itself, for the status, by subject. */
  readonly notices: Map<string, string>;
  /** Resolves when the cached catalogues are listed to the clients. */
  cachedListsShown(): Promise<void>;
  /** Sets what decides where servers run that run on one gateway of a cluster only. Must be called before `start`. */
  placeSoleServers(placing: SoleServers): void;
  /** Loads the code that starts processes, and starts every server. */
  start(): Promise<void>;
  status(): StatusFacts;
  /** Measures memory and processes of all servers, for the next status. */
  readUsage(): Promise<void>;
  /** Usage of all servers in the last hour. It is kept from the first call on, because only gateways with pages need it. */
  readHistory(): HistoryReport;
  /** Reads all metrics, as text for Prometheus. */
  readMetrics(): Promise<string>;
  /** The last output of all processes of a server. */
  outputOf(key: string): readonly OutputLine[];
  /** Restarts all processes of a server. Returns false if the server has none. */
  restart(key: string): boolean;
  /** Applies another configuration, with the code that it needs. Unchanged servers keep running. */
  change(config: Config, code?: OptionalCode): Changed;
  /** Reports a file with mistakes and changes nothing else. Returns false if the last report was the same. */
  refuse(report: string): boolean;
  /** Stops all servers. Resolves when no process is left. A second call can shorten the times of `ladder`. */
  stop(ladder: StopLadder): Promise<void>;
}

export interface Changed extends ConfigChanges {
  /** Whether anything is different. */
  readonly isOther: boolean;
  /** Changed settings that take effect when Trunkline is restarted. */
  readonly needsRestart: readonly string[];
}
