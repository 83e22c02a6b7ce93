/** One mistake of a configuration file. Lines and columns count from 1. */
export interface ConfigProblem {
  /** What is wrong and what was expected; never contains the value of a variable, of `env` or of `args`. */
  readonly message: string;
  /** The next step to take, such as "did you mean `timeout`?". */
  readonly hint?: string;
  readonly line?: number;
  readonly column?: number;
}

export type ConfigErrorCode =
  /** There is no file, or none was found. */
  | 'config-not-found'
  /** There is something, but it cannot be read as a file. */
  | 'config-unreadable'
  /** It is not YAML. */
  | 'config-syntax'
  /** It is YAML that does not say what a configuration must say. */
  | 'config-invalid';

/**
 * A configuration file that cannot be used, with every mistake found in it.
 *
 * The message tells the first one as `FILE:LINE:COL: what is wrong; expected X`, its hint on a line of its own.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code: ConfigErrorCode;
  /** Undefined when no file was found at all. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  readonly hint: string | undefined;
  /** In the order of the file, never empty. */
  readonly problems: readonly ConfigProblem[];

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
    this.problems = problems;
  }

  /** All problems in the form of the message, for people. */
  get report(): string {
    return this.problems.map((problem) => formatProblem(this.file, problem)).join('\n');
  }
}

/** `FILE:LINE:COL: message`, and the hint indented below it. */
export function formatProblem(file: string | undefined, { message, hint, line, column }: ConfigProblem): string {
  const place = [file, line, column].filter((part) => part !== undefined).join(':');
  const located = place === '' ? message : `${place}: ${message}`;
  return hint === undefined ? located : `${located}\n  ${hint.replaceAll('\n', '\n  ')}`;
}
