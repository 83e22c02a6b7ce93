/** Told of an error of our own that was kept from ending more than what it belongs to. */
export type OnInternalError = (error: unknown) => void;

/** Hands on an error of our own; without `onInternalError` to the caller, by throwing it again. */
export function reportInternalError(error: unknown, onInternalError: OnInternalError | undefined): void {
  if (onInternalError === undefined) throw error;
  onInternalError(error);
}

/**
 * Does the work; what it throws goes to `onInternalError`, and then whoever waits for the outcome can be told by `recover`.
 * Without `onInternalError` it goes on to the caller.
 */
export function withErrorBoundary(
  work: () => void,
  onInternalError: OnInternalError | undefined,
  recover: () => void = () => {},
): void {
  try {
    work();
  } catch (error) {
    reportInternalError(error, onInternalError);
    recover();
  }
}

/** The same for work that goes on; resolves in any case unless there is no `onInternalError`. */
export async function withErrorBoundaryAsync(
  work: Promise<unknown>,
  onInternalError: OnInternalError | undefined,
  recover: () => void = () => {},
): Promise<void> {
  try {
    await work;
  } catch (error) {
    reportInternalError(error, onInternalError);
    recover();
  }
}
