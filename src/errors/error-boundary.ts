/** Receives an internal error that an error boundary caught. */
export type OnInternalError = (error: unknown) => void;

/** Passes an internal error to `onInternalError`. Throws it if there is none. */
export function reportInternalError(error: unknown, onInternalError: OnInternalError | undefined): void {
  if (onInternalError === undefined) throw error;
  onInternalError(error);
}

/**
 * Runs `work`. Passes an error that it throws to `onInternalError`, and then calls `recover`, for example to answer the request
 * that failed. Throws the error if there is no `onInternalError`.
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

/** The same for asynchronous work. Rejects only if there is no `onInternalError`. */
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
