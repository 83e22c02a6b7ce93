/** An error with the next step for the user. The message is one line. */
export class HintedError extends Error {
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** A mistake in the command line, in the configuration, or in a file or address that they name. The command ends with `EXIT.usage`. */
export class UsageError extends HintedError {
  override readonly name = 'UsageError';
}

/** Exit codes of all commands. Documented in `--help` and in the README. */
export const EXIT = {
  ...{ ok: 0, failed: 1, usage: 2, noHub: 3 },
  /** Of `trunkline call` alone, so that a program can act on them. */
  ...{ unknownTool: 4, denied: 5, notApproved: 6, login: 7, unavailable: 8, timeout: 9, unknown: 10 },
  internal: 70,
} as const;

/** The signals that end every command. */
export const END_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
export type EndSignal = (typeof END_SIGNALS)[number];
