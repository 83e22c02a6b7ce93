import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ConfigError } from '../config/file/config-error.js';
import type { ConfigLocation } from '../config/file/find-config.js';
import type { Config, Origin } from '../config/resolve/config.js';
import { emptyConfig } from '../config/resolve/resolve-config.js';
import { EXIT } from '../errors/usage-error.js';
import type { PendingGateway } from '../gateway/pending-gateway.js';
import type { ServiceFacts } from '../gateway/status/status-facts.js';
import type { Logger } from '../observe/logger.js';
import { Observers } from '../record/observers.js';
import { CacheFolder } from '../state/cache-folder.js';
import { CatalogueCache } from '../state/catalogue-cache.js';
import { readSealKey, readSealSecret, type SealSecret } from '../state/keys.js';
import { keepInstructions, MAX_INSTRUCTIONS_FILE_BYTES } from '../state/known-instructions.js';
import {
  approvalFolders,
  catalogueFolder,
  checkedFolder,
  instructionsFolder,
  packageFolders,
  runFolder,
} from '../state/user-files.js';
import { type Composition, compose } from './compose.js';
import type { Platform } from './platform.js';
import {
  ConfigCache,
  type GlobalOptions,
  logConfig,
  openLog,
  readConfigFile,
  reloadOnChange,
  requireView,
} from './read-config.js';
import { runToEnd } from './run-to-end.js';
import type { HttpSettings } from './serve-http.js';
import type { DrainOptions } from './stdio-client.js';

/** Objects set up before the configuration is read, and the settings of the HTTP transport, which opens after that. */
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
  const { logger, secrets } = openLog(settings);
  const { local } = clientSide;
  local?.logTo(logger);
  const service = local?.service();
  if (service?.kind === 'alone') logger.warn({ because: service.because }, NOT_SHARED);
  const caches = openCaches(await readSealSecret(logger), clientSide.platform, logger);
  const { config, fault } = await usableConfig(clientSide.location, logger, caches.checkedFiles, local);
  if (fault === undefined) logConfig(config, logger);
  // A client that is there learns it from the instructions and the status.
  if (local?.isAttached !== true) requireView(config, settings.view);
  // The client has left, so no server is needed.
  if (local?.isGone() === true) return EXIT.ok;
  const { sealKeyFile } = config.gateway;
  const sharedKey = sealKeyFile === undefined ? undefined : await readSealKey(sealKeyFile);
  const composition = compose({
    config,
    logger,
    secrets,
    platform: clientSide.platform,
    environment: process.env,
    hasManyConnections: clientSide.http !== undefined,
    onlyView: clientSide.http === undefined ? settings.view : undefined,
    runFolder: runFolder(),
    approvals: approvalFolders('serve'),
    packages: packageFolders(),
    ...caches,
    sharedKey,
    service: () => (clientSide.http === undefined ? local?.service() : { kind: 'http' }),
    ...(fault === undefined ? {} : { configFault: fault }),
  });
  local?.configured(config);
  const observers = new Observers({ composition, settings, logger });
  await observers.apply(config);
  const limits = config.gateway.http;
  let http: { close(): Promise<void> } | undefined;
  if (clientSide.http !== undefined) {
    // Loaded on demand: the HTTP server is most of the code, and most clients do not need it.
    const { serveHttp } = await import('./serve-http.js');
    http = await serveHttp({ settings: clientSide.http, limits, composition, logger });
  }
  let unfollow = async () => {};
  return await runToEnd({
    composition,
    logger,
    // A signal is the normal way to end a server.
    onSignal: () => EXIT.ok,
    isOutputAwaited: false,
    ignoresHangup: local?.ignoresHangup === true,
    onListening: clientSide.onListening,
    close: async () => {
      await Promise.all([http?.close(), unfollow(), caches.instructions?.settled(), observers.close()]);
    },
    work: async (ending) => {
      const { gateway } = clientSide;
      const { instructions: folder, secret } = caches;
      const hasClient = gateway.isAwaited;
      gateway.become(composition.gateway);
      local?.answering?.();
      if (local !== undefined && folder !== undefined)
        keepInstructions({ composition, gateway, client: local, folder, secret, ending });
      if (hasClient) await cachedAnswersWritten(composition);
      if (local?.isGone() === true) return EXIT.ok;
      await composition.start();
      const { checkedFiles } = caches;
      const { origin } = local ?? {};
      const onApplied = (applied: Config) => {
        local?.reloaded?.(applied);
        void observers.apply(applied);
      };
      const { watch, startupWaitMs } = config.gateway;
      const reload = { settings, composition, logger, read: config, checkedFiles, onApplied };
      if (watch) unfollow = reloadOnChange({ ...reload, ...(origin && { origin }) });
      const options = { ...clientSide.platform, gateway: composition.gateway, startupWaitMs, logger, ending };
      const left = local?.served(options, composition) ?? NEVER;
      await Promise.race([left, once(ending, 'abort')]);
      return EXIT.ok;
    },
  });
}

/**
 * Writes the answers that the cached catalogues allow, before the starting servers take the processor. Waits for nothing
 * but Trunkline's own work.
 */
async function cachedAnswersWritten({ cachedListsShown }: Composition): Promise<void> {
  await cachedListsShown();
  // Requests that came meanwhile are read in the first turn of the event loop. Answers are written at the end of a turn.
  await nextTurn();
  await nextTurn();
}

const NEVER = new Promise<never>(() => {});

/**
 * Reads the configuration. When it has mistakes and a client is connected, returns an empty configuration and the report.
 *
 * A connected client can show the report to its user. A person at a terminal, or a service manager, needs the failure.
 */
async function usableConfig(
  location: ConfigLocation,
  logger: Logger,
  checkedFiles: ConfigCache | undefined,
  local: LocalClients | undefined,
): Promise<{ readonly config: Config; readonly fault?: string }> {
  try {
    return { config: await readConfigFile(location.file, checkedFiles, local?.origin) };
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
  /** Absent when the secret cannot be stored: no later run could read what is cached. */
  readonly catalogues?: CatalogueCache;
  readonly checkedFiles?: ConfigCache;
  readonly instructions?: CacheFolder;
}

/** The size limit of a list. */
const MAX_CATALOGUE_BYTES = 4 * 1024 * 1024;
/** Enough for ten clients with long lists of servers. */
const MAX_CATALOGUES = 256;
const MAX_CONFIG_BYTES = 4 * 1024 * 1024;
const MAX_CONFIGS = 16;
/** Some kinds of clients for each configuration. */
const MAX_INSTRUCTIONS = 64;

function openCaches({ secret, isLasting, onSealed }: SealSecret, { scan, clock }: Platform, logger: Logger): Caches {
  // Without the secret, no later run can find or decrypt the files.
  if (!isLasting) return { secret, onSealed };
  const onIgnored = (file: string, reason: string) => logger.debug({ file, reason }, 'a cached file is ignored');
  const onFault = (err: unknown) =>
    logger.warn({ err }, 'the cache cannot be written, so the next start will be slower');
  const common = { onIgnored, onFault };
  const catalogues = new CacheFolder({
    ...common,
    clock,
    folder: catalogueFolder(),
    maxFileBytes: MAX_CATALOGUE_BYTES,
    maxFiles: MAX_CATALOGUES,
  });
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
    catalogues: new CatalogueCache({ folder: catalogues, secret, onCached: onSealed, onIgnored, scan }),
    checkedFiles: new ConfigCache({ folder: checked, secret, onCached: onSealed }),
  };
}

/** The clients on this machine: the one on stdin, or those of the hub. */
export interface LocalClients {
  /** Whether the clients come from terminals that this process outlives. */
  readonly ignoresHangup?: boolean;
  /** Whether a client is there that can show its user what is wrong with the configuration. */
  readonly isAttached: boolean;
  /** Whether no client is left that needs a server, and none can come. */
  readonly isGone: () => boolean;
  /** Resolves when no client can send another request. */
  readonly inputEnded: Promise<void>;
  /** Where the client runs that the first servers are started for. Absent if its environment is that of this process. */
  readonly origin?: Origin;
  /** Called with the log before anything is logged. */
  readonly logTo: (logger: Logger) => void;
  /** How the clients are served, for the status. `undefined` if there is nothing to say. */
  readonly service: () => ServiceFacts | undefined;
  /** Called once the configuration is known. */
  readonly configured: (config: Config) => void;
  /** Called when clients get answers from now on: first what is cached, and then what the servers say. */
  readonly answering?: () => void;
  /** Called with each configuration that was applied later. */
  readonly reloaded?: (config: Config) => void;
  /** Resolves when no client is left and none can come. */
  readonly served: (options: DrainOptions, composition: Composition) => Promise<void>;
}
