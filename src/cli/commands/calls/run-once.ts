import { constants } from 'node:os';
import { type Composition, compose } from '../../../app/compose.js';
import { type GlobalOptions, type OpenLog, openLog } from '../../../app/global-options.js';
import { readConfig, requireView } from '../../../app/read-config.js';
import { FINAL_LADDER, type Run, runToEnd } from '../../../app/run-to-end.js';
import { type Config, isInView, type ServerConfig } from '../../../config/resolve/config.js';
import { someOf } from '../../../doctor/finding.js';
import { UsageError } from '../../../errors/usage-error.js';
import { hintFor } from '../../../json/suggest.js';
import { approvalPlaces, packageFolders, runFolder } from '../../../state/user-files.js';
import type { ChildSnapshot } from '../../../supervision/child-state.js';
import { LocalClient } from '../../local-client.js';
import { tell } from '../../output.js';
import { elapsed, ProgressLine } from '../../terminal.js';

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
  const log = openQuietLog(settings);
  const whole = await readConfig(settings);
  for (const warning of isQuiet ? [] : whole.warnings) tell(warning);
  requireView(whole, settings.view);
  const chosen = choose(whole).filter(({ key }) => isInView(whole, key, settings.view));
  const config = { ...whole, servers: chosen.map(triedOnce) };

  const progressLine = new ProgressLine(process.stderr);
  const keys = config.servers.flatMap(({ key, child }) => (child === undefined ? [] : [key]));
  const progress = new StartProgress(progressLine, keys);
  const starts = new FirstStarts(keys, (pending) => progress.remaining(pending));
  const composition = composeOnce(config, log, { isReview, packages: packageFolders() });
  composition.platform.events.subscribe('server.changed', ({ instance, snapshot }) => {
    starts.moved(instance, snapshot);
    progress.moved(instance, snapshot);
  });

  return await runCommand(composition, log, async (ending) => {
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
  });
}

/** The log of a command, which explains failures in plain text. Records appear only when the options ask for them. */
export function openQuietLog(settings: GlobalOptions): OpenLog {
  const log = openLog(settings);
  if (settings.verbosity === 0 && settings.logFile === undefined) log.logger.level = 'fatal';
  return log;
}

/** A gateway for one command. Missing packages are installed into `packages`; none are installed without it. */
export function composeOnce(
  config: Config,
  log: OpenLog,
  {
    isReview = false,
    packages,
  }: { readonly isReview?: boolean; readonly packages?: ReturnType<typeof packageFolders> } = {},
): Composition {
  const approvals = approvalPlaces(isReview ? 'review' : 'once');
  const rest = { environment: process.env, runFolder: runFolder(), approvals, ...(packages && { packages }) };
  return compose({ config, ...log, ...rest });
}

/** Runs the work of a command to its end, or until a signal comes, and then stops the composition. */
export async function runCommand(
  composition: Run['composition'],
  { logger }: Pick<OpenLog, 'logger'>,
  work: Run['work'],
): Promise<number> {
  const onSignal: Run['onSignal'] = (signal) => 128 + constants.signals[signal];
  return await runToEnd({ composition, logger, onSignal, isOutputAwaited: true, work });
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

  moved(key: string, { missing, installingSince }: Pick<ChildSnapshot, 'missing' | 'installingSince'>): void {
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
        ? `waiting for ${someOf(this.#pending, MAX_NAMES)}, ${elapsed(this.#since)}`
        : `installing ${someOf([...packages], MAX_NAMES)}, ${elapsed(first.since)}`;
    this.#line.show(`${progressBar(done, this.#total)} ${done} of ${this.#total} ${this.#done}; ${activity}`);
  }
}

/** More names than this are counted, so that the time behind them stays on the line. */
const MAX_NAMES = 3;

const BAR_WIDTH = 20;

export function progressBar(done: number, total: number): string {
  const filled = total === 0 ? BAR_WIDTH : Math.floor((BAR_WIDTH * done) / total);
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`;
}

/** Watches the first start of each server until it is ready or has failed, and measures the time. */
export class FirstStarts {
  /** Resolves when every server is ready or has failed. */
  readonly settled: Promise<void>;
  readonly #pending: Set<string>;
  readonly #spawnedAt = new Map<string, number>();
  readonly #readyAfterMs = new Map<string, number>();
  readonly #onSettled: (pending: readonly string[]) => void;
  #resolve = () => {};

  /** `onSettled` is called when a first start has ended, with the keys of the pending ones. */
  constructor(keys: readonly string[], onSettled: (pending: readonly string[]) => void = () => {}) {
    this.#pending = new Set(keys);
    this.#onSettled = onSettled;
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    if (keys.length === 0) this.#resolve();
  }

  /** From spawn to ready, in milliseconds. */
  readyAfterMs(key: string): number | undefined {
    return this.#readyAfterMs.get(key);
  }

  moved(key: string, { state, pid }: Pick<ChildSnapshot, 'state' | 'pid'>): void {
    if (!this.#pending.has(key)) return;
    const now = performance.now();
    const spawnedAt = this.#spawnedAt.get(key);
    if (state === 'starting' && pid !== undefined && spawnedAt === undefined) this.#spawnedAt.set(key, now);
    if (state === 'ready' && spawnedAt !== undefined) this.#readyAfterMs.set(key, now - spawnedAt);
    // While there is a pid, the last output of a failed server may not be read yet.
    const hasFailed = (state === 'parked' || state === 'backoff') && pid === undefined;
    if (state !== 'ready' && !hasFailed) return;
    this.#pending.delete(key);
    this.#onSettled([...this.#pending]);
    if (this.#pending.size === 0) this.#resolve();
  }
}
