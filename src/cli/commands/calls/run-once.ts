import { constants } from 'node:os';
import type { Composition } from '../../../app/compose.js';
import { compose } from '../../../app/compose.js';
import { type GlobalOptions, openLog } from '../../../app/global-options.js';
import { readConfig, requireView } from '../../../app/read-config.js';
import { FINAL_LADDER, runToEnd } from '../../../app/run-to-end.js';
import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { isInView } from '../../../config/resolve/resolve-config.js';
import { UsageError } from '../../../errors/usage-error.js';
import { hintFor } from '../../../json/suggest.js';
import { approvalPlaces, packageFolders, runFolder } from '../../../state/user-files.js';
import type { ChildSnapshot } from '../../../supervision/child-state.js';
import { LocalClient } from '../../local-client.js';
import { tell } from '../../output.js';
import { elapsed, ProgressLine } from '../../progress-line.js';

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
    const hint = hintFor(name, keys, `the configuration has: ${keys.join(', ')}`);
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

/** Shows a progress line on a terminal: how many servers have started or are done, which are pending, and for how long. */
export class StartProgress {
  readonly #line: ProgressLine;
  readonly #total: number;
  readonly #done: string;
  readonly #installing = new Map<string, { readonly shown: string; readonly since: number }>();
  readonly #timer: NodeJS.Timeout;
  readonly #since = performance.now();
  #pending: readonly string[];

  /** `done` is the word for a server that is no longer pending. */
  constructor(line: ProgressLine, keys: readonly string[], { done = 'started' } = {}) {
    this.#line = line;
    this.#done = done;
    this.#total = keys.length;
    this.#pending = keys;
    this.#timer = setInterval(() => this.#show(), 1_000);
    this.#timer.unref();
  }

  moved(key: string, { missing, installingSince }: ChildSnapshot): void {
    if (missing === undefined || installingSince === undefined) this.#installing.delete(key);
    else this.#installing.set(key, { shown: missing, since: installingSince });
    this.#show();
  }

  /** Updates the keys of the servers that are still starting. */
  remaining(pending: readonly string[]): void {
    this.#pending = pending;
    this.#show();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#pending = [];
    this.#line.clear();
  }

  #show(): void {
    if (this.#pending.length === 0) {
      this.#line.clear();
      return;
    }
    const done = this.#total - this.#pending.length;
    // Servers that need the same package wait for one installation.
    const packages = new Set([...this.#installing.values()].map(({ shown }) => shown));
    const [first] = this.#installing.values();
    const activity =
      first === undefined
        ? `waiting for ${shortened(this.#pending)}, ${elapsed(this.#since)}`
        : `installing ${shortened([...packages])}, ${elapsed(first.since)}`;
    this.#line.show(`${progressBar(done, this.#total)} ${done} of ${this.#total} ${this.#done}; ${activity}`);
  }
}

/** More names than this are counted, so that the time behind them stays on the line. */
const MAX_NAMES = 3;

function shortened(names: readonly string[]): string {
  const named = names.slice(0, MAX_NAMES).join(', ');
  return names.length > MAX_NAMES ? `${named} and ${names.length - MAX_NAMES} more` : named;
}

const BAR_WIDTH = 20;

export function progressBar(done: number, total: number): string {
  const filled = total === 0 ? BAR_WIDTH : Math.floor((BAR_WIDTH * done) / total);
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`;
}

interface FirstStart {
  spawnedAt: number | undefined;
  readyAfterMs: number | undefined;
  isSettled: boolean;
}

interface FirstStartsOptions {
  readonly keys: readonly string[];
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  /** Called when a first start has ended, with the keys of the pending ones. */
  readonly onSettled: (pending: readonly string[]) => void;
}

/** Watches the first start of each server until it is ready or has failed, and measures the time. */
export class FirstStarts {
  /** Resolves when every server is ready or has failed. */
  readonly settled: Promise<void>;
  readonly #starts: ReadonlyMap<string, FirstStart>;
  readonly #now: () => number;
  readonly #onSettled: FirstStartsOptions['onSettled'];
  #resolve = () => {};

  constructor({ keys, now, onSettled }: FirstStartsOptions) {
    this.#now = now;
    this.#onSettled = onSettled;
    this.#starts = new Map(
      keys.map((key) => [key, { spawnedAt: undefined, readyAfterMs: undefined, isSettled: false }]),
    );
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    if (keys.length === 0) this.#resolve();
  }

  /** From spawn to ready, in milliseconds. */
  readyAfterMs(key: string): number | undefined {
    return this.#starts.get(key)?.readyAfterMs;
  }

  moved(key: string, { state, pid }: ChildSnapshot): void {
    const start = this.#starts.get(key);
    if (start === undefined || start.isSettled) return;
    if (state === 'starting' && pid !== undefined) start.spawnedAt ??= this.#now();
    if (state === 'ready' && start.spawnedAt !== undefined) start.readyAfterMs = this.#now() - start.spawnedAt;
    // While there is a pid, the last output of a failed server may not be read yet.
    const hasFailed = (state === 'parked' || state === 'backoff') && pid === undefined;
    if (state === 'ready' || hasFailed) this.#settle(start);
  }

  #settle(start: FirstStart): void {
    start.isSettled = true;
    const pending = [...this.#starts].flatMap(([key, { isSettled }]) => (isSettled ? [] : [key]));
    this.#onSettled(pending);
    if (pending.length === 0) this.#resolve();
  }
}
