import type { Edit, SplicedMessage } from '../json/splice.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../mcp/envelope.js';

/**
 * How a request ended. `at` is when the answer was read, in milliseconds on the clock; `sent` says whether a byte of the
 * request may have reached the child.
 */
export type Outcome =
  | { readonly kind: 'answered'; readonly response: ResponseEnvelope; readonly at: number }
  | { readonly kind: 'failed'; readonly reason: RequestFailure; readonly sent: boolean };

export type RequestFailure =
  /** No answer and no progress for the idle time, or not done within the hard limit. */
  | 'timeout'
  /** The child's process ended. */
  | 'exited'
  /** We stopped the child. */
  | 'stopped'
  /** The child does not read: too many bytes wait for it already. */
  | 'overloaded'
  | 'response_too_large'
  | 'response_malformed'
  /** Whoever asked does not want the answer any more. */
  | 'cancelled';

/** Milliseconds that a request may take. */
export interface RequestTimeouts {
  /** Until the first sign of it, where that is not `idleMs`. */
  readonly firstMs?: number;
  /** Between the request and its answer, counted again from each progress notification. */
  readonly idleMs: number;
  /** In all, whatever progress says. */
  readonly maxMs: number;
}

export interface RequestHandler {
  /** Called exactly once. */
  settle(outcome: Outcome): void;
  /** Called for each notification that moves forward, with how far; absent when nobody asked for progress. */
  progress?(notification: NotificationEnvelope, value: number): void;
  /** The lease that goes with the request's message. */
  readonly lease?: SplicedMessage['lease'];
  /** How far another process had got with it: only what is beyond moves forward. */
  readonly progressed?: number | undefined;
}

/** A request under way. */
export interface SentRequest {
  /** Milliseconds on the clock. */
  readonly sentAt: number;
  /**
   * Settles the request as cancelled, then tells the child; a late answer is dropped.
   *
   * `notice` is the client's own notification, whose reason and `_meta` are kept but for the edits.
   */
  cancel(notice?: NotificationEnvelope, edits?: readonly Edit[]): void;
  /**
   * The answer said that the request has become a task: its progress goes on to be reported until the function that is
   * returned is called.
   */
  keepProgress(): () => void;
}
