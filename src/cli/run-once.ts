import { constants } from 'node:os';
import { type Composition, compose } from '../app/compose.js';
import { EXIT } from '../app/exit-codes.js';
import { type GlobalOptions, openLog } from '../app/global-options.js';
import { LocalClient } from '../app/local-client.js';
import { readConfig } from '../app/read-config.js';
import { FINAL_LADDER, runToEnd } from '../app/run-to-end.js';
import { UsageError } from '../app/usage-error.js';
import { approvalPlaces, packageFolders, runFolder } from '../app/user-files.js';
import type { Config, ServerConfig } from '../config/config.js';
import { suggest } from '../config/suggest.js';
import { FirstStarts } from './first-starts.js';
import { guardOutput, ProgressLine, tell } from './output.js';
import { StartProgress } from './start-progress.js';

/** What a command that looks at servers or calls one has to work with; every server is ready or has failed. */
export interface Once {
  readonly config: Config;
  readonly composition: Composition;
  readonly client: LocalClient;
  readonly starts: FirstStarts;
  readonly progressLine: ProgressLine;
  /** Aborted when a signal comes. */
  readonly ending: AbortSignal;
}

/**
 * Starts servers for one command: each is tried once, `work` is done when all are ready or have failed, and then all
 * are ended. `choose` says which ones to start. For a review, tools that nobody has approved yet stay so.
 */
export async function runOnce(
  settings: GlobalOptions,
  choose: (config: Config) => readonly ServerConfig[],
  work: (once: Once) => Promise<number>,
  { isReview = false } = {},
): Promise<number> {
  let outputFault: Error | undefined;
  guardOutput((error) => {
    outputFault ??= error;
  });
  const { logger, secrets } = openLog(settings);
  // What is wrong with a server is said in words; a log is for those who ask for one.
  const isLogWanted = settings.verbosity > 0 || settings.logFile !== undefined;
  if (!isLogWanted) logger.level = 'fatal';
  const whole = await readConfig(settings);
  for (const warning of whole.warnings) tell(warning);
  const config = { ...whole, servers: choose(whole).map(triedOnce) };

  const progressLine = new ProgressLine(process.stderr);
  const keys = config.servers.flatMap(({ key, child }) => (child === undefined ? [] : [key]));
  const progress = new StartProgress(progressLine, keys);
  const starts = new FirstStarts({
    keys,
    now: () => performance.now(),
    onSettled: (pending) => progress.remaining(pending),
  });
  const composition = compose({
    config,
    logger,
    secrets,
    environment: process.env,
    runFolder: runFolder(),
    approvals: approvalPlaces(isReview ? 'review' : 'once'),
    packages: packageFolders(),
    onChange: (key, snapshot) => {
      starts.moved(key, snapshot);
      progress.moved(key, snapshot);
    },
  });

  const code = await runToEnd({
    composition,
    logger,
    onSignal: (signal) => 128 + constants.signals[signal],
    isOutputAwaited: true,
    work: async (ending) => {
      const client = await LocalClient.open(composition);
      ending.addEventListener('abort', () => {
        progress.end();
        client.close();
      });
      progress.remaining(keys);
      await composition.start();
      await starts.settled;
      progress.end();
      // Children that are being ended settle too.
      ending.throwIfAborted();
      return await work({ config, composition, client, starts, progressLine, ending });
    },
  });
  if (outputFault === undefined) return code;
  tell(`trunkline: stdout cannot be written: ${outputFault.message}`);
  return EXIT.failed;
}

/** The servers of these names, all of them if there are none. */
export function chooseServers({ servers }: Config, names: readonly string[]): readonly ServerConfig[] {
  const keys = servers.map(({ key }) => key);
  for (const name of names) {
    if (keys.includes(name)) continue;
    const nearest = suggest(name, keys);
    const hint = nearest === undefined ? `there are: ${keys.join(', ')}` : `did you mean \`${nearest}\`?`;
    throw new UsageError(`there is no server \`${name}\` in the configuration`, hint);
  }
  return names.length === 0 ? servers : servers.filter(({ key }) => names.includes(key));
}

/** A failure is final, and a server that failed is given no longer to go than those that are ended at the end. */
export function triedOnce(server: ServerConfig): ServerConfig {
  if (server.child === undefined) return server;
  const { timeouts, restart } = server.child;
  const { termAfterMs, killAfterMs } = FINAL_LADDER;
  const hasty = { ...timeouts, stopGraceMs: termAfterMs, killAfterMs: killAfterMs - termAfterMs };
  const child = { ...server.child, timeouts: hasty, restart: { ...restart, budget: 1 } };
  return { ...server, child, start: 'eager', idleStopMs: 0 };
}
