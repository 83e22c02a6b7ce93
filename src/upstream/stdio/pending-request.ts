import { readText } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import type { Due } from '../../timing/deadlines.js';
import type { RequestHandler, RequestTimeouts, SentRequest } from '../request.js';

/** Whoever has sent requests and sees them to their end. */
export interface RequestKeeper {
  cancel(request: PendingRequest, notice: NotificationEnvelope | undefined, edits: readonly Edit[]): void;
  /** Goes on to report progress after the answer, until the function that is returned is called. */
  keepProgress(request: PendingRequest): () => void;
}

export interface PendingRequestOptions {
  readonly keeper: RequestKeeper;
  readonly timeouts: RequestTimeouts;
  readonly handler: RequestHandler;
  readonly isCancellable: boolean;
  /** Milliseconds on the clock. */
  readonly now: number;
}

/** A request that waits for its answer, and what its sender can do about it. */
export class PendingRequest implements Due, SentRequest {
  id = 0;
  dueAt: number;
  place: number | undefined = undefined;
  readonly sentAt: number;
  readonly handler: RequestHandler;
  readonly isCancellable: boolean;
  #lastProgress: number;
  readonly #timeouts: RequestTimeouts;
  readonly #keeper: RequestKeeper;

  constructor({ keeper, timeouts, handler, isCancellable, now }: PendingRequestOptions) {
    this.dueAt = now + Math.min(timeouts.firstMs ?? timeouts.idleMs, timeouts.maxMs);
    this.#lastProgress = handler.progressed ?? Number.NEGATIVE_INFINITY;
    this.sentAt = now;
    this.handler = handler;
    this.isCancellable = isCancellable;
    this.#timeouts = timeouts;
    this.#keeper = keeper;
  }

  /** No sign of it makes it last longer. */
  get hardAt(): number {
    return this.sentAt + this.#timeouts.maxMs;
  }

  /** There was a sign of it. */
  prolong(now: number): void {
    this.dueAt = Math.min(now + this.#timeouts.idleMs, this.hardAt);
  }

  /** Passes on progress that moves forward; returns whether it did. Any sign of the request prolongs it. */
  progress(notification: NotificationEnvelope, now: number): boolean {
    this.prolong(now);
    const { bytes, tokens } = notification;
    const value = tokens.progress === undefined ? Number.NaN : Number(readText(bytes, tokens.progress));
    if (!(value > this.#lastProgress)) return false;
    this.#lastProgress = value;
    this.handler.progress?.(notification, value);
    return true;
  }

  cancel(notice?: NotificationEnvelope, edits: readonly Edit[] = []): void {
    this.#keeper.cancel(this, notice, edits);
  }

  keepProgress(): () => void {
    return this.#keeper.keepProgress(this);
  }
}
