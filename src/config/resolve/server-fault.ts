import type { Path } from '../file/yaml-nodes.js';
import type { ServerProblem } from './config.js';

/**
 * Why one server of the file cannot run; becomes the `problem` of its `ServerConfig`.
 *
 * Neither text may contain the value of a variable, because people and models see both.
 */
export class ServerFault extends Error {
  override readonly name = 'ServerFault';
  /** The next step to take. */
  readonly hint: string;
  /** Path of the fault within the server's entry; empty for the whole entry. */
  readonly path: readonly PropertyKey[];

  constructor(message: string, hint: string, path: readonly PropertyKey[] = []) {
    super(message);
    this.hint = hint;
    this.path = path;
  }
}

/** Returns the result of `read`. If `read` throws a `ServerFault`, the fault is reported at `path` of the entry. */
export function faultsAt<T>(path: readonly PropertyKey[], read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ServerFault ? new ServerFault(error.message, error.hint, path) : error;
  }
}

/** A position in the file, for problems that are found after parsing. */
export interface Place {
  /** From the root of the file. */
  readonly path: Path;
  /** Path of the value in the file if it comes from `defaults`. */
  readonly origin?: Path;
  readonly line: number;
  readonly column: number;
}

/** Adds line and column to a fault. The first of `places` is the place of the entry; the places of its values follow. */
export function locateFault({ message, hint, path }: ServerFault, places: readonly Place[]): ServerProblem {
  const [entry, ...inside] = places;
  if (entry === undefined) throw new Error('locateFault needs the place of the entry');
  const whole = [...entry.path, ...path];
  const isAt = (place: Place) => place.path.length === whole.length && whole.every((step, i) => step === place.path[i]);
  const { origin = whole, line, column } = inside.find(isAt) ?? entry;
  return { message: `${formatPath(origin)}: ${message}`, hint, line, column };
}

/** Formats a path as in `servers.files.args[0]`. */
export function formatPath(path: Path): string {
  return path
    .map((step, depth) => {
      if (typeof step === 'number') return `[${step}]`;
      // `{KEY:value}` lacks a space after the colon, so YAML reads the secret value as a part of the key.
      const name = path[depth - 1] === 'env' && !/^\w+$/.test(String(step)) ? '…' : String(step);
      return depth === 0 ? name : `.${name}`;
    })
    .join('');
}
