import { promises } from 'node:fs';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { stateIn, statesOf } from './whole-file.js';

export interface WatchOptions {
  /** Paths of files that may or may not exist. */
  readonly files: readonly string[];
  readonly clock: Clock;
  /** Called when one of the files has changed, appeared or disappeared. */
  readonly onChange: () => void;
}

/** Time between two looks, in ms. A change is reported at the next look that finds no other, because editors write in several steps. */
const LOOK_MS = 500;
/** Longest delay of a report, in ms, if a program writes all the time, or if the files are missing, as while one is being replaced. */
const LATEST_MS = 1_000;

/**
 * Reports files that are written in place, replaced, removed and created again, or reached through another symbolic link. Returns
 * the function that ends the watch.
 *
 * Looks at the files from time to time, because systems report no changes that other machines make on shared and mounted folders.
 */
export function watchFiles({ files, clock, onChange }: WatchOptions): Cancel {
  let seen = statesOf(files);
  let changingSince: number | undefined;
  let isOver = false;
  let cancel: Cancel;
  const look = async () => {
    const found: (string | undefined)[] = [];
    // One after another, because a network file system that hangs must not take all threads for file operations.
    for (const file of files) found.push(await promises.stat(file, { bigint: true }).then(stateIn, () => undefined));
    if (isOver) return;
    const now = found.join();
    if (now !== seen) changingSince ??= clock.now();
    const isSettled = now === seen && found.some((state) => state !== undefined);
    seen = now;
    if (changingSince !== undefined && (isSettled || clock.now() - changingSince >= LATEST_MS)) {
      changingSince = undefined;
      onChange();
    }
    plan();
  };
  const plan = () => {
    cancel = clock.schedule(LOOK_MS, () => void look());
  };
  plan();
  return () => {
    isOver = true;
    cancel();
  };
}
