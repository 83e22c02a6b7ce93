import type { Span } from '../json/json-text.js';
import type { BatchFault } from './batch.js';

/**
 * The members whose place in a message has to be known: a name for each path from the root, through objects only.
 *
 * What is not on a path is skipped, never built.
 */
export type WatchedPaths = Readonly<Record<string, readonly string[]>>;

/** Where the watched members of one message stand; absent ones are `undefined`. */
export type Tokens<Paths extends WatchedPaths> = { readonly [Name in keyof Paths]: Span | undefined };

interface Common<Paths extends WatchedPaths> {
  /** What the spans point into: the line, or all that was read with it. */
  readonly bytes: Uint8Array;
  /** The message itself, without white space around it. */
  readonly span: Span;
  readonly tokens: Tokens<Paths>;
}

export interface RequestEnvelope<Paths extends WatchedPaths> extends Common<Paths> {
  readonly kind: 'request';
  readonly id: Span;
  readonly method: string;
  readonly params: Span | undefined;
}

export interface NotificationEnvelope<Paths extends WatchedPaths> extends Common<Paths> {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: Span | undefined;
}

/** Exactly one of `result` and `error` is there. */
export interface ResponseEnvelope<Paths extends WatchedPaths> extends Common<Paths> {
  readonly kind: 'response';
  readonly id: Span;
  readonly result: Span | undefined;
  readonly error: Span | undefined;
}

/** A line that is no message we would pass on. */
export interface Rejection {
  readonly kind: 'rejected';
  readonly reason: RejectionReason;
  readonly bytes: Uint8Array;
  /** The id at the root, a string or a number, when one was seen before the fault. */
  readonly id: Span | undefined;
  /** Whether the line had begun to answer a request, as far as it was read. */
  readonly isAnswer: boolean;
  /** Whether it was meant as a message, as far as it was read: not so what a program prints for people, be it JSON. */
  readonly isMeant: boolean;
  /** Where the elements of a batch stand: not a message, but perhaps several. Only a batch has them. */
  readonly elements?: readonly Span[];
}

export type RejectionReason = BatchFault | 'blank' | 'not-an-object' | 'batch' | 'duplicate-member' | 'not-json-rpc';

export type Envelope<Paths extends WatchedPaths> =
  | RequestEnvelope<Paths>
  | NotificationEnvelope<Paths>
  | ResponseEnvelope<Paths>;
