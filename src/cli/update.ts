import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import type { Config, ServerConfig } from '../config/config.js';
import { programIn } from '../config/package-bin.js';
import { suggest } from '../config/suggest.js';
import { printable } from '../json/printable.js';
import { lockKey, openLockFile, openStore } from '../packages/installed-packages.js';
import type { LockedPackage } from '../packages/lock-file.js';
import { InstallFault, type Obtained } from '../packages/package-installer.js';
import { reportInstallFault } from './install.js';
import { forStream, tell } from './output.js';
import { type PackagedServer, type PackageWork, workOnPackages } from './package-work.js';
import { probeTools } from './probe-tools.js';
import { compareTools, type ToolChanges } from './tool-changes.js';

/**
 * `trunkline update`: moves packages to their newest versions. Starts the old and the new version once to compare their
 * tools. A package whose update fails stays at its version.
 */
export async function update(settings: GlobalOptions, name: string | undefined): Promise<number> {
  return await workOnPackages(
    settings,
    (config) => chooseByName(config, name),
    async (work) => {
      let hasFailed = false;
      for (const servers of byPackage(work.servers)) {
        work.ending.throwIfAborted();
        if (!(await updateOne(servers, work))) hasFailed = true;
      }
      return hasFailed ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Finds servers by key or by the name of their package. */
function chooseByName({ servers }: Config, name: string | undefined): readonly ServerConfig[] {
  if (name === undefined) return servers;
  const chosen = servers.filter((server) => server.key === name || server.package?.request.name === name);
  if (chosen.length > 0) return chosen;
  const known = servers.flatMap((server) => [server.key, ...(server.package ? [server.package.request.name] : [])]);
  const nearest = suggest(name, known);
  const hint = nearest === undefined ? `the configuration has: ${known.join(', ')}` : `did you mean \`${nearest}\`?`;
  throw new UsageError(`there is no server or package \`${name}\` in the configuration`, hint);
}

/** Groups servers that run the same package; a group is updated together. */
function byPackage(servers: readonly PackagedServer[]): Iterable<readonly PackagedServer[]> {
  const groups = new Map<string, PackagedServer[]>();
  for (const server of servers) {
    const { request, found } = server.package;
    const key = JSON.stringify([lockKey(request), request.installScripts, found?.place === 'near']);
    groups.set(key, [...(groups.get(key) ?? []), server]);
  }
  return groups.values();
}

/** Updates the package of a group. Returns false when that failed. */
async function updateOne(servers: readonly PackagedServer[], work: PackageWork): Promise<boolean> {
  const { installer, progressLine, ending, places } = work;
  const [{ package: used } = { package: undefined }] = servers;
  if (used === undefined) return true;
  const { request, found } = used;
  const label = `${servers.map(({ key }) => key).join(', ')}: ${request.shown}`;
  if (found?.place === 'near') return say(`${label} is in node_modules; use npm to update it`);
  if (request.version !== undefined) return say(`${label} is a fixed version in the configuration`);

  progressLine.show(`installing the newest ${request.shown}`);
  let newest: Obtained;
  try {
    newest = await installer.obtainNewest(request, ending);
  } catch (error) {
    progressLine.clear();
    if (!(error instanceof InstallFault)) throw error;
    reportInstallFault(error, work);
    return false;
  }
  const before = openLockFile(places).read().get(lockKey(request));
  const store = openStore(places);
  const folderOf = (locked: LockedPackage) => store.folderOf({ ...request, locked });
  if (before !== undefined && folderOf(before) === folderOf(newest.locked)) {
    progressLine.clear();
    return say(`${label} is up to date: ${before.version}`);
  }
  const report: string[] = [];
  for (const server of servers) {
    progressLine.show(`starting ${server.key} to compare its tools`);
    const outcome = await compareVersions(server, before && folderOf(before), folderOf(newest.locked), work);
    progressLine.clear();
    if ('refused' in outcome) {
      for (const line of outcome.refused) tell(line);
      tell(`trunkline: ${label} ${before === undefined ? 'was not installed' : `stays at ${before.version}`}`);
      return false;
    }
    report.push(...outcome.report);
  }
  ending.throwIfAborted();
  await installer.lock(request, newest.locked, ending);
  say([`${label} ${describeVersions(before, newest.locked)}`, ...report].join('\n'));
  return true;
}

function say(text: string): true {
  process.stdout.write(`${forStream(text, process.stdout)}\n`);
  return true;
}

/** Starts both versions with the settings of this server. An old version that does not start is not compared. */
async function compareVersions(
  server: PackagedServer,
  oldFolder: string | undefined,
  newFolder: string,
  work: PackageWork,
): Promise<{ readonly report: readonly string[] } | { readonly refused: readonly string[] }> {
  const after = await probeTools({ ...work, server: runFrom(server, newFolder) });
  if ('fault' in after) {
    const { reason, hint } = after.fault;
    return {
      refused: [
        `trunkline: the new version of ${server.key} does not start: ${reason}`,
        ...after.log.map((line) => `  | ${line}`),
        `  ${hint}`,
      ],
    };
  }
  if (oldFolder === undefined || server.package.found === undefined) return { report: [] };
  const before = await probeTools({ ...work, server: runFrom(server, oldFolder) });
  if ('fault' in before)
    return { report: [`  ${server.key}: the old version does not start, so the tools were not compared`] };
  const changes = compareTools(before.tools, after.tools);
  const isWithheld = server.approval === 'required' && changes.added.length + changes.changed.length > 0;
  const advice = `  ${server.key}: new and changed tools are withheld until you run \`trunkline approve ${server.key}\``;
  return { report: [...describeChanges(server.key, changes), ...(isWithheld ? [advice] : [])] };
}

/** Returns the server with the program of the package in this folder. */
function runFrom(server: PackagedServer, folder: string): PackagedServer {
  const { child } = server;
  if (child === undefined) return server;
  const { missing, ...spec } = child;
  const own = missing === undefined ? spec.args.slice(1) : spec.args;
  return { ...server, child: { ...spec, args: [programIn(folder, server.package.request), ...own] } };
}

function describeVersions(before: LockedPackage | undefined, after: LockedPackage): string {
  if (before === undefined) return `installed: ${after.version}`;
  if (before.version !== after.version) return `updated: ${before.version} to ${after.version}`;
  return `${after.version} has newer dependencies`;
}

function describeChanges(key: string, { added, removed, changed }: ToolChanges): string[] {
  const lines = [
    ...added.map((name) => `+ ${name}`),
    ...removed.map((name) => `- ${name}`),
    ...changed.map(({ name, members }) => `~ ${name} (${members.join(', ')})`),
  ];
  if (lines.length === 0) return [`  ${key}: its tools are unchanged`];
  return lines.map((line) => `  ${key}: ${printable(line)}`);
}
