import { RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { EventBus } from '../observe/events/events.js';
import type { Code } from './codes.js';

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

/** Does the same for asynchronous work. Rejects only if there is no `onInternalError`. */
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

/** Returns the answer to a request that an internal error has failed. Only the log has the internal error itself. */
export function internalError(): RpcError {
  const message =
    'Trunkline failed at this request because of a bug of its own; its log tells more. Whether the request took effect is unknown: check before repeating it.';
  const code: Code = 'TL-CALL-INTERNAL';
  return new RpcError(RPC_CODES.internalError, message, { reason: 'internal', code, outcome: 'unknown' });
}

/** Counts internal errors for the status, and publishes those that an error boundary caught. */
export class InternalErrorLog {
  readonly #events: EventBus;
  #count = 0;

  constructor(events: EventBus) {
    this.#events = events;
    events.subscribe('internal.error', () => {
      this.#count += 1;
    });
  }

  get count(): number {
    return this.#count;
  }

  readonly onInternalError: OnInternalError = (error) => void this.#events.emit({ kind: 'internal.error', error });
}
