import { readText, type Span } from '../json/json-text.js';
import type { BatchFault } from './batch.js';

/**
 * The members that the scanner locates in a message: a name for each path from the root, through objects only.
 *
 * The scanner skips everything else and builds no values.
 */
export type WatchedPaths = Readonly<Record<string, readonly string[]>>;

/** The positions of the watched members in one message; `undefined` for absent ones. */
export type Tokens<Paths extends WatchedPaths> = { readonly [Name in keyof Paths]: Span | undefined };

interface Common<Paths extends WatchedPaths> {
  /** The bytes that the spans refer to: the line, or everything that was read with it. */
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

/** Exactly one of `result` and `error` is present. */
export interface ResponseEnvelope<Paths extends WatchedPaths> extends Common<Paths> {
  readonly kind: 'response';
  readonly id: Span;
  readonly result: Span | undefined;
  readonly error: Span | undefined;
}

/** A line that is not a valid message. */
export interface Rejection {
  readonly kind: 'rejected';
  readonly reason: RejectionReason;
  readonly bytes: Uint8Array;
  /** The id at the root, a string or a number, if there is one before the fault. */
  readonly id: Span | undefined;
  /** Whether the line is an answer to a request, as far as it could be read. */
  readonly isAnswer: boolean;
  /**
   * Whether the line is a malformed message, as far as it could be read, and not output for people, which may be JSON
   * too.
   */
  readonly isMeant: boolean;
  /** The elements of a batch. Absent if the line is not a batch. */
  readonly elements?: readonly Span[];
}

export type RejectionReason = BatchFault | 'blank' | 'not-an-object' | 'batch' | 'duplicate-member' | 'not-json-rpc';

export type Envelope<Paths extends WatchedPaths> =
  | RequestEnvelope<Paths>
  | NotificationEnvelope<Paths>
  | ResponseEnvelope<Paths>;

/** An id as the key of a map. Ids with different raw texts have different keys. */
export type IdKey = string | number;

const ZERO = 0x30;
/** The most digits of a number for which the engine allocates no object. */
const MAX_DIGITS = 9;

/**
 * Returns the key of the id at `span`: a number for up to nine digits, which saves making a text of nearly every id,
 * otherwise the raw text.
 */
export function idKey(bytes: Uint8Array, span: Span): IdKey {
  const { start, end } = span;
  const isPadded = bytes[start] === ZERO && end - start > 1;
  if (end - start > MAX_DIGITS || isPadded) return readText(bytes, span);
  let key = 0;
  for (let position = start; position < end; position += 1) {
    const digit = (bytes[position] ?? 0) - ZERO;
    if (digit < 0 || digit > 9) return readText(bytes, span);
    key = key * 10 + digit;
  }
  return key;
}

/** The id of a message as raw JSON: a view of the message's memory. */
export function rawId({ bytes, id }: { readonly bytes: Uint8Array; readonly id: Span }): Uint8Array {
  return bytes.subarray(id.start, id.end);
}
