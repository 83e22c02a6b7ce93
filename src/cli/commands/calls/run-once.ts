import { constants } from 'node:os';
import { GatewayProcess } from '../../../app/gateway-process.js';
import { type GlobalOptions, type OpenLog, openLog } from '../../../app/global-options.js';
import { createPlatform, type Platform } from '../../../app/platform.js';
import { readConfig, refuseDisabled, requireView } from '../../../app/read-config.js';
import { FINAL_LADDER, type RunToEndOptions, runToEnd } from '../../../app/run-to-end.js';
import { formatProblem } from '../../../config/file/config-error.js';
import { currentFolder } from '../../../config/file/find-config.js';
import { type Config, isForFolder, isInView, type ServerConfig } from '../../../config/resolve/config.js';
import type { User } from '../../../downstream/port.js';
import { exchange } from '../../../extras/exchange/index.js';
import type { CreateFeature } from '../../../extras/feature.js';
import { interceptors } from '../../../extras/interceptors/index.js';
import { largeResults } from '../../../extras/large-results/index.js';
import { UsageError } from '../../../host/errors/usage-error.js';
import type { Logger } from '../../../host/observe/logger.js';
import type { Trial } from '../../../servers/sandbox/confined-launch.js';
import type { ServerState } from '../../../spec/server-state.js';
import { type CatalogueStore, openCatalogues } from '../../../state/catalogue-cache.js';
import { readSealSecret } from '../../../state/seal.js';
import { approvalFolders, packageFolders, runFolder } from '../../../state/user-files.js';
import { reportStatus, type ServerReport } from '../../../status/status.js';
import { type Fault, faultOf } from '../../../status/verdict.js';
import { sentence, someOf } from '../../../wire/json/printable.js';
import { hintFor } from '../../../wire/json/suggest.js';
import { LocalClient } from '../../local-client.js';
import { elapsed, tell } from '../../output.js';
import { ProgressLine } from '../../terminal.js';

/** Dependencies of a command that needs servers. Every server is ready or has failed. */
export interface Once {
  readonly config: Config;
  readonly composition: GatewayProcess;
  readonly client: LocalClient;
  readonly starts: FirstStarts;
  readonly progressLine: ProgressLine;
  /** Aborted when a signal comes. */
  readonly ending: AbortSignal;
}

interface UserName {
  readonly name: string;
  readonly kind: User['kind'];
}

export interface RunOnceOptions {
  readonly trial?: Trial | undefined;
  readonly isReview?: boolean;
  readonly isQuiet?: boolean;
  /** Starts the servers with the variables of this user or machine. */
  readonly user?: UserName | undefined;
}

/**
 * Starts the chosen servers for one command, runs `work` when each of them is ready or has failed, and stops them. It does not
 * wait for another start of a failed server. With `isReview`, the first tools of a server are not approved automatically. With
 * `isQuiet`, the caller prints the warnings about the configuration.
 */
export async function runOnce(
  settings: GlobalOptions,
  choose: (config: Config) => readonly ServerConfig[],
  work: (once: Once) => Promise<number>,
  { isReview = false, isQuiet = false, trial, user }: RunOnceOptions = {},
): Promise<number> {
  const log = openQuietLog(settings);
  const platform = createPlatform();
  // Users have no folder on this machine, as over HTTP.
  const read = await readConfig(settings, undefined, undefined, user === undefined ? 'own' : undefined);
  const whole = user === undefined ? read : await asUser(read, user);
  for (const warning of isQuiet ? [] : whole.warnings) tell(warning);
  requireView(whole, settings.view);
  const inView = choose(whole).filter(({ key }) => isInView(whole, key, settings.view));
  const chosen = withInterceptors(whole, inView, settings.view);
  const config = { ...whole, servers: chosen.map(triedOnce) };

  const progressLine = new ProgressLine(process.stderr);
  const keys = config.servers.flatMap(({ key, spec }) => (spec === undefined ? [] : [key]));
  const progress = new StartProgress(progressLine, keys);
  const starts = new FirstStarts(keys, (pending) => progress.remaining(pending));
  // With a view, the command gets results as clients of the view do, which may be cut. Without one, it gets them whole.
  const features = [exchange, interceptors, ...(settings.view === undefined ? [] : [largeResults])];
  // In the trial of a sandbox, a server may lack what it needs, so its lists may differ from those that clients get.
  const catalogues = trial === undefined ? await cataloguesToLeave(platform, log.logger) : undefined;
  const more = { platform, catalogues, ...(trial && { trial }), features };
  const composition = composeOnce(config, log, packageFolders(), isReview, more);
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
    // A signal may have come meanwhile, and the servers are being stopped then.
    ending.throwIfAborted();
    return await work({ config, composition, client, starts, progressLine, ending });
  });
}

/** Adds the interceptors of servers and of a view, without which the calls of a command would be refused. */
function withInterceptors(
  { servers, gateway }: Config,
  chosen: readonly ServerConfig[],
  view: string | undefined,
): readonly ServerConfig[] {
  const ofView = gateway.views.find(({ name }) => name === view)?.interceptors ?? [];
  const keys = new Set([...ofView, ...chosen.flatMap((server) => server.interceptors ?? [])]);
  return [...chosen, ...servers.filter((server) => keys.has(server.key) && !chosen.includes(server))];
}

/** Returns the configuration with the servers that a user gets over HTTP. Throws a `UsageError` if users have no variables. */
async function asUser(config: Config, { name, kind }: UserName): Promise<Config> {
  const folder = config.gateway.http.auth?.variables;
  if (folder === undefined)
    throw new UsageError(
      'users have no variables, because `gateway.http.auth.variables` is not set',
      `set it to a folder with the files \`${kind}s/${name}/NAME\`, or leave \`--user\` out`,
    );
  const { knownUsers } = await import('../serve/users.js');
  const known = knownUsers(folder, config.gateway.http.auth?.tokens);
  const namesakes = known.filter((each) => each.name === name);
  if (namesakes.every((each) => each.kind !== kind)) {
    const names = known.flatMap((each) => (each.kind === kind ? [each.name] : []));
    const hint = hintFor(name, names, '`trunkline user list` shows all');
    const other =
      kind === 'user' ? 'a machine has this name: add `--machine`' : 'a user has this name: leave `--machine` out';
    tell(`The ${kind} ${name} is unknown and has no variables; ${namesakes.length > 0 ? other : hint}.`);
  }
  const { UserVariables } = await import('../../../downstream/users/user-variables.js');
  const variables = new UserVariables({
    folder,
    environment: process.env,
    workingFolder: currentFolder(),
    now: () => performance.now(),
    names: () => config.servers.flatMap((server) => server.variables),
    onFault: (file, reason) => tell(`The variable ${file} cannot be used: ${reason}`),
  });
  const origin = variables.originOf({ principal: name, name, kind, groups: [] });
  return { ...config, servers: config.servers.map((server) => config.serverFor(server.key, origin) ?? server) };
}

/**
 * Opens the cache in which a command leaves the lists that it reads, so that the first client gets them at once. Returns
 * `undefined` if the key that protects the cache cannot be read.
 */
async function cataloguesToLeave({ scan }: Platform, logger: Logger): Promise<CatalogueStore | undefined> {
  const { secret, isLasting, onSealed } = await readSealSecret(logger);
  if (!isLasting) return undefined;
  const onFault = (err: unknown) => logger.warn({ err }, 'the lists cannot be left for the first client');
  const onIgnored = (file: string, reason: string) => logger.debug({ file, reason }, 'a cached file is ignored');
  return openCatalogues({ secret, onCached: onSealed, onIgnored, onFault, scan }).forCommand();
}

/** Opens the log of a command. It has records only if the options ask for them, because the command explains failures. */
export function openQuietLog(settings: GlobalOptions): OpenLog {
  const log = openLog(settings);
  if (settings.verbosity === 0 && settings.logFile === undefined) log.logger.level = 'fatal';
  return log;
}

interface OnceOptions {
  readonly platform?: Platform;
  readonly catalogues?: CatalogueStore | undefined;
  readonly trial?: Trial;
  readonly features?: readonly CreateFeature[];
}

/** Makes a gateway for one command. It installs missing packages into `packages`. Without `packages`, it installs none. */
export function composeOnce(
  config: Config,
  log: OpenLog,
  packages?: ReturnType<typeof packageFolders>,
  isReview = false,
  more: OnceOptions = {},
): GatewayProcess {
  const approvals = approvalFolders(isReview ? 'review' : 'once');
  const rest = {
    environment: process.env,
    runFolder: runFolder(),
    approvals,
    ...(packages && { packages }),
    ...more,
  };
  return new GatewayProcess({ config, ...log, ...rest });
}

/** Runs the work of a command to its end, or until a signal comes, and then stops the composition. */
export async function runCommand(
  composition: RunToEndOptions['composition'],
  { logger }: OpenLog,
  work: RunToEndOptions['work'],
): Promise<number> {
  const onSignal: RunToEndOptions['onSignal'] = (signal) => 128 + constants.signals[signal];
  return await runToEnd({ composition, logger, onSignal, isOutputAwaited: true, work });
}

/** Returns the servers with these keys, or all servers if `names` is empty. In the folder of a project, its own keys name its servers. */
export function chooseServers(config: Config, names: readonly string[]): readonly ServerConfig[] {
  const servers = config.servers.filter((server) => isForFolder(config, server, undefined));
  const inProject = new Map(servers.flatMap(({ key, layer }) => (layer === undefined ? [] : [[layer.key, key]])));
  const meant = names.map((name) => inProject.get(name) ?? name);
  refuseDisabled(meant, config.disabled);
  const chosen = chooseFrom(
    servers.map(({ key }) => key),
    meant,
  );
  return servers.filter(({ key }) => chosen.includes(key));
}

/** Returns `names`, or all keys if `names` is empty. Throws a `UsageError` for a name that is not a key. */
export function chooseFrom(keys: readonly string[], names: readonly string[]): readonly string[] {
  for (const name of names) {
    if (keys.includes(name)) continue;
    const hint = hintFor(name, keys, `the configuration has: ${keys.join(', ')}`);
    throw new UsageError(`there is no server \`${name}\` in the configuration`, hint);
  }
  return names.length === 0 ? keys : names;
}

/**
 * Changes the settings of a server for one start: its first failure parks it, it is not stopped while it is idle, and it has
 * the short stop times of a command.
 */
export function triedOnce(server: ServerConfig): ServerConfig {
  if (server.spec === undefined) return server;
  const { timeouts, restart } = server.spec;
  const { termAfterMs, killAfterMs } = FINAL_LADDER;
  const shortened = { ...timeouts, stopGraceMs: termAfterMs, killAfterMs: killAfterMs - termAfterMs };
  const spec = { ...server.spec, timeouts: shortened, restart: { ...restart, budget: 1 } };
  return { ...server, spec, start: 'eager', idleStopMs: 0 };
}

/** Shows a progress line on a terminal, with the number of finished servers, the names of the pending ones, and the time. */
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

  moved(
    key: string,
    {
      missing,
      installingSince,
    }: { readonly missing: string | undefined; readonly installingSince: number | undefined },
  ): void {
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

/** Most names that are shown. The others are only counted, so that the time after the names fits on the line. */
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
  readonly #begun = new Map<string, { readonly at: number; readonly isSpawned: boolean }>();
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

  /** Time from the spawn to ready, in milliseconds. Without a process, it begins with the first attempt to connect. */
  readyAfterMs(key: string): number | undefined {
    return this.#readyAfterMs.get(key);
  }

  moved(key: string, { state, pid }: { readonly state: ServerState; readonly pid: number | undefined }): void {
    if (!this.#pending.has(key)) return;
    const now = performance.now();
    const begun = this.#begun.get(key);
    const isSpawned = pid !== undefined;
    if (state === 'starting' && (begun === undefined || (isSpawned && !begun.isSpawned)))
      this.#begun.set(key, { at: now, isSpawned });
    if (state === 'ready' && begun !== undefined) this.#readyAfterMs.set(key, now - begun.at);
    // While there is a pid, the last output of a failed server may not be read yet.
    const hasFailed =
      (state === 'parked' || state === 'backoff' || state === 'offline' || state === 'blocked') && pid === undefined;
    if (state !== 'ready' && !hasFailed) return;
    this.#pending.delete(key);
    this.#onSettled([...this.#pending]);
    if (this.#pending.size === 0) this.#resolve();
  }
}

export interface TriedServer {
  readonly server: ServerConfig;
  readonly report: ServerReport;
  /** The reason why it did not start or, if it is ready, why it does not list its tools. */
  readonly fault: Fault | undefined;
}

/** Examines the servers of a gateway that has started each of them once. */
export function examine({
  config,
  composition,
}: {
  readonly config: Config;
  readonly composition: GatewayProcess;
}): TriedServer[] {
  const status = composition.status();
  return config.servers.flatMap((server) => {
    const { servers } = reportStatus(status, server.key);
    const file = server.layer?.file ?? config.file;
    return servers.map((report) => ({ server, report, fault: faultIn(file, server, report) }));
  });
}

function faultIn(file: string, { spec, problem }: ServerConfig, report: ServerReport): Fault | undefined {
  if (problem !== undefined) {
    const { hint, ...fault } = problem;
    const code = 'TL-SERVER-MISCONFIGURED' as const;
    return { ...MISCONFIGURED, code, reason: formatProblem(file, fault), remedy: sentence(hint) };
  }
  const isSound = report.state === 'ready' && report.tools.failure === null;
  return isSound || spec === undefined ? undefined : faultOf(report, spec.timeouts.startMs);
}

const MISCONFIGURED = { phase: 'configuration', isInOutput: false, trouble: undefined };
