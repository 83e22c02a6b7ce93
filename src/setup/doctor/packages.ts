import type { ServerConfig } from '../../config/resolve/config.js';
import { type LockedPackage, LockFile, LockFileError } from '../../servers/packages/lock-file.js';
import { lockKey, openStore, type PackagePaths } from '../../servers/packages/package-store.js';
import { isRecord } from '../../wire/json/json-value.js';
import { someOf } from '../../wire/json/printable.js';
import { type Finding, finding } from './finding.js';

export interface PackageTools {
  readonly paths: PackagePaths;
  /** Returns the reasons why the installed package of a server may not work, a line each. */
  readonly remarksOn: (server: ServerConfig) => readonly string[];
  /** Installs the packages of these servers as they are locked. Rejects if that fails. */
  readonly install: (keys: readonly string[]) => Promise<void>;
}

/** Checks that the packages of the servers are installed, complete and not deprecated. Needs no network. */
export function checkPackages(servers: readonly ServerConfig[], tools: PackageTools): Finding[] {
  const packaged = servers.filter((server) => server.package !== undefined);
  if (packaged.length === 0) return [];
  let locked: ReadonlyMap<string, LockedPackage>;
  try {
    locked = new LockFile(tools.paths).read();
  } catch (error) {
    if (!(error instanceof LockFileError)) throw error;
    return [finding('TL-LOCK-UNREADABLE', error.message, [], { remedy: error.hint })];
  }
  const found = packaged.flatMap((server) => checkPackage(server, locked, tools));
  if (found.length > 0) return found;
  return [finding('TL-PACKAGE-OK', `the packages of ${someOf(packaged.map(({ key }) => key))} are installed`)];
}

function checkPackage(
  server: ServerConfig,
  locked: ReadonlyMap<string, LockedPackage>,
  { paths, remarksOn, install }: PackageTools,
): Finding[] {
  const { key, package: used } = server;
  if (used === undefined) return [];
  const { request, found: installed } = used;
  const entry = installed?.location === 'near' ? undefined : locked.get(lockKey(request));
  const of = `the package ${request.shown} of server \`${key}\``;
  const found: Finding[] = [];
  if (entry !== undefined && openStore(paths).isDamaged({ ...request, locked: entry })) {
    const evidence = [openStore(paths).folderOf({ ...request, locked: entry })];
    const repair = { done: `installed ${request.shown} again`, apply: async () => await install([key]) };
    const remedy = `trunkline install ${key}`;
    found.push(finding('TL-PACKAGE-DAMAGED', `${of} lacks files`, evidence, { remedy, repair }));
  } else if (installed === undefined) {
    found.push(finding('TL-PACKAGE-MISSING', `${of} is not installed`, [], { remedy: `trunkline install ${key}` }));
  }
  const words = entry === undefined ? undefined : deprecationIn(entry, request.name);
  if (words !== undefined) found.push(finding('TL-PACKAGE-DEPRECATED', `${of} is deprecated`, [words]));
  for (const remark of remarksOn(server)) found.push(finding('TL-PACKAGE-REMARK', `${of} may not work here`, [remark]));
  return found;
}

/** The author's deprecation message, which npm stores in its lock file. */
function deprecationIn({ tree }: LockedPackage, name: string): string | undefined {
  const own = tree[`node_modules/${name}`];
  return isRecord(own) && typeof own.deprecated === 'string' ? own.deprecated : undefined;
}

/** Finds servers that run the same program or have the same URL, so that their tools exist twice. */
export function checkTwins(servers: readonly ServerConfig[]): Finding[] {
  const byRun = new Map<string, ServerConfig[]>();
  for (const server of servers) {
    const run = runOf(server);
    if (run !== undefined) byRun.set(run, [...(byRun.get(run) ?? []), server]);
  }
  const twins = [...byRun.values()].filter((same) => same.length > 1);
  return twins.map((same) => {
    const what = same[0]?.spec?.kind === 'remote' ? 'have the same URL' : 'run the same program';
    return finding('TL-SERVER-TWICE', `the servers ${same.map(({ key }) => key).join(' and ')} ${what}`);
  });
}

/** Returns a text that is equal for servers that run the same. With other headers, the same URL may be another account. */
function runOf({ spec, package: used }: ServerConfig): string | undefined {
  if (spec === undefined) return undefined;
  if (spec.kind === 'remote') return JSON.stringify([spec.url, Object.entries(spec.headers).sort()]);
  // The working folder matters only for a command that is not a package.
  const what = used === undefined ? [spec.command, spec.cwd] : [used.request.name, used.request.bin];
  const { TRUNKLINE_PARENTS: _, ...env } = spec.env;
  const args = used?.found === undefined ? spec.args : spec.args.slice(1);
  return JSON.stringify([what, args, Object.entries(env).sort()]);
}
