import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';
import {
  copyOver,
  copyWhole,
  olderBeside,
  readJsonFile,
  realPath,
  replaceFileSync,
  statOf,
} from '../../host/files/whole-file.js';
import { isRecord } from '../../wire/json/json-value.js';

/*
 * Finds the files that a server has written into the folder of its own package, and takes them to the folder of another version.
 * npm writes `node_modules/.package-lock.json` at the end of an installation, so files with a later time are those of the server.
 */

/** Files that were carried over, and files that were not, because the target is another file of the server, or lies behind a link. */
export interface CarriedFiles {
  /** Paths in the folders. */
  readonly carried: readonly string[];
  readonly left: readonly string[];
  /** Paths of the copies that keep what a newer file has replaced. */
  readonly kept: readonly string[];
}

/** The paths of the files below an installation folder that were written or changed after the installation. */
export function writtenIn(folder: string): string[] {
  if (statOf(join(folder, MODULES)) === undefined) return [];
  const [installedAt = 0] = ['node_modules/.package-lock.json', 'package-lock.json', 'package.json'].flatMap((name) => {
    return statOf(join(folder, name))?.mtimeMs ?? [];
  });
  // A copy keeps its time, which may be before the installation.
  const copies = [...copiesIn(folder).keys()].filter((path) => statOf(join(folder, path))?.isFile());
  return [...new Set([...later(folder, MODULES, installedAt), ...copies])];
}

/**
 * Copies the files that a server has written in one installation folder of its package to another one, with their times. Never
 * replaces a file that a server has written there, unless that file is an unchanged copy, or the original of the source. Never
 * replaces a program file of the package, because it belongs to its version. With `newerWins`, a newer file also replaces one that a
 * server has written, and a copy of the older file stays beside it.
 */
export function carryOver(from: string, to: string, { newerWins = false } = {}): CarriedFiles {
  const ownSince = statOf(join(to, MODULES, '.package-lock.json'))?.mtimeMs ?? 0;
  const fromCopies = copiesIn(from);
  const toCopies = copiesIn(to);
  const carried: string[] = [];
  const left: string[] = [];
  const kept: string[] = [];
  for (const path of writtenIn(from)) {
    if (!isInside(from, path)) continue;
    const source = lstatSync(join(from, path));
    const target = statOf(join(to, path));
    if (target !== undefined && isSameTime(target.mtimeMs, source.mtimeMs) && target.size === source.size) continue;
    const mayReplace = target === undefined || isReplaceable(path, target, ownSince, [fromCopies, toCopies]);
    const isNewer = !mayReplace && source.mtimeMs > target.mtimeMs && lstatSync(join(to, path)).isFile();
    const wins = newerWins && isNewer && !PROGRAM.test(path);
    if (!(mayReplace || wins) || !copy(join(from, path), to, path, source, wins ? copyOver : copyWhole)) {
      left.push(path);
      continue;
    }
    if (wins) kept.push(olderBeside(path, target.mtimeMs));
    toCopies.set(path, source.mtimeMs);
    carried.push(path);
  }
  if (carried.length > 0) saveCopies(to, from, toCopies);
  return { carried, left, kept };
}

/**
 * Copies files again that the earlier version has changed since they were carried over, because it runs until it is restarted. A
 * file that the new version has changed stays. Reads one small file, which most packages do not have.
 */
export function refreshCopies(folder: string): void {
  const from = sourceOf(folder);
  if (from === undefined) return;
  const copies = copiesIn(folder);
  let isChanged = false;
  for (const [path, copiedMs] of copies) {
    const source = statOf(join(from, path));
    const target = statOf(join(folder, path));
    if (!source?.isFile() || !isInside(from, path) || isSameTime(copiedMs, source.mtimeMs)) continue;
    if (target !== undefined && !isSameTime(copiedMs, target.mtimeMs)) continue;
    if (!copy(join(from, path), folder, path, source)) continue;
    copies.set(path, source.mtimeMs);
    isChanged = true;
  }
  if (isChanged) saveCopies(folder, from, copies);
}

const MODULES = 'node_modules';
/** The folder of the earlier version, and the times of the files that were copied from there, by path. */
export const COPIES = 'carried-over.json';
/** Folders of caches, whose content is made again. */
const CACHES = new Set(['.cache', '.vite', '.vite-temp']);
const PROGRAM = /(?:\.(?:[cm]?[jt]s|map|node|wasm)|[\\/]package(?:-lock)?\.json)$/i;

function* later(folder: string, path: string, installedAt: number): Generator<string> {
  for (const entry of readdirSync(join(folder, path), { withFileTypes: true })) {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) {
      if (!CACHES.has(entry.name)) yield* later(folder, inside, installedAt);
    } else if (entry.isFile() && lstatSync(join(folder, inside)).mtimeMs > installedAt) yield inside;
  }
}

/** Whether a file that exists may be replaced: a file of the package that is no program, or a copy that nobody has changed. */
function isReplaceable(
  path: string,
  { mtimeMs }: Stats,
  ownSince: number,
  copies: readonly ReadonlyMap<string, number>[],
): boolean {
  const isCopy = copies.some((times) => isSameTime(times.get(path), mtimeMs));
  return isCopy || (mtimeMs <= ownSince && !PROGRAM.test(path));
}

/** Compares times in milliseconds, because setting the time of a file rounds it. */
function isSameTime(one: number | undefined, other: number): boolean {
  return one !== undefined && Math.abs(one - other) < 1;
}

function saveCopies(folder: string, from: string, copies: ReadonlyMap<string, number>): void {
  replaceFileSync(join(folder, COPIES), JSON.stringify({ from, files: Object.fromEntries(copies) }));
}

function sourceOf(folder: string): string | undefined {
  const value = readJsonFile(join(folder, COPIES));
  return isRecord(value) && typeof value.from === 'string' ? value.from : undefined;
}

function copiesIn(folder: string): Map<string, number> {
  const value = readJsonFile(join(folder, COPIES));
  const times = Object.entries(isRecord(value) && isRecord(value.files) ? value.files : {});
  const isTime = (entry: [string, unknown]): entry is [string, number] => typeof entry[1] === 'number';
  return new Map(times.filter(isTime).filter(([path]) => normalize(path) === path && path.startsWith(MODULES + sep)));
}

/**
 * Whether a path leads to a file of the packages themselves. The server may have written the list of copies, or links, while it
 * was not confined, and a copy must not bring it files from elsewhere.
 */
function isInside(folder: string, path: string): boolean {
  const real = realPath(join(folder, path));
  const top = realPath(folder);
  // The folder of the packages could be such a link itself.
  const modules = join(top ?? sep, MODULES);
  return real !== undefined && top !== undefined && (real === modules || real.startsWith(modules + sep));
}

/** Copies a file to a path in a folder. Returns false, without a copy, if links lead out of the folder. */
function copy(from: string, folder: string, path: string, { mtimeMs }: Stats, put = copyWhole): boolean {
  const to = join(folder, path);
  let above = dirname(path);
  while (above !== '.' && statOf(join(folder, above)) === undefined) above = dirname(above);
  if (!isInside(folder, above)) return false;
  put(from, to, mtimeMs);
  return true;
}
