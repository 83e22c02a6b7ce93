import { isDeepStrictEqual } from 'node:util';
import { refuseDisabled } from '../../../app/read-config.js';
import { FINAL_LADDER } from '../../../app/run-to-end.js';
import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { isExact, programIn } from '../../../config/resolve/package-bin.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { type LockedPackage, LockFile } from '../../../servers/packages/lock-file.js';
import { InstallFault, type Obtained } from '../../../servers/packages/package-installer.js';
import { lockKey, openStore, storedTree } from '../../../servers/packages/package-store.js';
import type { StopLadder } from '../../../spec/launch.js';
import { type Fault, outputOf } from '../../../status/verdict.js';
import { printable } from '../../../wire/json/printable.js';
import { hintFor } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { LocalClient } from '../../local-client.js';
import { forStream, note, printJson, say, tell } from '../../output.js';
import { waiting } from '../../terminal.js';
import { listAllTools } from '../calls/listed-tools.js';
import { composeOnce, examine, FirstStarts, triedOnce } from '../calls/run-once.js';
import { reportInstallFault } from './install.js';
import { describeCarried, lookUpNewest, remarksOnPackage } from './package-remarks.js';
import { type PackagedServer, type PackageWork, workOnPackages } from './package-work.js';

/**
 * `trunkline update`: moves packages to their newest versions. Starts the old and the new version once to compare their
 * tools. A package whose update fails stays at its version.
 */
export async function update({ settings, words: [name], isJson }: Invocation): Promise<number> {
  return await workOnPackages(
    settings,
    (config) => chooseByName(config, name),
    async (work) => {
      const packages: Omit<Outcome, 'text'>[] = [];
      for (const [first, ...others] of byPackage(work.servers)) {
        if (first === undefined) continue;
        work.ending.throwIfAborted();
        const servers = [first, ...others];
        const { text, ...facts } = await updateOne(servers, first.package, work);
        const about = { servers: servers.map(({ key }) => key), package: first.package.request.shown };
        packages.push({ ...about, ...facts });
        if (!isJson && text !== undefined) await say(forStream(text, process.stdout));
      }
      if (isJson) await printJson({ packages });
      if (packages.some(({ result }) => result === 'updated'))
        note(
          `A running gateway uses the new versions when ${work.paths.configFile} is saved, or when it is restarted.`,
        );
      return packages.some(({ result }) => result === 'failed') ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Result for one package. The reason of a failure is written to stderr at once. */
interface Outcome {
  /** Text for stdout. `undefined` after a failure. */
  readonly text?: string;
  readonly result: 'installed' | 'updated' | 'current' | 'fixed' | 'near' | 'failed';
  readonly from: string | null;
  readonly to: string | null;
  /** Differences of each server's tools in the new version. `tools` is null if there is nothing to compare with. */
  readonly changes: readonly { readonly server: string; readonly tools: ToolChanges | null }[];
  readonly remarks: readonly string[];
}

/** Finds servers by key or by the name of their package. */
function chooseByName({ servers, disabled }: Config, name: string | undefined): readonly ServerConfig[] {
  if (name === undefined) return servers;
  refuseDisabled([name], disabled);
  const chosen = servers.filter((server) => server.key === name || server.package?.request.name === name);
  if (chosen.length > 0) return chosen;
  const known = servers.flatMap((server) => [server.key, ...(server.package ? [server.package.request.name] : [])]);
  const hint = hintFor(name, known, `the configuration has: ${known.join(', ')}`);
  throw new UsageError(`there is no server or package \`${name}\` in the configuration`, hint);
}

/** Groups servers that run the same package, because they are updated together. */
function byPackage(servers: readonly PackagedServer[]): Iterable<readonly PackagedServer[]> {
  const groups = new Map<string, PackagedServer[]>();
  for (const server of servers) {
    const { request, found } = server.package;
    const key = JSON.stringify([lockKey(request), request.installScripts, found?.location === 'near']);
    groups.set(key, [...(groups.get(key) ?? []), server]);
  }
  return groups.values();
}

async function updateOne(
  servers: readonly PackagedServer[],
  { request, found }: PackagedServer['package'],
  work: PackageWork,
): Promise<Outcome> {
  const { installer, progressLine, ending, paths } = work;
  const label = `${servers.map(({ key }) => key).join(', ')}: ${request.shown}`;
  const same = { from: found?.version ?? null, to: found?.version ?? null, changes: [], remarks: [] };
  if (found?.location === 'near')
    return { ...same, result: 'near', text: `${label} is in node_modules; use npm to update it` };
  if (isExact(request)) return { ...same, result: 'fixed', text: `${label} is a fixed version in the configuration` };

  const activity = `installing the newest ${request.shown}`;
  progressLine.show(activity);
  let newest: Obtained;
  try {
    newest = await waiting(activity, installer.obtainNewest(request, ending), progressLine);
  } catch (error) {
    progressLine.clear();
    if (!(error instanceof InstallFault)) throw error;
    reportInstallFault(error, work);
    return { ...same, result: 'failed' };
  }
  const before = new LockFile(paths).read().get(lockKey(request));
  const store = openStore(paths);
  const folderOf = (locked: LockedPackage) => store.folderOf({ ...request, locked });
  const onNewest = await lookUpNewest(request, newest.locked.version, work);
  const remarks = [...onNewest, ...remarksOnPackage(request, storedTree(request, newest.locked, paths))];
  const below = remarks.map((remark) => `  ${remark}`);
  const versions = { from: before?.version ?? null, to: newest.locked.version, remarks };
  if (before !== undefined && folderOf(before) === folderOf(newest.locked)) {
    progressLine.clear();
    const limit = onNewest.length === 0 ? '' : ', the newest version for this Node';
    const text = [`${label} is up to date: ${before.version}${limit}`, ...below].join('\n');
    return { ...versions, result: 'current', changes: [], text };
  }
  // Copies the files of the old version first, because the new version would create its own when it runs.
  const carried = before === undefined ? [] : describeCarried(folderOf(before), folderOf(newest.locked));
  const report: string[] = [];
  const changes: Outcome['changes'][number][] = [];
  for (const server of servers) {
    progressLine.show(`starting ${server.key} to compare its tools`);
    const outcome = await compareVersions(server, before && folderOf(before), folderOf(newest.locked), work);
    progressLine.clear();
    if ('refused' in outcome) {
      for (const line of [...outcome.refused, ...below]) tell(line);
      tell(`trunkline: ${label} ${before === undefined ? 'was not installed' : `stays at ${before.version}`}`);
      return { ...versions, to: versions.from, result: 'failed', changes: [] };
    }
    report.push(...outcome.report);
    changes.push({ server: server.key, tools: outcome.changes });
  }
  ending.throwIfAborted();
  await installer.lock(request, newest.locked, ending);
  const text = [`${label} ${describeVersions(before, newest.locked)}`, ...report, ...carried, ...below].join('\n');
  return { ...versions, result: before === undefined ? 'installed' : 'updated', changes, text };
}

/** Starts both versions with the settings of this server. An old version that does not start is not compared. */
async function compareVersions(
  server: PackagedServer,
  oldFolder: string | undefined,
  newFolder: string,
  work: PackageWork,
): Promise<{ report: string[]; changes: ToolChanges | null } | { refused: string[] }> {
  const { key } = server;
  const after = await probeTools(runFrom(server, newFolder), work);
  if ('fault' in after) {
    const { reason, remedy } = after.fault;
    const output = after.output.map((line) => `  | ${line}`);
    return { refused: [`trunkline: the new version of ${key} cannot be used: ${reason}`, ...output, `  ${remedy}`] };
  }
  if (oldFolder === undefined || server.package.found === undefined) return { report: [], changes: null };
  const before = await probeTools(runFrom(server, oldFolder), work);
  if ('fault' in before) {
    const report = [`  ${key}: the old version does not list its tools, so they were not compared`];
    return { report, changes: null };
  }
  const changes = compareTools(before.tools, after.tools);
  const isWithheld = server.approval === 'required' && changes.added.length + changes.changed.length > 0;
  const advice = `  ${key}: new and changed tools are withheld until you run \`trunkline approve ${key}\``;
  return { report: [...describeChanges(key, changes), ...(isWithheld ? [advice] : [])], changes };
}

function runFrom(server: PackagedServer, folder: string): PackagedServer {
  const { spec: before } = server;
  if (before === undefined || before.kind === 'remote') return server;
  const { missing, ...spec } = before;
  const own = missing === undefined ? spec.args.slice(1) : spec.args;
  return { ...server, spec: { ...spec, args: [programIn(folder, server.package.request), ...own] } };
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

/** Starts a server once, lists its tools under their original names, and stops it. */
async function probeTools(
  server: ServerConfig,
  { config, log, ending, stoppers }: PackageWork,
): Promise<{ tools: ToolDefinitions } | { fault: Fault; output: readonly string[] }> {
  const { key } = server;
  const whole = triedOnce({ ...server, prefix: '', tools: { deny: [] }, approval: 'off' });
  const starts = new FirstStarts([key]);
  const composition = composeOnce({ ...config, servers: [whole] }, log);
  composition.platform.events.subscribe('server.changed', ({ instance, snapshot }) => starts.moved(instance, snapshot));
  const stop = (ladder: StopLadder) => composition.stop(ladder);
  stoppers.add(stop);
  try {
    const client = await LocalClient.open(composition);
    composition.start();
    await starts.settled;
    ending.throwIfAborted();
    const [tried] = examine({ config: { ...config, servers: [whole] }, composition });
    if (tried?.fault !== undefined) return { fault: tried.fault, output: outputOf(tried.report) };
    const { tools } = JSON.parse(await listAllTools(client)) as { tools: { name: string }[] };
    const own = tools.filter(({ name }) => !name.startsWith(OWN_PREFIX));
    return { tools: new Map(own.map((tool) => [tool.name, { ...tool }])) };
  } finally {
    await stop(FINAL_LADDER);
    stoppers.delete(stop);
  }
}

const OWN_PREFIX = 'trunkline__';

/** Parsed tool definitions by name. */
export type ToolDefinitions = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

interface ToolChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Names of changed tools, each with the members of its definition that differ. */
  readonly changed: readonly { readonly name: string; readonly members: readonly string[] }[];
}

/** Compares two sets of tools. The order of members and of tools does not matter. */
export function compareTools(before: ToolDefinitions, after: ToolDefinitions): ToolChanges {
  const changed = [...after].flatMap(([name, definition]) => {
    const earlier = before.get(name);
    if (earlier === undefined) return [];
    const keys = [...new Set([...Object.keys(earlier), ...Object.keys(definition)])];
    const members = keys.filter((key) => !isDeepStrictEqual(earlier[key], definition[key]));
    return members.length === 0 ? [] : [{ name, members }];
  });
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    removed: [...before.keys()].filter((name) => !after.has(name)),
    changed,
  };
}
