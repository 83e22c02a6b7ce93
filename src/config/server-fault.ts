import type { ServerProblem } from './config.js';
import { formatPath } from './format-path.js';
import type { Path } from './yaml-source.js';

/**
 * Why one server of the file cannot run; becomes the `problem` of its `ServerConfig`.
 *
 * Neither text may contain the value of a variable: both are shown to people and to models.
 */
export class ServerFault extends Error {
  override readonly name = 'ServerFault';
  /** The next step to take. */
  readonly hint: string;
  /** Where the fault is, below the server's entry; empty for the entry as a whole. */
  readonly path: readonly PropertyKey[];

  constructor(message: string, hint: string, path: readonly PropertyKey[] = []) {
    super(message);
    this.hint = hint;
    this.path = path;
  }
}

/** Returns what `read` returns; a `ServerFault` that it throws is about the value at `path` of the entry. */
export function faultsAt<T>(path: readonly PropertyKey[], read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ServerFault ? new ServerFault(error.message, error.hint, path) : error;
  }
}

/** Position of an entry or of a value in the file, for faults that are found after the file was parsed. */
export interface Place {
  /** From the root of the file. */
  readonly path: Path;
  readonly line: number;
  readonly column: number;
}

/** The fault with its place in the file. The first of `places` is the entry's own; those of its values follow. */
export function locateFault({ message, hint, path }: ServerFault, places: readonly Place[]): ServerProblem {
  const [entry, ...inside] = places;
  if (entry === undefined) throw new Error('An entry without a place');
  const whole = [...entry.path, ...path];
  const isAt = (place: Place) => place.path.length === whole.length && whole.every((step, i) => step === place.path[i]);
  const { line, column } = inside.find(isAt) ?? entry;
  return { message: `${formatPath(whole)}: ${message}`, hint, line, column };
}
