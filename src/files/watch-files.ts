import { existsSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type FSWatcher, watch } from 'chokidar';
import type { Cancel, Clock } from '../timing/clock.js';

export interface WatchOptions {
  /** Each may be there or not. */
  readonly files: readonly string[];
  readonly clock: Clock;
  /** One of the files may say something else now, or be gone, or be there. */
  readonly onChange: () => void;
  /** What happens to the files cannot be told, or not any more. */
  readonly onError: (error: unknown) => void;
}

export interface FileWatch {
  /** Resolves when nothing is missed any more. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** Editors write in several steps; what they do within this time is one change. */
const SETTLE_MS = 100;
/** Whoever writes all the time is not waited for. */
const LONGEST_STORM_MS = 1_000;
/** A file that is replaced may be missing for a moment. */
const ABSENT_MS = 1_000;

/**
 * Tells when one of the files changed, whichever way: written in place, replaced by another one, removed and made
 * again, or reached by another symbolic link. It keeps no process alive.
 *
 * Folders are watched rather than files: a file that is replaced takes whoever watched it along.
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
  /** Links may lead elsewhere now, and folders may have come or gone. */
  const follow = () => {
    const now = placesOf(files);
    if (isDeepStrictEqual(now, places)) return;
    places = now;
    void watcher.close();
    watcher = watchPlaces(places, happened, onError);
    // What happened before it watched was not seen.
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
  // What chokidar makes of many changes in a moment may lack the last one; what the system told it does not.
  const names = new Set([...entries].map((entry) => basename(entry)));
  watcher.on('raw', (_event, path) => (!path || names.has(basename(path))) && happened());
  return watcher.on('all', happened).on('error', onError);
}

/** Where something happens when a file changes, and to what. */
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
  // Of a folder that is not there yet, the nearest one that is will tell.
  while (!existsSync(folder) && folder !== dirname(folder)) {
    name = basename(folder);
    folder = dirname(folder);
  }
  if (!existsSync(folder)) return;
  const entry = join(realpathSync(folder), name);
  // Links that lead in a circle lead nowhere.
  if (entries.has(slashed(entry))) return;
  folders.add(slashed(dirname(entry)));
  entries.add(slashed(entry));
  for (const link of linksAlong(path)) addPlaces(link, places);
}

/** As chokidar writes paths, on Windows too. */
function slashed(path: string): string {
  return path.replaceAll('\\', '/');
}

/** What the path leads over: a link in the place of the file, or of one of its folders, may be exchanged. */
function linksAlong(path: string): string[] {
  const along: string[] = [];
  const target = linkAt(path);
  if (target !== undefined) along.push(resolve(dirname(path), target));
  // Nobody exchanges what stands at the root, such as a link in the place of /tmp.
  for (let folder = dirname(path); dirname(folder) !== dirname(dirname(folder)); folder = dirname(folder)) {
    if (linkAt(folder) !== undefined) along.push(folder);
  }
  return along;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // No link, or nothing at all.
    return undefined;
  }
}
