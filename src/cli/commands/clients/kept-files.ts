import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import { entriesIn, type OpenConfig } from '../../../config/edit/edit-config.js';
import { userConfigFile } from '../../../config/file/find-config.js';
import { systemFault } from '../../../host/errors/file-error.js';
import { HintedError } from '../../../host/errors/usage-error.js';
import { copyOver, olderBeside } from '../../../host/files/whole-file.js';
import { writtenIn } from '../../../servers/packages/written-files.js';
import { needsOf } from '../../../servers/sandbox/needs.js';
import {
  copyKeptFile,
  type EarlierFile,
  type KeepingPlaces,
  type KeptFile,
  keepFile,
  literalValue,
  npxFolders,
} from '../../../setup/clients/import/kept-file.js';
import type { PlannedServer } from '../../../setup/clients/import/plan.js';
import { runOf } from '../../../setup/clients/import/run.js';
import { packageFolders, serverFilesFolder } from '../../../state/user-files.js';
import { plural } from '../../../wire/json/printable.js';
import { tell, withoutHome } from '../../output.js';
import { describeCarried } from '../packages/package-remarks.js';

/** Returns the folders of packages and of files of servers, for the user of this process. */
export function keepingPlaces(configFile: string): KeepingPlaces {
  const { platform, env, execPath } = process;
  const home = homedir();
  const isUsual = configFile === userConfigFile({ env, home, platform });
  const suffix = isUsual ? '' : `-${createHash('sha256').update(configFile).digest('hex').slice(0, 8)}`;
  const { storeFolder } = packageFolders();
  return { platform, home, env, nodePath: execPath, storeFolder, serversFolder: serverFilesFolder(), suffix };
}

/** Copies the files that servers have written beside their programs to the data folder. Throws a `HintedError` if one cannot be copied. */
export function copyKeptFiles(added: readonly PlannedServer[]): void {
  for (const { key = '', kept } of added) {
    if (kept === undefined) continue;
    try {
      const copied = copyKeptFile(kept);
      if (copied !== undefined) tell(`${key}: copied ${shown(copied)} to ${shown(kept.file)}.`);
    } catch (cause) {
      const { reason, hint } = systemFault(cause);
      const message = `the file of ${key} cannot be copied to ${shown(kept.file)}, so nothing was imported: ${reason}`;
      throw new HintedError(message, hint, { cause });
    }
  }
}

/** Says where the file of a server will be, and which files of earlier runs were found. */
export function describeKept(key: string, kept: KeptFile): string[] {
  const [newest, ...others] = kept.earlier;
  const older = others.map((each) => `  older, stays: ${describeFile(each)}`);
  if (newest === undefined) return [`${key}: ${where(kept)}`, '  no file of an earlier run was found'];
  const role = newest.file === kept.file ? 'from an earlier import' : 'newest, is copied';
  return [`${key}: ${where(kept)}`, `  ${role}: ${describeFile(newest)}`, ...older];
}

/** Says where the file of a server that was added by hand will be. A file of an earlier run may belong to another server. */
export function describeNewFile(kept: KeptFile): string[] {
  const { file, earlier } = kept;
  const other = earlier.find((each) => each.file !== file);
  if (other === undefined) return [where(kept)];
  return [
    where(kept),
    `to begin with the file of an earlier run: cp ${JSON.stringify(other.file)} ${JSON.stringify(file)}`,
  ];
}

function where({ variable, file }: KeptFile): string {
  return `its data will be in ${shown(file)} (${variable}), because a file beside its program is lost with the next version`;
}

function describeFile({ file, modifiedMs, bytes }: KeptFile['earlier'][number]): string {
  return `${shown(file)} (${new Date(modifiedMs).toLocaleString('sv')}, ${plural(bytes, 'byte')})`;
}

function shown(file: string): string {
  return withoutHome(file, homedir());
}

/**
 * Copies the files that servers have written beside their programs from the cache of npx to the packages that Trunkline has installed, and
 * returns lines about them. Leaves out servers with a `KeptFile`. Of several folders, copies the one with the latest file.
 */
export async function carryFromNpx(settings: GlobalOptions, plan: readonly PlannedServer[]): Promise<string[]> {
  const { servers, file } = await readConfig(settings);
  const folders = npxFolders(keepingPlaces(file));
  const keys = new Set(plan.filter(({ run }) => run !== undefined && 'package' in run.program).map(({ key }) => key));
  const lines: string[] = [];
  const done = new Set<string>();
  for (const { key, package: used } of servers) {
    const name = used?.request.name ?? '';
    const to = used?.found?.location === 'store' ? installationOf(used.found.program) : undefined;
    if (!keys.has(key) || to === undefined || done.has(to) || needsOf(name)?.ownFile !== undefined) continue;
    done.add(to);
    const found = folders.filter((folder) => existsSync(join(folder, 'node_modules', name)));
    const sources = found.map((from) => ({ from, at: latest(from) })).filter(({ at }) => at > 0);
    const [newest, ...others] = sources.toSorted((one, other) => other.at - one.at);
    if (newest === undefined) continue;
    lines.push(
      `${key} has written files beside its program:`,
      ...describeCarried(newest.from, to, { newerWins: true }),
    );
    lines.push(...others.map(({ from }) => `  older ones stay in ${shown(from)}`));
  }
  return lines;
}

function latest(folder: string): number {
  return Math.max(0, ...writtenIn(folder).map((path) => statSync(join(folder, path)).mtimeMs));
}

/** Returns the folder of the package store in which a program is. */
function installationOf(program: string): string | undefined {
  const { storeFolder } = packageFolders();
  const [name = ''] = relative(realpathSync(storeFolder), program).split(sep);
  return name === '' || name === '..' ? undefined : join(storeFolder, name);
}

/** A server that a client runs, too, and whose file there differs from the file of Trunkline, or is the only one. */
interface TwoFiles {
  readonly key: string;
  readonly client: string;
  /** The file of Trunkline's entry, if it exists. */
  readonly own: EarlierFile | undefined;
  readonly ownFile: string;
  readonly other: EarlierFile;
}

/** Finds the servers of a planned import that have two files. */
export function twoFiles(plan: readonly PlannedServer[], { file, text = '' }: OpenConfig): readonly TwoFiles[] {
  const places = keepingPlaces(file);
  const present = entriesIn(text);
  const two = new Map<string, TwoFiles>();
  for (const { verdict, found, key = '', run } of plan) {
    const entry = runOf(present[key]);
    if (verdict !== 'same' || found.isDisabled || run === undefined || entry === undefined) continue;
    const kept = keepFile(run, key, places);
    const ownFile = literalValue(entry.env[kept?.variable ?? ''], process.env);
    const other = kept?.earlier.find((each) => !each.file.startsWith(dirname(places.serversFolder) + sep));
    if (other === undefined || !ownFile?.startsWith(places.serversFolder + sep)) continue;
    const stat = statSync(ownFile, { throwIfNoEntry: false });
    const own = stat && { file: ownFile, modifiedMs: stat.mtimeMs, bytes: stat.size };
    if (own !== undefined && readFileSync(own.file).equals(readFileSync(other.file))) continue;
    two.set(key, { key, client: found.place.title, own, ownFile, other });
  }
  return [...two.values()];
}

/** Says which of two files `trunkline init` makes Trunkline use: the newer one. */
export function describeTwoFiles(two: TwoFiles): string {
  const { key, client, own, ownFile, other } = two;
  if (own !== undefined && own.modifiedMs >= other.modifiedMs)
    return `${key}: Trunkline uses ${describeFile(own)}; the older data of ${client} stays in ${describeFile(other)}.`;
  const older = own && `, and keeps its own older data in ${shown(olderBeside(ownFile, own.modifiedMs))}`;
  return `${key}: Trunkline copies the newer data of ${client} from ${describeFile(other)} to ${shown(ownFile)}, which it uses${older ?? ''}.`;
}

/** Says which of two files a client uses after an undo, and how to give it the newer one. */
export function describeAfterUndo({ key, client, own, other }: TwoFiles): string[] {
  if (own === undefined) return [];
  const uses = `${key}: ${client} uses ${describeFile(other)} again`;
  if (own.modifiedMs < other.modifiedMs) return [`${uses}; the older data of Trunkline stays in ${describeFile(own)}.`];
  const command = `cp ${JSON.stringify(own.file)} ${JSON.stringify(other.file)}`;
  return [
    `${uses}; the newer data of the time with Trunkline stays in ${describeFile(own)}. To take it along:`,
    `  \`${command}\``,
  ];
}

export function useNewer({ own, ownFile, other }: TwoFiles): void {
  if (own !== undefined && own.modifiedMs >= other.modifiedMs) return;
  copyOver(other.file, ownFile, other.modifiedMs);
}
