import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ConfigError } from '../config/file/config-error.js';
import type { ConfigLocation } from '../config/file/find-config.js';
import type { Config } from '../config/resolve/config.js';
import { emptyConfig } from '../config/resolve/resolve-config.js';
import { asking } from '../extras/asking/index.js';
import { exchange } from '../extras/exchange/index.js';
import type { CreateFeature } from '../extras/feature.js';
import { interceptors } from '../extras/interceptors/index.js';
import { largeResults } from '../extras/large-results/index.js';
import { metrics } from '../extras/metrics/index.js';
import { recording } from '../extras/record/index.js';
import { tracing } from '../extras/tracing/index.js';
import type { PendingGateway } from '../gateway/pending-gateway.js';
import { EXIT } from '../host/errors/usage-error.js';
import { type Logger, RecentLog } from '../host/observe/logger.js';
import { CacheFolder } from '../state/cache-folder.js';
import { type CatalogueCache, openCatalogues } from '../state/catalogue-cache.js';
import { ConfigCache } from '../state/config-cache.js';
import { keepInstructions, MAX_INSTRUCTIONS_FILE_BYTES } from '../state/known-instructions.js';
import { createSeals, readSealKeys, readSealSecret, type SealSecret } from '../state/seal.js';
import { approvalFolders, checkedFolder, instructionsFolder, packageFolders, runFolder } from '../state/user-files.js';
import { GatewayProcess } from './gateway-process.js';
import { type GlobalOptions, openLog } from './global-options.js';
import type { LocalClients } from './local-clients.js';
import type { Platform } from './platform.js';
import { logConfig, readConfigFile, requireView } from './read-config.js';
import type { LayerScope } from './read-layers.js';
import { runToEnd } from './run-to-end.js';
import type { HttpSettings, ServedHttp, ServeHttpOptions } from './serve-http.js';

/** Objects that exist before the configuration is read, and the settings of the HTTP transport, which opens later. */
interface ClientSide {
  readonly platform: Platform;
  readonly location: ConfigLocation;
  readonly gateway: PendingGateway;
  /** Absent when only HTTP is served. */
  readonly local: LocalClients | undefined;
  readonly http: HttpSettings | undefined;
  /** Must be called when new signal handlers are installed. */
  readonly onListening: () => void;
}

const NOT_SHARED = 'this client does not share its servers with others';

/** Reads the configuration, starts the servers, and serves until the client leaves or a signal comes. */
export async function serveClients(settings: GlobalOptions, clientSide: ClientSide): Promise<number> {
  const startedAt = clientSide.platform.clock.now();
  const recentLog = new RecentLog();
  const { logger, secrets } = openLog(settings, recentLog);
  const { local } = clientSide;
  local?.logTo(logger);
  const service = local?.service();
  if (service?.kind === 'alone') logger.warn({ because: service.because }, NOT_SHARED);
  const caches = openCaches(await readSealSecret(logger), clientSide.platform, logger);
  // Clients over HTTP have no folder here, and cannot be told from a client on stdin that shares their gateway.
  const layers = clientSide.http === undefined ? local?.layers : undefined;
  const { config, fault } = await usableConfig(clientSide.location, logger, caches.checkedFiles, local, layers);
  if (fault === undefined) logConfig(config, logger);
  // A connected client learns of an unknown view from the instructions and the status.
  if (local?.isAttached !== true) requireView(config, settings.view);
  // The client has left, so no server is needed.
  if (local?.isGone() === true) return EXIT.ok;
  const { sealKeyFile, secretFolder } = config.gateway;
  const sharedKeys = sealKeyFile === undefined ? undefined : await readSealKeys(sealKeyFile, secretFolder);
  const ofHttp = clientSide.http === undefined ? [] : await featuresOfHttp(config);
  let http: ServedHttp | undefined;
  const { catalogues, ...ofSeals } = caches;
  const isOfUsers = config.gateway.http.auth !== undefined;
  const composition = new GatewayProcess({
    config,
    configFault: fault,
    logger,
    secrets,
    platform: clientSide.platform,
    environment: process.env,
    features: [...ofHttp, ...commonFeatures(settings)],
    seals: createSeals({ ...ofSeals, sharedKeys }),
    runFolder: runFolder(),
    approvals: approvalFolders('serve'),
    packages: packageFolders(),
    catalogues,
    ...(clientSide.http === undefined ? { onlyView: settings.view } : { http: isOfUsers ? 'users' : 'one user' }),
    service: () =>
      clientSide.http === undefined ? local?.service() : { kind: 'http', refusedNames: http?.refusedNames ?? [] },
  });
  local?.configured(config);
  await composition.prepared;
  const httpOptions = { http: config.gateway.http, composition, logger };
  http = clientSide.http && (await openHttp({ settings: clientSide.http, ...httpOptions }));
  const { drain } = http ?? {};
  const openControl = async () => {
    // A hub has a socket of its own.
    if (local?.service()?.kind === 'hub') return undefined;
    const { openGatewayControl } = await import('./gateway-control.js');
    const { logFile } = settings;
    return openGatewayControl({ composition, logger, http, startedAt, logFile, recentLog });
  };
  let control = clientSide.http && (await openControl());
  let unfollow = () => {};
  return await runToEnd({
    composition,
    logger,
    // A signal is the normal way to end a server.
    onSignal: () => EXIT.ok,
    isOutputAwaited: false,
    ignoresHangup: local?.ignoresHangup === true,
    // The host of a client on stdin waits only a few seconds.
    ...(drain && local === undefined && { drain: () => drain(composition.config.gateway.drainMs) }),
    onListening: clientSide.onListening,
    close: async () => {
      unfollow();
      await Promise.all([http?.close(), control?.close(), caches.instructions?.settled()]);
    },
    work: async (ending) => {
      const { gateway } = clientSide;
      const { instructions: folder } = caches;
      const hasClient = gateway.isAwaited;
      gateway.passTo(composition.gateway);
      local?.answering?.();
      if (local !== undefined && folder !== undefined)
        keepInstructions({ composition, gateway, client: local, folder, ending });
      if (hasClient) await cachedAnswersWritten(composition);
      if (local?.isGone() === true) return EXIT.ok;
      await composition.start();
      control ??= await openControl();
      control?.started();
      const { checkedFiles } = caches;
      const { origin } = local ?? {};
      const onApplied = (applied: Config) => local?.reloaded?.(applied);
      const { watch, startupWaitMs } = config.gateway;
      const reload = { settings, composition, logger, read: config, checkedFiles, layers, onApplied };
      if (watch) {
        const { reloadOnChange } = await import('./reload-config.js');
        unfollow = reloadOnChange({ ...reload, ...(origin && { origin }) });
      }
      const options = { ...clientSide.platform, gateway: composition.gateway, startupWaitMs, logger, ending };
      const left = local?.served(options, composition) ?? NEVER;
      await Promise.race([left, once(ending, 'abort')]);
      return EXIT.ok;
    },
  });
}

/** The features of every gateway, of which most do nothing until the configuration turns them on. */
export function commonFeatures(recorded?: Parameters<typeof recording>[0]): readonly CreateFeature[] {
  return [exchange, interceptors, asking, largeResults, metrics, tracing, recording(recorded)];
}

/** Loads the cluster, the logins through this gateway, and those of its users at servers, if the configuration has them. */
async function featuresOfHttp(config: Config): Promise<readonly CreateFeature[]> {
  const { cluster, http } = config.gateway;
  const found: (CreateFeature | undefined)[] = [];
  if (cluster !== undefined) found.push(await (await import('../extras/cluster/index.js')).openCluster(config));
  if (http.auth?.front !== undefined) found.push((await import('../extras/front/index.js')).front);
  if (http.auth?.jwt !== undefined) found.push((await import('../extras/user-logins/index.js')).userLogins);
  return found.filter((each) => each !== undefined);
}

/** Opens the HTTP server. Its code is loaded on demand, because it is most of the code and most clients do not need it. */
async function openHttp(options: ServeHttpOptions) {
  const { serveHttp } = await import('./serve-http.js');
  return await serveHttp(options);
}

/** Writes the answers from the cached catalogues before the starting servers take the processor. Waits for no server. */
async function cachedAnswersWritten(composition: GatewayProcess): Promise<void> {
  await composition.cachedListsShown();
  // One turn of the event loop reads the requests that came meanwhile. The next one writes their answers.
  await nextTurn();
  await nextTurn();
}

const NEVER = new Promise<never>(() => {});

/**
 * Reads the configuration. When the file has mistakes and a client is connected, returns an empty configuration and the
 * report, which the client can show to its user. Otherwise throws, for a terminal or a service manager.
 */
async function usableConfig(
  location: ConfigLocation,
  logger: Logger,
  checkedFiles: ConfigCache | undefined,
  local: LocalClients | undefined,
  layers: LayerScope | undefined,
): Promise<{ readonly config: Config; readonly fault?: string }> {
  try {
    return { config: await readConfigFile(location.file, checkedFiles, local?.origin, layers) };
  } catch (error) {
    if (!(error instanceof ConfigError) || local?.isAttached !== true) throw error;
    logger.error({ code: error.code }, error.report);
    return { config: emptyConfig(error.file), fault: error.report };
  }
}

/** The caches that earlier runs have filled, and the secret that protects them. */
interface Caches {
  readonly secret: string;
  readonly onSealed: () => void;
  /** Absent, like the other two caches, when the secret cannot be stored, because no later run could read the files. */
  readonly catalogues?: CatalogueCache;
  readonly checkedFiles?: ConfigCache;
  readonly instructions?: CacheFolder;
}

const MAX_CONFIG_BYTES = 4 * 1024 * 1024;
const MAX_CONFIGS = 16;
/** Number of cached instructions: one file for each configuration and kind of client. */
const MAX_INSTRUCTIONS = 64;

/** Opens the caches of this user. There is none if the secret cannot be stored. */
export function openCaches(
  { secret, isLasting, onSealed }: SealSecret,
  { scan, clock }: Platform,
  logger: Logger,
): Caches {
  if (!isLasting) return { secret, onSealed };
  const onIgnored = (file: string, reason: string) => logger.debug({ file, reason }, 'a cached file is ignored');
  const onFault = (err: unknown) =>
    logger.warn({ err }, 'the cache cannot be written, so the next start will be slower');
  const common = { onIgnored, onFault };
  const checked = new CacheFolder({
    ...common,
    folder: checkedFolder(),
    maxFileBytes: MAX_CONFIG_BYTES,
    maxFiles: MAX_CONFIGS,
  });
  const instructions = new CacheFolder({
    ...common,
    folder: instructionsFolder(),
    maxFileBytes: MAX_INSTRUCTIONS_FILE_BYTES,
    maxFiles: MAX_INSTRUCTIONS,
  });
  return {
    secret,
    onSealed,
    instructions,
    catalogues: openCatalogues({ ...common, secret, onCached: onSealed, scan, clock }),
    checkedFiles: new ConfigCache({ folder: checked, secret, onCached: onSealed }),
  };
}
