import { EXIT } from '../../../host/errors/usage-error.js';
import { causeLines } from '../../../host/observe/cause-lines.js';
import { InstallFault } from '../../../servers/packages/package-installer.js';
import { installedTree, storedTree } from '../../../servers/packages/package-store.js';
import type { InvokedWords } from '../../command.js';
import { type EmitJson, forStream, printJson, say, tell } from '../../output.js';
import { type Cell, lookOf, table } from '../../terminal.js';
import { chooseServers, StartProgress } from '../calls/run-once.js';
import { listRemarks, lookUpNewest, remarksOnPackage } from './package-remarks.js';
import { allSettled, type PackagedServer, type PackageWork, workOnPackages } from './package-work.js';

/**
 * `trunkline install`: installs missing packages and reports the result for each server. `onFault` gets each failure, and reports it on
 * stderr by default. The table and the JSON always show which packages failed.
 */
export async function install(
  { settings, words, isJson }: InvokedWords,
  {
    emit = printJson as EmitJson,
    onFault = reportInstallFault as (fault: InstallFault, work: PackageWork) => void,
  } = {},
): Promise<number> {
  return await workOnPackages(
    settings,
    (config) => chooseServers(config, words),
    async (work) => {
      const results = await installAll(work);
      if (isJson) await emit({ servers: results.map(toFacts) });
      else await say(describe(results).trimEnd());
      const faults = results.flatMap(({ fault }) => fault ?? []);
      for (const fault of faults) onFault(fault, work);
      return faults.length > 0 ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Reports a failed installation on stderr, with the errors in the output of npm. */
export function reportInstallFault({ message, lines }: InstallFault, { log }: PackageWork): void {
  const errors = causeLines(lines, MAX_ERROR_LINES);
  for (const line of [`trunkline: ${message}`, ...errors.map((error) => `  | ${error}`)]) {
    tell(forStream(log.secrets.redact(line), process.stderr));
  }
}

const MAX_ERROR_LINES = 8;

/** Whether nothing can be written, so that no other package can be installed either. */
export function isOfDisk({ message, lines }: InstallFault): boolean {
  return [message, ...lines].some((line) => /\b(?:ENOSPC|EDQUOT|EROFS)\b/.test(line));
}

interface Result {
  readonly server: PackagedServer;
  readonly result: 'installed' | 'present' | 'near' | 'failed';
  readonly version?: string | undefined;
  /** Reasons why the installed package may not work. */
  readonly remarks: readonly string[];
  readonly fault?: InstallFault;
}

/** Entry of one server in the output of `--json`. */
function toFacts({ server, result, version = undefined, remarks, fault }: Result) {
  const facts = { server: server.key, package: server.package.request.shown, result, version: version ?? null };
  return { ...facts, remarks, failure: fault?.message ?? null };
}

function describe(results: readonly Result[]): string {
  const look = lookOf(process.stdout);
  const rows = results.map(({ server, ...result }): Cell[] => [
    server.key,
    server.package.request.shown,
    { text: OUTCOMES[result.result](result.version), format: result.result === 'failed' ? 'red' : undefined },
  ]);
  const remarks = listRemarks(results.map(({ server, remarks }) => ({ key: server.key, remarks })));
  return `${table([['SERVER', 'PACKAGE', 'RESULT'], ...rows], look)}\n${forStream(remarks, process.stdout)}`;
}

const OUTCOMES = {
  installed: (version = '') => `installed ${version}`,
  present: (version = '') => `already installed: ${version}`,
  near: (version = 'some version') => `${version} is in node_modules, which takes precedence`,
  failed: () => 'failed',
};

/** Installs the packages of all servers. The installer decides how many are installed at once. */
async function installAll(work: PackageWork): Promise<Result[]> {
  const pending = new Set(work.servers);
  const keysOfPending = () => [...pending].map(({ key }) => key);
  const progress = new StartProgress(work.progressLine, keysOfPending(), { done: 'done' });
  progress.remaining(keysOfPending());
  const settle = (server: PackagedServer) => {
    pending.delete(server);
    progress.remaining(keysOfPending());
  };
  const installs = work.servers.map((server) => installOne(server, work).finally(() => settle(server)));
  try {
    return await allSettled(installs);
  } finally {
    progress.end();
  }
}

async function installOne(server: PackagedServer, work: PackageWork): Promise<Result> {
  const { installer, paths, ending } = work;
  const { request, found } = server.package;
  if (found?.location === 'near') {
    const remarks = remarksOnPackage(request, installedTree(request, found, paths));
    return { server, result: 'near', version: found.version, remarks };
  }
  try {
    const { locked, isNew } = await installer.obtain(request, ending);
    const { version } = locked;
    const isNewestWanted = isNew && request.version === undefined;
    const onNewest = isNewestWanted ? await lookUpNewest(request, version, work) : [];
    const remarks = [...onNewest, ...remarksOnPackage(request, storedTree(request, locked, paths))];
    return { server, result: isNew ? 'installed' : 'present', version, remarks };
  } catch (error) {
    if (!(error instanceof InstallFault)) throw error;
    return { server, result: 'failed', remarks: [], fault: error };
  }
}
