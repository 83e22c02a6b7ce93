/** A command line that asks for something that cannot be. Its message is one line; the hint is the next step. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}
