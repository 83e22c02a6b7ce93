import type { SessionEnd } from './sessions.js';

/** What the HTTP transport logs. Contains nothing that a client sent, no token and no session id. */
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
  /** A client did not read its stream, which was cut. The client can resume after the last event it read. */
  | { readonly kind: 'stream-cut'; readonly unwrittenBytes: number }
  | { readonly kind: 'connection-refused'; readonly address: string }
  /** The input was not HTTP, or came too slowly. */
  | { readonly kind: 'connection-failed'; readonly code: string; readonly address: string }
  | { readonly kind: 'failed'; readonly error: unknown };
