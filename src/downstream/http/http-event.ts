import type { SessionEnd } from './sessions.js';

/** What an operator may want to know. Holds nothing that a client sent, no token and no session id. */
export type HttpEvent =
  | { readonly kind: 'listening'; readonly url: string }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly message: string;
      readonly method: string;
      readonly address: string;
    }
  | { readonly kind: 'session-opened'; readonly sessions: number }
  | { readonly kind: 'session-ended'; readonly reason: SessionEnd; readonly sessions: number }
  /** A client did not read: its stream was cut, and what it had not read is what it can resume. */
  | { readonly kind: 'stream-cut'; readonly unwrittenBytes: number }
  | { readonly kind: 'connection-refused'; readonly address: string }
  /** What came was no HTTP, or came too slowly. */
  | { readonly kind: 'connection-failed'; readonly code: string; readonly address: string }
  | { readonly kind: 'failed'; readonly error: unknown };
