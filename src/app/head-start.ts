import type { CheckedFileCache } from '../config/file/checked-file.js';
import { ConfigError } from '../config/file/config-error.js';
import type { ConfigPlace } from '../config/file/find-config.js';
import type { Config, Origin } from '../config/resolve/config.js';
import { isInView } from '../config/resolve/resolve-config.js';
import { OrphanGuard } from '../process/orphan-guard.js';
import { runFolder } from '../state/user-files.js';
import type { StopLadder } from '../supervision/launcher.js';
import type { Clock } from '../timing/clock.js';
import { HeadStart } from '../upstream/stdio/head-start.js';
import { readConfigFile } from './read-config.js';

type Log = ConstructorParameters<typeof OrphanGuard>[0]['logger'];

/** The first servers run already, while the gateway is loaded. */
export interface StartedServers extends Pick<HeadStart, 'take'> {
  /** Source of their specs. */
  readonly config: Config;
  /** Caches the checked configuration for later runs. */
  cacheIn(cache: CheckedFileCache): void;
  readonly guard: OrphanGuard;
  /** From then on, the guard logs here, also what it had to log before. */
  logTo(logger: Log): void;
  /** Ends the processes that no server has taken. */
  close(ladder?: StopLadder): Promise<void>;
}

interface StartOptions {
  readonly clock: Clock;
  readonly origin?: Origin | undefined;
  /** The view of the only client. */
  readonly view?: string | undefined;
}

/** For processes without a call of a client. */
const LADDER: StopLadder = { termAfterMs: 1_000, killAfterMs: 2_500 };

/**
 * Starts the first servers of a valid configuration. Loading the gateway takes about as long as many a server takes to
 * start, so a client waits for the longer of the two and not for both.
 *
 * Returns `undefined` if nothing was started: the gateway reads the configuration then, and reports its mistakes.
 */
export async function startServers(
  place: ConfigPlace,
  { clock, origin, view }: StartOptions,
): Promise<StartedServers | undefined> {
  // The caches of earlier runs are not loaded yet.
  let cacheIn: StartedServers['cacheIn'] = () => {};
  const uncached: CheckedFileCache = {
    find: () => undefined,
    put: (...checked) => {
      cacheIn = (cache) => cache.put(...checked);
    },
  };
  const config = await validConfig(place, uncached, origin);
  const specs = (config?.servers ?? []).flatMap(({ key, child, start, sharing }) => {
    // A server for each folder starts with the first client of the folder.
    const isLater = start !== 'eager' || sharing === 'folder' || (config !== undefined && !isInView(config, key, view));
    return child === undefined || child.missing !== undefined || isLater ? [] : [child];
  });
  if (config === undefined || specs.length === 0) return undefined;
  let logTo: (logger: Log) => void = () => {};
  const logger = new Promise<Log>((resolve) => {
    logTo = resolve;
  });
  const guard = new OrphanGuard({
    clock,
    logger: {
      warn: (...record) => void logger.then((log) => log.warn(...record)),
      debug: (...record) => void logger.then((log) => log.debug(...record)),
    },
    runFolder: runFolder(),
  });
  const started = new HeadStart({ guard, clock, environment: process.env });
  for (const spec of specs.slice(0, config.gateway.startLimit)) started.spawn(spec);
  return {
    config,
    cacheIn,
    guard,
    logTo,
    take: (spec) => started.take(spec),
    close: (ladder = LADDER) => started.close(ladder),
  };
}

async function validConfig(place: ConfigPlace, ...rest: [CheckedFileCache, Origin | undefined]) {
  try {
    return await readConfigFile(place.file, ...rest);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
