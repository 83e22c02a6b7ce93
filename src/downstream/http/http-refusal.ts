import type { Code } from '../../host/errors/codes.js';
import type { RefusedName } from '../../host/observe/events/events.js';
import { splice } from '../../wire/json/splice.js';
import { NULL_ID, RPC_CODES, RpcError, rpcErrorMessage } from '../../wire/jsonrpc/message.js';
import type { Loss } from '../../wire/mcp/lost-request.js';
import { viewAt } from './http-client.js';

/** An HTTP error answer. The message never repeats text of the client. */
export interface HttpRefusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The JSON-RPC code, if the status does not determine it. */
  readonly code?: number;
  readonly data?: unknown;
  /** The id of the refused request as raw JSON, if it was read. */
  readonly id?: Uint8Array;
  /** The refused name, for the operator only. */
  readonly named?: RefusedName;
}

export function refusalBody({ status, message, data, id = NULL_ID, code = codeOf(status) }: HttpRefusal): Buffer {
  return Buffer.from(splice(rpcErrorMessage(id, new RpcError(code, message, data))));
}

function codeOf(status: number): number {
  return status < 500 ? RPC_CODES.invalidRequest : RPC_CODES.internalError;
}

/** `Retry-After` in whole seconds, at least 1. */
export function retryAfter(waitMs: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) };
}

export const NOT_FOUND: HttpRefusal = { status: 404, message: 'Not found' };
export const FAILED: HttpRefusal = { status: 500, message: 'Internal error' };
export const MISSING_SESSION: HttpRefusal = { status: 400, message: 'Mcp-Session-Id is missing' };
export const BATCH_WITHOUT_SESSION: HttpRefusal = {
  status: 400,
  message: 'A batch needs Mcp-Session-Id; initialize comes alone',
};
export const UNKNOWN_SESSION: HttpRefusal = {
  status: 404,
  message: 'There is no such session; start a new one with initialize',
};
const UNKNOWN_SERVER: HttpRefusal = { status: 404, message: 'There is no such server' };
const UNKNOWN_VIEW: HttpRefusal = {
  status: 404,
  message: 'There is no such view; the configuration names the views below `views:`',
};
/** For a user whose groups have none of the views. The refusal reveals no view. */
export const NO_GROUP: HttpRefusal = { status: 403, message: 'Nothing is open to your groups; ask the operator' };
export const FOR_MACHINES: HttpRefusal = {
  status: 403,
  message: 'This is for machines with a token of their own, because it is about all users',
};
export const FULL: HttpRefusal = { status: 503, message: 'Too many sessions', headers: retryAfter(30_000) };
/** Not 404, because most clients do not open another session then. */
export const NOT_RESUMED: HttpRefusal = {
  status: 503,
  message: 'The session cannot be resumed now, because its server does not run',
  headers: retryAfter(5_000),
};
export const OVERLOADED: HttpRefusal = {
  status: 503,
  message: 'The gateway receives too much data at once',
  headers: retryAfter(1_000),
};
export const NOTHING_TO_RESUME: HttpRefusal = { status: 400, message: 'Last-Event-ID names no event to resume from' };
export const ONLY_POST: HttpRefusal = {
  status: 405,
  message: 'Only POST is allowed without Mcp-Session-Id',
  headers: { allow: 'POST' },
};
export const NO_SUCH_METHOD: HttpRefusal = {
  status: 405,
  message: 'Method not allowed',
  headers: { allow: 'POST, GET, DELETE' },
};
/** Answer to the requests in flight of a session that ends. Clients begin a new session after a 404. */
export const GONE: HttpRefusal = { status: 404, message: 'The session has ended' };
/** Answer to the requests in flight of a session that another gateway serves now. None of them had an effect. */
export const MOVED: HttpRefusal = {
  status: 503,
  message: 'Another gateway serves this now; try again',
  headers: retryAfter(1_000),
};
export const SHUTTING_DOWN: HttpRefusal = { status: 503, message: 'Shutting down', headers: { 'retry-after': '5' } };

/** The reason for which another process has lost a request. */
export const INSTANCE_LOST: Loss = {
  text: 'The process of Trunkline that had this call ended, or its connection broke, before it answered. Whether the call took effect is unknown: check before repeating it.',
  facts: { reason: 'instance_lost', code: 'TL-CALL-INSTANCE-LOST' satisfies Code, sent: true, outcome: 'unknown' },
};

export function unknownEndpoint(endpoint: string | undefined): HttpRefusal {
  return viewAt(endpoint) === undefined ? UNKNOWN_SERVER : UNKNOWN_VIEW;
}
