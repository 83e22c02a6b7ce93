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
