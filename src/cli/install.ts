import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { causeLines } from '../observe/cause-lines.js';
import { InstallFault } from '../packages/package-installer.js';
import { forStream, table, tell } from './output.js';
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
      process.stdout.write(`${forStream(table([['SERVER', 'PACKAGE', 'RESULT'], ...rows]), process.stdout)}\n`);
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
  readonly fault?: InstallFault;
}

async function installOne(
  server: PackagedServer,
  index: number,
  { servers, installer, progressLine, ending }: PackageWork,
): Promise<Result> {
  const { request, found } = server.package;
  if (found?.place === 'near') {
    return { server, outcome: `${found.version ?? 'some version'} is in node_modules, which takes precedence` };
  }
  progressLine.show(`${progressBar(index, servers.length)} ${index} of ${servers.length}; installing ${request.shown}`);
  try {
    const { locked, isNew } = await installer.obtain(request, ending);
    const scripted = request.installScripts ? 0 : Object.values(locked.tree).filter(hasInstallScript).length;
    const count = scripted === 1 ? '1 package' : `${scripted} packages`;
    const note = scripted === 0 ? '' : `; the install scripts of ${count} were not run (installScripts)`;
    return { server, outcome: `${isNew ? 'installed' : 'already installed:'} ${locked.version}${isNew ? note : ''}` };
  } catch (error) {
    if (!(error instanceof InstallFault)) throw error;
    return { server, outcome: 'failed', fault: error };
  }
}

function hasInstallScript(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && 'hasInstallScript' in entry && entry.hasInstallScript === true;
}
