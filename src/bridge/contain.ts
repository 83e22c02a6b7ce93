/** Told of an error of our own that was kept from ending more than what it belongs to. */
export type OnFault = (error: unknown) => void;

/** Hands on an error of our own; without `onFault` to the caller, by throwing it again. */
export function caught(error: unknown, onFault: OnFault | undefined): void {
  if (onFault === undefined) throw error;
  onFault(error);
}

/**
 * Does the work; what it throws goes to `onFault`, and then whoever waits for the outcome can be told by `recover`.
 * Without `onFault` it goes on to the caller.
 */
export function contain(work: () => void, onFault: OnFault | undefined, recover: () => void = () => {}): void {
  try {
    work();
  } catch (error) {
    caught(error, onFault);
    recover();
  }
}

/** The same for work that goes on; resolves in any case unless there is no `onFault`. */
export async function containAsync(
  work: Promise<unknown>,
  onFault: OnFault | undefined,
  recover: () => void = () => {},
): Promise<void> {
  try {
    await work;
  } catch (error) {
    caught(error, onFault);
    recover();
  }
}
