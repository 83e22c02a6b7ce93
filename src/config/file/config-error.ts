/** Keys and indexes from the root of a file to a value. */
export type Path = readonly PropertyKey[];

/** One mistake in a configuration file. Lines and columns count from 1. */
export interface ConfigProblem {
  /** Describes the mistake and the expected value. Never contains a value of a variable, of `env` or of `args`. */
  readonly message: string;
  /** The next step to take, such as "did you mean `timeout`?". */
  readonly hint?: string;
  readonly line?: number;
  readonly column?: number;
}

export type ConfigErrorCode =
  /** The file does not exist, or no file was found. */
  | 'config-not-found'
  /** The path exists, but cannot be read as a file. */
  | 'config-unreadable'
  | 'config-syntax'
  /** Another program has changed the file since it was read, so nothing was written. */
  | 'config-changed'
  /** The file is valid YAML, but not a valid configuration. */
  | 'config-invalid';

/**
 * A configuration file that cannot be used, with all mistakes in it.
 *
 * The message describes the first mistake as `FILE:LINE:COL: what is wrong; expected X`, with the hint on a separate line.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code: ConfigErrorCode;
  /** Undefined when no file was found at all. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  readonly hint: string | undefined;
  /** At most 101, in the order of the file. If the file has more, the last one says how many are not listed. */
  readonly problems: readonly [ConfigProblem, ...ConfigProblem[]];

  constructor(
    code: ConfigErrorCode,
    file: string | undefined,
    problems: readonly [ConfigProblem, ...ConfigProblem[]],
    options?: ErrorOptions,
  ) {
    const [first] = problems;
    super(formatProblem(file, first), options);
    this.code = code;
    this.file = file;
    this.line = first.line;
    this.column = first.column;
    this.hint = first.hint;
    this.problems = bounded(problems);
  }

  /** All problems, each in the form of the message. */
  get report(): string {
    return this.problems.map((problem) => formatProblem(this.file, problem)).join('\n');
  }
}

/** Bounds the report in log and status, because a file can have a mistake in every second character. */
const MAX_PROBLEMS = 100;

function bounded(problems: ConfigError['problems']): ConfigError['problems'] {
  const [first, ...others] = problems;
  if (others.length <= MAX_PROBLEMS) return problems;
  const more = others.length - MAX_PROBLEMS + 1;
  return [first, ...others.slice(0, MAX_PROBLEMS - 1), { message: `${more} more mistakes are not listed` }];
}

/** Returns `FILE:LINE:COL: message`, with the hint indented on the next line. */
export function formatProblem(file: string | undefined, { message, hint, line, column }: ConfigProblem): string {
  const position = [file, line, column].filter((part) => part !== undefined).join(':');
  const located = position === '' ? message : `${position}: ${message}`;
  return hint === undefined ? located : `${located}\n  ${hint.replaceAll('\n', '\n  ')}`;
}

/**
 * The reason why one server of the file cannot run; becomes the `problem` of its `ServerConfig`. Message and hint must not
 * contain the value of a variable, because users and models see them.
 */
export class ServerFault extends Error {
  override readonly name = 'ServerFault';
  readonly hint: string;
  /** Path of the fault within the server's entry; empty for the whole entry. */
  readonly path: readonly PropertyKey[];
  /**
   * Set if a variable of a user is missing, which the configuration file cannot set. `one`: the user who is served lacks it.
   * `any`: the server was resolved for no user.
   */
  readonly isOfUser: 'any' | 'one' | undefined;

  constructor(message: string, hint: string, path: readonly PropertyKey[] = [], isOfUser?: 'any' | 'one') {
    super(message);
    this.hint = hint;
    this.path = path;
    this.isOfUser = isOfUser;
  }
}

/** Returns the result of `read`. A `ServerFault` of `read` is thrown with `path` as its path. */
export function faultsAt<T>(path: readonly PropertyKey[], read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ServerFault ? new ServerFault(error.message, error.hint, path, error.isOfUser) : error;
  }
}

/** The position of a value in the file, for problems that are found after parsing. */
export interface PathPosition {
  /** From the root of the file. */
  readonly path: Path;
  /** The path below `defaults`, for a value that the entry takes from there. */
  readonly inDefaults?: Path;
  readonly line: number;
  readonly column: number;
}

/** The reason why one server of a valid file cannot run, with its position. The other servers are not affected. */
export interface ServerProblem {
  readonly message: string;
  readonly hint: string;
  readonly line: number;
  readonly column: number;
  /** See `ServerFault`. */
  readonly isOfUser?: 'any' | 'one';
}

/** Adds line and column to a fault. `positions` begins with the position of the entry; those of its values follow. */
export function locateFault(
  { message, hint, path, isOfUser }: ServerFault,
  positions: readonly PathPosition[],
): ServerProblem {
  const [entry, ...inside] = positions;
  if (entry === undefined) throw new Error('locateFault needs the position of the entry');
  const whole = [...entry.path, ...path];
  const isAt = (position: PathPosition) =>
    position.path.length === whole.length && whole.every((step, i) => step === position.path[i]);
  const { inDefaults, line, column } = inside.find(isAt) ?? entry;
  const located = { message: `${formatPath(inDefaults ?? whole)}: ${message}`, hint, line, column };
  return isOfUser ? { ...located, isOfUser } : located;
}

/** Formats a path as in `servers.files.args[0]`. */
export function formatPath(path: Path): string {
  return path
    .map((step, depth) => {
      if (typeof step === 'number') return `[${step}]`;
      // YAML reads `{KEY:value}`, without a space, as one key. The value in it may be a secret, so such a name is not shown.
      const name = path[depth - 1] === 'env' && !/^\w+$/.test(String(step)) ? '…' : String(step);
      return depth === 0 ? name : `.${name}`;
    })
    .join('');
}
