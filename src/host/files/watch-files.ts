import { existsSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type FSWatcher, watch } from 'chokidar';
import type { Cancel, Clock } from '../../wire/timing/clock.js';

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
  /** Resolves when the watcher notices every further change. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** Debounce time, because editors write in several steps. */
const SETTLE_MS = 100;
/** Longest delay of a report, even if a program writes all the time. */
const MAX_SETTLE_MS = 1_000;
/** Delay before the report of a missing file, because a file that is being replaced may be missing for a moment. */
const ABSENT_MS = 1_000;

/**
 * Reports files that are written in place, replaced, removed and created again, or reached through another symbolic link.
 * The watcher does not keep the process alive.
 *
 * Watches folders, because a watcher of a file would stay with the old file when the file is replaced.
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
  /** Watches again if symbolic links have new targets, or if folders have appeared or disappeared. */
  const follow = () => {
    const now = targetsOf(files);
    if (isDeepStrictEqual(now, targets)) return;
    targets = now;
    void watcher.close();
    watcher = watchTargets(targets, onEvent, onError);
    // A change may have happened before the new watcher was ready.
    watcher.once('ready', onEvent);
  };
  const ready = new Promise<void>((done) =>
    watcher.once('ready', () => {
      // A folder may have appeared before the watcher was ready.
      follow();
      done();
    }),
  );
  return {
    ready,
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
    ignored: (path) => !folders.has(path) && !entries.has(compared(path)),
  });
  // Uses raw events, too, because chokidar merges quick changes and can lose the last one.
  const names = new Set([...entries].map((entry) => basename(entry)));
  watcher.on('raw', (_event, path) => (!path || names.has(basename(compared(path)))) && onEvent());
  return watcher.on('all', onEvent).on('error', onError);
}

/** The folders to watch, and the relevant entries in them. */
interface Targets {
  readonly folders: Set<string>;
  /** As `compared` returns them. */
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
  // Watches the nearest existing parent of a folder that does not exist yet.
  while (!existsSync(folder) && folder !== dirname(folder)) {
    name = basename(folder);
    folder = dirname(folder);
  }
  if (!existsSync(folder)) return;
  const entry = join(realpathSync(folder), name);
  // An entry that is known already can come from a circle of symbolic links.
  if (entries.has(compared(entry))) return;
  folders.add(slashed(dirname(entry)));
  entries.add(compared(entry));
  for (const link of linksAlong(path)) addTargets(link, targets);
}

/** A path with slashes, as chokidar reports paths on all systems. */
function slashed(path: string): string {
  return path.replaceAll('\\', '/');
}

/**
 * The form in which paths are compared. Windows and macOS report the name on disk, whose letters may have another case than the
 * configured name, and on macOS another composition (`ü` as one character or as two). Elsewhere, a change of such a file is one
 * needless report.
 */
function compared(path: string): string {
  return slashed(path).normalize('NFC').toLowerCase();
}

/** The symbolic links on a path. Each of them can be replaced: the link to the file, or to one of its folders. */
function linksAlong(path: string): string[] {
  const along: string[] = [];
  const target = linkAt(path);
  if (target !== undefined) along.push(resolve(dirname(path), target));
  // Links in the root folder, such as /tmp on macOS, are not watched, because they do not change.
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
