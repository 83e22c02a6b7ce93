/** Receives an internal error that an error boundary caught. */
export type OnInternalError = (error: unknown) => void;

/** Passes an internal error to `onFault`. Throws it if there is none. */
export function reportInternalError(error: unknown, onFault: OnInternalError | undefined): void {
  if (onFault === undefined) throw error;
  onFault(error);
}

/**
 * Runs `work`. Passes an error that it throws to `onFault`, and then calls `recover`, for example to answer the request
 * that failed. Throws the error if there is no `onFault`.
 */
export function withErrorBoundary(
  work: () => void,
  onFault: OnInternalError | undefined,
  recover: () => void = () => {},
): void {
  try {
    work();
  } catch (error) {
    reportInternalError(error, onFault);
    recover();
  }
}

/** The same for asynchronous work. Rejects only if there is no `onFault`. */
export async function withErrorBoundaryAsync(
  work: Promise<unknown>,
  onFault: OnInternalError | undefined,
  recover: () => void = () => {},
): Promise<void> {
  try {
    await work;
  } catch (error) {
    reportInternalError(error, onFault);
    recover();
  }
}
