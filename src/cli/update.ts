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
import { reportFault } from './install.js';
import { forStream, tell } from './output.js';
import { type PackagedServer, type PackageWork, workOnPackages } from './package-work.js';
import { probeTools } from './probe-tools.js';
import { compareTools, type ToolChanges } from './tool-changes.js';

/**
 * Moves packages to their newest versions, each after both versions were started once and their tools compared. One
 * that fails stays as it was.
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

/** By the server's key or by the name of the package. */
function chooseByName({ servers }: Config, name: string | undefined): readonly ServerConfig[] {
  if (name === undefined) return servers;
  const chosen = servers.filter((server) => server.key === name || server.package?.request.name === name);
  if (chosen.length > 0) return chosen;
  const known = servers.flatMap((server) => [server.key, ...(server.package ? [server.package.request.name] : [])]);
  const nearest = suggest(name, known);
  const hint = nearest === undefined ? `there are: ${known.join(', ')}` : `did you mean \`${nearest}\`?`;
  throw new UsageError(`there is no server or package \`${name}\` in the configuration`, hint);
}

/** Servers that run the same are updated together. */
function byPackage(servers: readonly PackagedServer[]): Iterable<readonly PackagedServer[]> {
  const groups = new Map<string, PackagedServer[]>();
  for (const server of servers) {
    const { request, found } = server.package;
    const key = JSON.stringify([lockKey(request), request.installScripts, found?.place === 'near']);
    groups.set(key, [...(groups.get(key) ?? []), server]);
  }
  return groups.values();
}

/** Returns whether all went well. */
async function updateOne(servers: readonly PackagedServer[], work: PackageWork): Promise<boolean> {
  const { installer, progressLine, ending, places } = work;
  const [{ package: used } = { package: undefined }] = servers;
  if (used === undefined) return true;
  const { request, found } = used;
  const label = `${servers.map(({ key }) => key).join(', ')}: ${request.shown}`;
  if (found?.place === 'near') return say(`${label} is in node_modules; npm updates it`);
  if (request.version !== undefined) return say(`${label} is the version that the configuration asks for`);

  progressLine.show(`installing the newest ${request.shown}`);
  let newest: Obtained;
  try {
    newest = await installer.obtainNewest(request, ending);
  } catch (error) {
    progressLine.clear();
    if (!(error instanceof InstallFault)) throw error;
    reportFault(error, work);
    return false;
  }
  const before = openLockFile(places).read().get(lockKey(request));
  const store = openStore(places);
  const folderOf = (locked: LockedPackage) => store.folderOf({ ...request, locked });
  if (before !== undefined && folderOf(before) === folderOf(newest.locked)) {
    progressLine.clear();
    return say(`${label} is up to date: ${before.version}`);
  }
  const told: string[] = [];
  for (const server of servers) {
    progressLine.show(`starting ${server.key}, to compare its tools`);
    const outcome = await compareVersions(server, before && folderOf(before), folderOf(newest.locked), work);
    progressLine.clear();
    if ('refused' in outcome) {
      for (const line of outcome.refused) tell(line);
      tell(`trunkline: ${label} stays ${before === undefined ? 'without a version' : `at ${before.version}`}`);
      return false;
    }
    told.push(...outcome.told);
  }
  ending.throwIfAborted();
  await installer.lock(request, newest.locked, ending);
  say([`${label} ${describeVersions(before, newest.locked)}`, ...told].join('\n'));
  return true;
}

function say(text: string): true {
  process.stdout.write(`${forStream(text, process.stdout)}\n`);
  return true;
}

/** Both versions as this server runs them. One that cannot even be started now cannot be compared with. */
async function compareVersions(
  server: PackagedServer,
  oldFolder: string | undefined,
  newFolder: string,
  work: PackageWork,
): Promise<{ readonly told: readonly string[] } | { readonly refused: readonly string[] }> {
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
  if (oldFolder === undefined || server.package.found === undefined) return { told: [] };
  const before = await probeTools({ ...work, server: runFrom(server, oldFolder) });
  if ('fault' in before) return { told: [`  ${server.key}: the old version does not start, so nothing is compared`] };
  const changes = compareTools(before.tools, after.tools);
  const isHeld = server.approval === 'required' && changes.added.length + changes.changed.length > 0;
  const advice = `  ${server.key}: what is new or changed is withheld until \`trunkline approve ${server.key}\` was run`;
  return { told: [...describeChanges(server.key, changes), ...(isHeld ? [advice] : [])] };
}

/** The same server with the program that was installed into this folder. */
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
  return `${after.version} has newer versions of what it needs`;
}

function describeChanges(key: string, { added, removed, changed }: ToolChanges): string[] {
  const lines = [
    ...added.map((name) => `+ ${name}`),
    ...removed.map((name) => `- ${name}`),
    ...changed.map(({ name, members }) => `~ ${name} (${members.join(', ')})`),
  ];
  if (lines.length === 0) return [`  ${key}: its tools are the same`];
  return lines.map((line) => `  ${key}: ${printable(line)}`);
}
