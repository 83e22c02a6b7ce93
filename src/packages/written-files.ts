import { copyFileSync, lstatSync, mkdirSync, readdirSync, renameSync, type Stats, utimesSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJsonFile, replaceFileSync, statOf } from '../files/whole-file.js';
import { isRecord } from '../json/json-value.js';

/*
 * Finds the files that a server has written into the folder of its own package, and takes them to the folder of another
 * version. npm writes `node_modules/.package-lock.json` at the end of an installation, so later files are of the server.
 */

/** Files that were carried over, and files that stay, because the server has written another one at the new place. */
export interface CarriedFiles {
  /** Paths in the folders. */
  readonly carried: readonly string[];
  readonly left: readonly string[];
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
 * replaces a file that a server has written there, unless it is an unchanged copy, or the one that was copied here. Program
 * files are left, because they belong to their version.
 */
export function carryOver(from: string, to: string): CarriedFiles {
  const ownSince = statOf(join(to, MODULES, '.package-lock.json'))?.mtimeMs ?? 0;
  const [fromCopies, toCopies] = [copiesIn(from), copiesIn(to)];
  const carried: string[] = [];
  const left: string[] = [];
  for (const path of writtenIn(from)) {
    const source = lstatSync(join(from, path));
    const target = statOf(join(to, path));
    if (target !== undefined && isSameTime(target.mtimeMs, source.mtimeMs) && target.size === source.size) continue;
    const mayReplace = target === undefined || isReplaceable(path, target, ownSince, [fromCopies, toCopies]);
    if (!mayReplace) {
      left.push(path);
      continue;
    }
    copy(join(from, path), join(to, path), source);
    toCopies.set(path, source.mtimeMs);
    carried.push(path);
  }
  if (carried.length > 0) saveCopies(to, from, toCopies);
  return { carried, left };
}

/**
 * Copies again what the earlier version has written since the files were carried over, as it does until it is restarted. A
 * file that the new version has changed stays. Reads one small file, which most packages do not have.
 */
export function refreshCopies(folder: string): void {
  const from = sourceOf(folder);
  if (from === undefined) return;
  const copies = copiesIn(folder);
  let isChanged = false;
  for (const [path, copiedMs] of copies) {
    const [source, target] = [statOf(join(from, path)), statOf(join(folder, path))];
    if (!source?.isFile() || isSameTime(copiedMs, source.mtimeMs)) continue;
    if (target !== undefined && !isSameTime(copiedMs, target.mtimeMs)) continue;
    copy(join(from, path), join(folder, path), source);
    copies.set(path, source.mtimeMs);
    isChanged = true;
  }
  if (isChanged) saveCopies(folder, from, copies);
}

const MODULES = 'node_modules';
/** The folder of the earlier version, and the times of the files that were copied from there, by path. */
const COPIES = 'carried-over.json';
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

/** Whether a file that exists may give way: a file of the package that is no program, or a copy that nobody has changed. */
function isReplaceable(
  path: string,
  { mtimeMs }: Stats,
  ownSince: number,
  copies: readonly ReadonlyMap<string, number>[],
): boolean {
  const isCopy = copies.some((times) => isSameTime(times.get(path), mtimeMs));
  return isCopy || (mtimeMs <= ownSince && !PROGRAM.test(path));
}

/** Setting the time of a file rounds it. */
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
  return new Map(times.filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
}

function copy(from: string, to: string, { mtimeMs }: Stats): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  const draft = `${to}.trunkline.tmp`;
  copyFileSync(from, draft);
  utimesSync(draft, new Date(), mtimeMs / 1_000);
  renameSync(draft, to);
}
