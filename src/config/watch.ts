import { existsSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type FSWatcher, watch } from 'chokidar';
import type { Cancel, Clock } from '../timing/clock.js';

export interface WatchOptions {
  /** Paths of files, which need not exist. */
  readonly files: readonly string[];
  readonly clock: Clock;
  /** Called when one of the files may have been changed, created or removed. */
  readonly onChange: () => void;
  /** Called when the files cannot be watched, or cannot be watched any more. */
  readonly onError: (error: unknown) => void;
}

export interface FileWatch {
  /** Resolves when the watch is active; it misses no later change. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** Debounce: editors write in several steps, and all steps within this time count as one change. */
const SETTLE_MS = 100;
/** Upper limit of the debounce, for files that are written all the time. */
const LONGEST_STORM_MS = 1_000;
/** How long a file may be missing while an editor replaces it. */
const ABSENT_MS = 1_000;

/**
 * Reports changes of files: a file is written in place, replaced, removed and created again, or reached through another
 * symbolic link. The watch does not keep the process alive.
 *
 * Watches folders instead of files, because a watch on a file follows the old file when another one replaces it.
 */
export function watchFiles({ files, clock, onChange, onError }: WatchOptions): FileWatch {
  let cancel: Cancel = () => {};
  let stormSince: number | undefined;
  let isClosed = false;

  const plan = (delayMs: number, task: () => void) => {
    cancel();
    cancel = clock.schedule(delayMs, task);
  };
  const happened = () => {
    if (isClosed) return;
    stormSince ??= clock.now();
    plan(Math.min(SETTLE_MS, Math.max(0, stormSince + LONGEST_STORM_MS - clock.now())), settled);
  };
  const settled = () => {
    stormSince = undefined;
    follow();
    if (files.some((file) => existsSync(file))) onChange();
    else plan(ABSENT_MS, onChange);
  };
  let places = placesOf(files);
  let watcher = watchPlaces(places, happened, onError);
  /** Looks up the folders again: links may lead to other folders now, and folders may exist or be gone. */
  const follow = () => {
    const now = placesOf(files);
    if (isDeepStrictEqual(now, places)) return;
    places = now;
    void watcher.close();
    watcher = watchPlaces(places, happened, onError);
    // The new watcher has not seen changes from before it was ready.
    watcher.once('ready', happened);
  };
  return {
    ready: new Promise((done) => watcher.once('ready', () => done())),
    close: async () => {
      isClosed = true;
      cancel();
      await watcher.close();
    },
  };
}

function watchPlaces({ folders, entries }: Places, happened: () => void, onError: WatchOptions['onError']): FSWatcher {
  const watcher = watch([...folders], {
    persistent: false,
    ignoreInitial: true,
    followSymlinks: false,
    depth: 0,
    ignored: (path) => !folders.has(path) && !entries.has(path),
  });
  // chokidar coalesces fast changes and may drop the last one; the raw events of the system include it.
  const names = new Set([...entries].map((entry) => basename(entry)));
  watcher.on('raw', (_event, path) => (!path || names.has(basename(path))) && happened());
  return watcher.on('all', happened).on('error', onError);
}

/** The folders to watch, and the entries in them that count. */
interface Places {
  readonly folders: Set<string>;
  readonly entries: Set<string>;
}

function placesOf(files: readonly string[]): Places {
  const places: Places = { folders: new Set(), entries: new Set() };
  for (const file of files) addPlaces(resolve(file), places);
  return places;
}

function addPlaces(path: string, places: Places): void {
  const { folders, entries } = places;
  let folder = dirname(path);
  let name = basename(path);
  // If the folder does not exist yet, its nearest existing ancestor is watched.
  while (!existsSync(folder) && folder !== dirname(folder)) {
    name = basename(folder);
    folder = dirname(folder);
  }
  if (!existsSync(folder)) return;
  const entry = join(realpathSync(folder), name);
  // A circle of links leads to no file.
  if (entries.has(slashed(entry))) return;
  folders.add(slashed(dirname(entry)));
  entries.add(slashed(entry));
  for (const link of linksAlong(path)) addPlaces(link, places);
}

/** The path with slashes, as chokidar writes paths on Windows too. */
function slashed(path: string): string {
  return path.replaceAll('\\', '/');
}

/** The links on the path, including the target of a link in place of the file. Each link may be replaced. */
function linksAlong(path: string): string[] {
  const along: string[] = [];
  const target = linkAt(path);
  if (target !== undefined) along.push(resolve(dirname(path), target));
  // Links at the root, such as /tmp on macOS, do not change.
  for (let folder = dirname(path); dirname(folder) !== dirname(dirname(folder)); folder = dirname(folder)) {
    if (linkAt(folder) !== undefined) along.push(folder);
  }
  return along;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // The path is not a link, or does not exist.
    return undefined;
  }
}
