import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { causeLines } from '../observe/cause-lines.js';
import { installedTree, storedTree } from '../packages/installed-tree.js';
import { InstallFault } from '../packages/package-installer.js';
import { forStream, table, tell } from './output.js';
import { listRemarks, lookUpNewest, remarksOn } from './package-remarks.js';
import { type PackagedServer, type PackageWork, workOnPackages } from './package-work.js';
import { chooseServers } from './run-once.js';
import { progressBar } from './start-progress.js';

/** `trunkline install`: installs missing packages and reports the result for each server. */
export async function install(settings: GlobalOptions, names: readonly string[]): Promise<number> {
  return await workOnPackages(
    settings,
    (config) => chooseServers(config, names),
    async (work) => {
      const results: Result[] = [];
      for (const [index, server] of work.servers.entries()) results.push(await installOne(server, index, work));
      work.progressLine.clear();
      const rows = results.map(({ server, outcome }) => [server.key, server.package.request.shown, outcome]);
      const remarks = listRemarks(results.map(({ server, remarks = [] }) => ({ key: server.key, remarks })));
      const text = `${table([['SERVER', 'PACKAGE', 'RESULT'], ...rows])}\n${remarks}`;
      process.stdout.write(forStream(text, process.stdout));
      for (const { fault } of results) if (fault !== undefined) reportInstallFault(fault, work);
      return results.some(({ fault }) => fault !== undefined) ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Reports a failed installation on stderr, with the errors in the output of npm. */
export function reportInstallFault({ message, lines }: InstallFault, { secrets }: Pick<PackageWork, 'secrets'>): void {
  const errors = causeLines(lines, MAX_ERROR_LINES);
  for (const line of [`trunkline: ${message}`, ...errors.map((error) => `  | ${error}`)]) {
    tell(forStream(secrets.redact(line), process.stderr));
  }
}

const MAX_ERROR_LINES = 8;

interface Result {
  readonly server: PackagedServer;
  readonly outcome: string;
  /** Why the installed package may not work. */
  readonly remarks?: readonly string[];
  readonly fault?: InstallFault;
}

async function installOne(server: PackagedServer, index: number, work: PackageWork): Promise<Result> {
  const { servers, installer, places, progressLine, ending } = work;
  const { request, found } = server.package;
  if (found?.place === 'near') {
    const outcome = `${found.version ?? 'some version'} is in node_modules, which takes precedence`;
    return { server, outcome, remarks: remarksOn(request, installedTree(request, found, places)) };
  }
  progressLine.show(`${progressBar(index, servers.length)} ${index} of ${servers.length}; installing ${request.shown}`);
  try {
    const { locked, isNew } = await installer.obtain(request, ending);
    const outcome = `${isNew ? 'installed' : 'already installed:'} ${locked.version}`;
    const isNewestWanted = isNew && request.version === undefined;
    const onNewest = isNewestWanted ? await lookUpNewest(request, locked.version, work) : undefined;
    const onInstalled = remarksOn(request, storedTree(request, locked, places));
    return { server, outcome, remarks: onNewest === undefined ? onInstalled : [onNewest, ...onInstalled] };
  } catch (error) {
    if (!(error instanceof InstallFault)) throw error;
    return { server, outcome: 'failed', fault: error };
  }
}
