import { describeHttpRefusal } from '../../host/http/words.js';
import { RPC_CODES } from '../../wire/jsonrpc/message.js';
import { MODERN_CODES } from '../../wire/mcp/revisions.js';

/** A refusal of a message: its status, or 200 for an error in an answer, and the facts about message and session. */
export interface ServerRefusal {
  readonly status: number;
  readonly statusMessage?: string | undefined;
  readonly body: string;
  readonly code?: number | undefined;
  /** Whether the message was sent in a session with an id, or to the stream of a session. */
  readonly isInSession: boolean;
  readonly isInitialize: boolean;
  /** Whether the message is of a revision without sessions. */
  readonly isModern: boolean;
}

/**
 * Meaning of a refusal for the message that it refuses, where neither other credentials nor a pause can cure it:
 *
 * - `new session`: The server does not know the session, so it did not process the message. A new session is worth a try.
 * - `in doubt`: The server may not know the session. Another request in the session shows it.
 * - `other headers`: The headers do not match the message, because the tools have changed.
 * - `older`: The server may be of revision 2024-11-05, which takes no POST at this URL.
 * - `final`: The refusal is the answer, or the failure, of this message.
 *
 * `HttpOutput` first asks for other credentials after 401, and after 403 with a challenge, and `Post` first pauses after 429 and 503
 * with `Retry-After`. These statuses arrive here only if that did not help.
 */
export type Meaning = 'new session' | 'in doubt' | 'other headers' | 'older' | 'final';

/** Words about the session, as in the errors 400 and 422 of servers that were made after the example of the official SDK. */
const ABOUT_SESSION = /\bsession\b|\bnot (?:been )?initiali[sz]ed\b/i;
/** Codes of the errors that servers send with status 200 when they do not know the session. */
const CODES_OF_SESSION: ReadonlySet<number> = new Set([-32_000, -32_001, -32_002, -32_600]);
const MODERN: ReadonlySet<number> = new Set(Object.values(MODERN_CODES));

/**
 * Decides what to do next with a refused message: open another session, send other headers, use the older transport, or nothing.
 * In the last case, `Post` makes the failure: `unavailable` after 429 and 5xx, otherwise `refused`.
 */
export function meaningOf({ status, body, code, isInSession, isInitialize, isModern }: ServerRefusal): Meaning {
  if (isModern) return code === MODERN_CODES.headerMismatch ? 'other headers' : 'final';
  if (isInitialize) {
    const isOlder = (status === 400 || status === 404 || status === 405) && (code === undefined || !MODERN.has(code));
    return isOlder ? 'older' : 'final';
  }
  if (!isInSession) return /initiali[sz]ed/i.test(body) && status !== 200 ? 'new session' : 'final';
  if (status === 200) return CODES_OF_SESSION.has(code ?? 0) || ABOUT_SESSION.test(body) ? 'in doubt' : 'final';
  // A 401 that other credentials cannot help is about the session.
  if (status === 401 || status === 404 || status === 410) return 'new session';
  return status < 500 && ABOUT_SESSION.test(body) ? 'new session' : 'in doubt';
}

/**
 * Whether a server may have processed a message that it refused. An error with 200 may come from a proxy whose server ended
 * during the call, unless the error is about the session or the form of the request.
 */
export function mayHaveRun({ status, code, body }: ServerRefusal): boolean {
  if (status === 200) return code !== RPC_CODES.invalidRequest && !ABOUT_SESSION.test(body);
  return status >= 500 && status !== 503;
}

/** The refusal as a clause with *it* as the subject. */
export function clauseOf({ status, statusMessage, body }: ServerRefusal): string {
  return `it answered ${describeHttpRefusal(status, statusMessage, body)}`;
}
