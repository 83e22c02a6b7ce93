/** Told of an error of our own that was kept from ending more than what it belongs to. */
export type OnInternalError = (error: unknown) => void;

/** Hands on an error of our own; without `onFault` to the caller, by throwing it again. */
export function reportInternalError(error: unknown, onFault: OnInternalError | undefined): void {
  if (onFault === undefined) throw error;
  onFault(error);
}

/**
 * Does the work; what it throws goes to `onFault`, and then whoever waits for the outcome can be told by `recover`.
 * Without `onFault` it goes on to the caller.
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

/** The same for work that goes on; resolves in any case unless there is no `onFault`. */
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
