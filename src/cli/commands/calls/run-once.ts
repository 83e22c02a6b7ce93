import { constants } from 'node:os';
import { compose } from '../../../app/compose.js';
import type { Composition } from '../../../app/composition.js';
import { type GlobalOptions, openLog } from '../../../app/global-options.js';
import { requireView } from '../../../app/known-view.js';
import { LocalClient } from '../../../app/local-client.js';
import { readConfig } from '../../../app/read-config.js';
import { FINAL_LADDER, runToEnd } from '../../../app/run-to-end.js';
import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { isInView } from '../../../config/resolve/resolve-config.js';
import { UsageError } from '../../../errors/usage-error.js';
import { didYouMean, suggest } from '../../../json/suggest.js';
import { approvalPlaces, packageFolders, runFolder } from '../../../state/user-files.js';
import { tell } from '../../output.js';
import { ProgressLine } from '../../progress-line.js';
import { FirstStarts } from '../packages/first-starts.js';
import { StartProgress } from './start-progress.js';

/** The tools of a command that needs servers; every server is ready or has failed. */
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
 * Starts the chosen servers for one command, runs `work` when each of them is ready or has failed, and stops them. Failed
 * servers are not restarted. With `isReview`, the first tools of a server are not approved automatically; with `isQuiet`, the
 * warnings about the configuration are left to the caller.
 */
export async function runOnce(
  settings: GlobalOptions,
  choose: (config: Config) => readonly ServerConfig[],
  work: (once: Once) => Promise<number>,
  { isReview = false, isQuiet = false } = {},
): Promise<number> {
  const { logger, secrets } = openLog(settings);
  // Commands explain failures in plain text; log records appear only when the options ask for them.
  const isLogWanted = settings.verbosity > 0 || settings.logFile !== undefined;
  if (!isLogWanted) logger.level = 'fatal';
  const whole = await readConfig(settings);
  for (const warning of isQuiet ? [] : whole.warnings) tell(warning);
  requireView(whole, settings.view);
  const chosen = choose(whole).filter(({ key }) => isInView(whole, key, settings.view));
  const config = { ...whole, servers: chosen.map(triedOnce) };

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
  });
  composition.platform.events.subscribe('server.changed', ({ instance, snapshot }) => {
    starts.moved(instance, snapshot);
    progress.moved(instance, snapshot);
  });

  return await runToEnd({
    composition,
    logger,
    onSignal: (signal) => 128 + constants.signals[signal],
    isOutputAwaited: true,
    work: async (ending) => {
      const client = await LocalClient.open(composition, settings.view);
      ending.addEventListener('abort', () => {
        progress.end();
        client.close();
      });
      progress.remaining(keys);
      await composition.start();
      await starts.settled;
      progress.end();
      // Servers that are being stopped settle too.
      ending.throwIfAborted();
      return await work({ config, composition, client, starts, progressLine, ending });
    },
  });
}

/** The servers with these keys; all servers when there are no names. */
export function chooseServers({ servers }: Config, names: readonly string[]): readonly ServerConfig[] {
  const chosen = chooseFrom(
    servers.map(({ key }) => key),
    names,
  );
  return servers.filter(({ key }) => chosen.includes(key));
}

/** These keys; all keys when there are no names. Throws a `UsageError` for a name that is no key. */
export function chooseFrom(keys: readonly string[], names: readonly string[]): readonly string[] {
  for (const name of names) {
    if (keys.includes(name)) continue;
    const nearest = suggest(name, keys);
    const hint = nearest === undefined ? `the configuration has: ${keys.join(', ')}` : didYouMean(nearest);
    throw new UsageError(`there is no server \`${name}\` in the configuration`, hint);
  }
  return names.length === 0 ? keys : names;
}

/** A server that is started once: no restarts, no idle stop, and the short stop times of a command. */
export function triedOnce(server: ServerConfig): ServerConfig {
  if (server.child === undefined) return server;
  const { timeouts, restart } = server.child;
  const { termAfterMs, killAfterMs } = FINAL_LADDER;
  const shortened = { ...timeouts, stopGraceMs: termAfterMs, killAfterMs: killAfterMs - termAfterMs };
  const child = { ...server.child, timeouts: shortened, restart: { ...restart, budget: 1 } };
  return { ...server, child, start: 'eager', idleStopMs: 0 };
}
