import { secretSourcesOf } from '../../../app/active-config.js';
import { type GlobalOptions, type OpenLog, openLog } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import { formatProblem } from '../../../config/file/config-error.js';
import type { Config, ServerConfig, ServerPackage } from '../../../config/resolve/config.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import { type OpenedInstaller, openInstaller } from '../../../servers/packages/package-installer.js';
import type { PackagePaths } from '../../../servers/packages/package-store.js';
import { networkVariables } from '../../../servers/process/environment.js';
import { OrphanGuard } from '../../../servers/process/orphan-guard.js';
import type { StopLadder } from '../../../spec/launch.js';
import { packageFolders, runFolder } from '../../../state/user-files.js';
import { tell } from '../../output.js';
import { ProgressLine } from '../../terminal.js';
import { runCommand } from '../calls/run-once.js';

export interface PackageWork extends OpenedInstaller {
  readonly config: Config;
  readonly servers: readonly PackagedServer[];
  readonly paths: PackagePaths;
  readonly log: OpenLog;
  readonly progressLine: ProgressLine;
  /** When aborted, nothing may be started or printed. */
  readonly ending: AbortSignal;
  /** Functions that stop everything that runs now. They are called at a signal. */
  readonly stoppers: Set<(ladder: StopLadder) => Promise<void>>;
}

export type PackagedServer = ServerConfig & { readonly package: ServerPackage };

/** Runs `work` on the packages of the chosen servers, and ends all processes. Returns a failure if an entry has a mistake. */
export async function workOnPackages(
  settings: GlobalOptions,
  choose: (config: Config) => readonly ServerConfig[],
  work: (packages: PackageWork) => Promise<number>,
): Promise<number> {
  const log = openLog(settings);
  const { logger, secrets } = log;
  const config = await readConfig(settings);
  secrets.know([...config.servers.flatMap(secretSourcesOf), { env: networkVariables(process.env), args: [] }]);
  for (const warning of config.warnings) tell(warning);
  const chosen = choose(config);
  const servers = chosen.filter((server): server is PackagedServer => server.package !== undefined);
  const paths = { ...packageFolders(), configFile: config.file };
  const orphanGuard = new OrphanGuard({ clock: systemClock, logger, runFolder: runFolder() });
  const requests = () => config.servers.flatMap((server) => server.package?.request ?? []);
  const opened = openInstaller({ paths, clock: systemClock, logger, environment: process.env, orphanGuard, requests });
  const progressLine = new ProgressLine(process.stderr);
  const stoppers = new Set<(ladder: StopLadder) => Promise<void>>();
  let done: Promise<unknown> = Promise.resolve();
  const stop = async (ladder: StopLadder) => {
    await Promise.all([...stoppers].map((each) => each(ladder)));
    await done;
    await orphanGuard.close();
  };
  return await runCommand({ stop }, log, async (ending) => {
    const working = work({ ...opened, config, servers, paths, log, progressLine, ending, stoppers });
    done = working.catch(() => {}).finally(() => progressLine.clear());
    const code = await working;
    return reportProblems(config, chosen) ? EXIT.failed : code;
  });
}

/** Waits until all have ended, even after a failure, so that nothing runs on. Then rejects with the first failure. */
export async function allSettled<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return await Promise.all(work);
}

/** Reports servers whose configuration is unusable. Returns whether there is one. */
function reportProblems({ file }: Config, servers: readonly ServerConfig[]): boolean {
  const problems = servers.flatMap(({ problem }) => problem ?? []);
  for (const { hint, ...fault } of problems) tell(`${formatProblem(file, fault)}\n  ${hint}`);
  return problems.length > 0;
}
