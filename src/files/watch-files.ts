import { existsSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type FSWatcher, watch } from 'chokidar';
import type { Cancel, Clock } from '../timing/clock.js';

export interface WatchOptions {
  /** Paths of files that may or may not exist. */
  readonly files: readonly string[];
  readonly clock: Clock;
  /** Called when one of the files may have changed, appeared or disappeared. */
  readonly onChange: () => void;
  /** Called when the files cannot be watched. */
  readonly onError: (error: unknown) => void;
}

export interface FileWatch {
  /** Resolves when every later change is noticed. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** Editors write in several steps; steps within this time count as one change. */
const SETTLE_MS = 100;
/** A program that writes all the time delays the notice by this much at most. */
const MAX_SETTLE_MS = 1_000;
/** A file that is being replaced may be missing for a moment. */
const ABSENT_MS = 1_000;

/**
 * Reports changes of files: written in place, replaced, removed and created again, or reached through another symbolic
 * link. The watcher does not keep the process alive.
 *
 * Folders are watched instead of files, since a watcher of a file follows the old file when it is replaced.
 */
export function watchFiles({ files, clock, onChange, onError }: WatchOptions): FileWatch {
  let cancel: Cancel = () => {};
  let changingSince: number | undefined;
  let isClosed = false;

  const plan = (delayMs: number, task: () => void) => {
    cancel();
    cancel = clock.schedule(delayMs, task);
  };
  const onEvent = () => {
    if (isClosed) return;
    changingSince ??= clock.now();
    plan(Math.min(SETTLE_MS, Math.max(0, changingSince + MAX_SETTLE_MS - clock.now())), settled);
  };
  const settled = () => {
    changingSince = undefined;
    follow();
    if (files.some((file) => existsSync(file))) onChange();
    else plan(ABSENT_MS, onChange);
  };
  let targets = targetsOf(files);
  let watcher = watchTargets(targets, onEvent, onError);
  /** Symbolic links may have a new target, and folders may have appeared or disappeared. */
  const follow = () => {
    const now = targetsOf(files);
    if (isDeepStrictEqual(now, targets)) return;
    targets = now;
    void watcher.close();
    watcher = watchTargets(targets, onEvent, onError);
    // The new watcher has not seen what happened before it was ready.
    watcher.once('ready', onEvent);
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

function watchTargets({ folders, entries }: Targets, onEvent: () => void, onError: WatchOptions['onError']): FSWatcher {
  const watcher = watch([...folders], {
    persistent: false,
    ignoreInitial: true,
    followSymlinks: false,
    depth: 0,
    ignored: (path) => !folders.has(path) && !entries.has(path),
  });
  // chokidar merges changes in quick succession and can lose the last one; its raw events are complete.
  const names = new Set([...entries].map((entry) => basename(entry)));
  watcher.on('raw', (_event, path) => (!path || names.has(basename(path))) && onEvent());
  return watcher.on('all', onEvent).on('error', onError);
}

/** The folders to watch, and the entries in them that matter. */
interface Targets {
  readonly folders: Set<string>;
  readonly entries: Set<string>;
}

function targetsOf(files: readonly string[]): Targets {
  const targets: Targets = { folders: new Set(), entries: new Set() };
  for (const file of files) addTargets(resolve(file), targets);
  return targets;
}

function addTargets(path: string, targets: Targets): void {
  const { folders, entries } = targets;
  let folder = dirname(path);
  let name = basename(path);
  // For a folder that does not exist yet, the nearest existing parent is watched.
  while (!existsSync(folder) && folder !== dirname(folder)) {
    name = basename(folder);
    folder = dirname(folder);
  }
  if (!existsSync(folder)) return;
  const entry = join(realpathSync(folder), name);
  // Stops at symbolic links that form a circle.
  if (entries.has(slashed(entry))) return;
  folders.add(slashed(dirname(entry)));
  entries.add(slashed(entry));
  for (const link of linksAlong(path)) addTargets(link, targets);
}

/** chokidar reports paths with slashes, on Windows too. */
function slashed(path: string): string {
  return path.replaceAll('\\', '/');
}

/** Symbolic links on the path, in place of the file or of one of its folders: each of them can be replaced. */
function linksAlong(path: string): string[] {
  const along: string[] = [];
  const target = linkAt(path);
  if (target !== undefined) along.push(resolve(dirname(path), target));
  // Links in the root folder, such as /tmp on macOS, are not watched: they do not change.
  for (let folder = dirname(path); dirname(folder) !== dirname(dirname(folder)); folder = dirname(folder)) {
    if (linkAt(folder) !== undefined) along.push(folder);
  }
  return along;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // Not a link, or missing.
    return undefined;
  }
}
