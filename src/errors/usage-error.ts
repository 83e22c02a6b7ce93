/** A mistake in the command line. The message is one line; the hint is the next step for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** Exit codes of all commands. Documented in `--help` and in the README. */
export const EXIT = { ok: 0, failed: 1, usage: 2, noHub: 3, internal: 70 } as const;
