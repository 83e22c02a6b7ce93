import type { Config } from '../config/config.js';
import { ConfigError } from '../config/config-error.js';
import type { HttpTransport } from '../downstream/http/server.js';
import type { PendingGateway } from '../gateway/pending-gateway.js';
import type { Logger } from '../observe/logger.js';
import { type Composition, compose } from './compose.js';
import { EXIT } from './exit.js';
import { careForHeap } from './heap-care.js';
import { inTime } from './in-time.js';
import { openCaches } from './open-caches.js';
import type { Platform } from './platform.js';
import { type CheckedFiles, readConfig } from './read-config.js';
import { logConfig, reloadOnChange } from './reload-config.js';
import { runToEnd } from './run-to-end.js';
import { readSealSecret } from './seal-secret.js';
import type { StdioClient } from './serve.js';
import type { HttpSettings, ServeHttpOptions } from './serve-http.js';
import { type GlobalOptions, openLog } from './settings.js';
import { approvalPlaces, packageFolders, runFolder } from './user-files.js';

/** What is open already, and what is to be opened. */
export interface OpenFront {
  readonly platform: Platform;
  readonly gateway: PendingGateway;
  /** Absent when only HTTP is served. */
  readonly client: StdioClient | undefined;
  readonly http: HttpSettings | undefined;
  /** To be called once somebody else listens to signals. */
  readonly onListening: () => void;
}

/** Reads the configuration, starts the servers, and serves until the client leaves or a signal comes. */
export async function serveClients(settings: GlobalOptions, front: OpenFront): Promise<number> {
  careForHeap();
  const { logger, secrets } = openLog(settings);
  if (front.client !== undefined) logger.postpone();
  void front.client?.unread.then((unwrittenBytes) =>
    logger.warn({ unwrittenBytes }, 'the client on stdin does not read what it is sent: its session was closed'),
  );
  const kept = openCaches(await readSealSecret(logger), front.platform, logger);
  const isAttached = front.client !== undefined && !process.stdin.isTTY;
  const { config, fault } = await usableConfig(settings, logger, kept.checkedFiles, isAttached);
  // No server is started for nobody.
  if (front.client?.isGone() === true) return EXIT.ok;
  const composition = compose({
    config,
    logger,
    secrets,
    platform: front.platform,
    environment: process.env,
    hasManyConnections: front.http !== undefined,
    runFolder: runFolder(),
    approvals: approvalPlaces('serve'),
    packages: packageFolders(),
    ...kept,
    ...(fault === undefined ? {} : { configFault: fault }),
  });
  if (front.client !== undefined && process.stdin.isTTY) process.stderr.write(`${forSomebodyAtATerminal(config)}\n`);
  const limits = config.gateway.http;
  const http =
    front.http === undefined ? undefined : await openHttp({ settings: front.http, limits, composition, logger });
  let unfollow = async () => {};
  return await runToEnd({
    composition,
    logger,
    // To be told to end is how a server ends well.
    onSignal: () => EXIT.ok,
    isOutputAwaited: false,
    onListening: front.onListening,
    close: async () => {
      await Promise.all([http?.close(), unfollow()]);
    },
    work: async (ending) => {
      const isListExpected = front.gateway.isAwaited;
      front.gateway.become(composition.gateway);
      if (isListExpected) await firstList(front.gateway, composition);
      if (front.client?.isGone() === true) return EXIT.ok;
      logger.prepare();
      await composition.start();
      const file = config.file === '' ? undefined : config.file;
      const { checkedFiles } = kept;
      if (config.gateway.watch) unfollow = reloadOnChange({ settings, composition, logger, file, checkedFiles });
      await Promise.race([front.client?.left ?? NEVER, aborted(ending)]);
      return EXIT.ok;
    },
  });
}

/** How long the start of the servers waits for a client that is there to ask for the first list. */
const LIST_FIRST_MS = 200;

/**
 * What was kept is answered within a few milliseconds, unless somebody else takes the processor before: a dozen
 * processes that start, or what we load to start them. A list that has to wait for servers waits for nothing here.
 */
async function firstList({ listed }: PendingGateway, { cachedListsShown }: Composition): Promise<void> {
  await inTime(listed.then(cachedListsShown), LIST_FIRST_MS);
  // The answer is written at the end of the turn in which everything was there.
  await new Promise((resolve) => setImmediate(resolve));
}

const NEVER = new Promise<never>(() => {});

/** The HTTP front is most of what there is to load, and most clients come without it. */
async function openHttp(options: ServeHttpOptions): Promise<HttpTransport> {
  const { serveHttp } = await import('./serve-http.js');
  return await serveHttp(options);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/**
 * The configuration, or none and what is wrong with it.
 *
 * A client that is attached already is better served by a gateway that can say what is wrong than by none; somebody at
 * a terminal, or who starts a service, is not.
 */
async function usableConfig(
  settings: GlobalOptions,
  logger: Logger,
  checkedFiles: CheckedFiles | undefined,
  isClientAttached: boolean,
): Promise<{ config: Config; fault?: string }> {
  try {
    const config = await readConfig(settings, checkedFiles);
    logConfig(config, logger);
    return { config };
  } catch (error) {
    if (!(error instanceof ConfigError) || !isClientAttached) throw error;
    logger.error({ code: error.code }, error.report);
    const { emptyConfig } = await import('../config/empty-config.js');
    return { config: emptyConfig(error.file), fault: error.report };
  }
}

function forSomebodyAtATerminal({ file }: Config): string {
  return `Trunkline waits for an MCP client on stdin. Register the command \`trunkline --config ${file}\` with your client; \`trunkline check\` tries the servers. Ctrl-C ends it.`;
}
