import { readText, stringAt } from '../json/json-text.js';
import type { SplicedMessage } from '../json/splice.js';
import type * as jsonrpc from '../jsonrpc/envelope-scanner.js';
import { EnvelopeScanner } from '../jsonrpc/envelope-scanner.js';
import { NULL_ID, RPC_CODES, RpcError, rpcErrorMessage } from '../jsonrpc/message.js';

/** The key in `_meta` that names the task of a message. */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** The members that the gateway reads or replaces in MCP messages, for both directions and both eras. */
const WATCHED = {
  /** Of `tools/call` and `prompts/get`: the exposed name toward the gateway, the original name toward a server. */
  name: ['params', 'name'],
  uri: ['params', 'uri'],
  /** Of `tools/call` and `prompts/get`. */
  arguments: ['params', 'arguments'],
  refName: ['params', 'ref', 'name'],
  refUri: ['params', 'ref', 'uri'],
  /** The requested page. */
  cursor: ['params', 'cursor'],
  /** `tasks/*` and `notifications/tasks/status`. */
  taskId: ['params', 'taskId'],
  status: ['params', 'status'],
  /** Present if the request is to become a task. */
  task: ['params', 'task'],
  /** The token for progress notifications of this request. */
  requestProgressToken: ['params', '_meta', 'progressToken'],
  relatedTask: ['params', '_meta', RELATED_TASK, 'taskId'],
  /** Present in every request of a modern client, in none of a legacy one. */
  eraVersion: ['params', '_meta', 'io.modelcontextprotocol/protocolVersion'],
  eraClientInfo: ['params', '_meta', 'io.modelcontextprotocol/clientInfo'],
  eraCapabilities: ['params', '_meta', 'io.modelcontextprotocol/clientCapabilities'],
  eraLogLevel: ['params', '_meta', 'io.modelcontextprotocol/logLevel'],
  requestMeta: ['params', '_meta'],
  /** Input that a modern client sends with the repeated call. */
  inputResponses: ['params', 'inputResponses'],
  /** State that the client got with the request for input. */
  requestState: ['params', 'requestState'],
  /** `subscriptions/listen` and its acknowledgment: the filter. */
  notifications: ['params', 'notifications'],
  /** Modern notifications: the id of the `subscriptions/listen` request that they belong to. */
  subscriptionId: ['params', '_meta', 'io.modelcontextprotocol/subscriptionId'],
  /** `initialize`. */
  protocolVersion: ['params', 'protocolVersion'],
  /** `notifications/progress`. */
  progressToken: ['params', 'progressToken'],
  progress: ['params', 'progress'],
  /** `elicitation/create`. */
  mode: ['params', 'mode'],
  elicitationId: ['params', 'elicitationId'],
  /** `initialize`. */
  capabilities: ['params', 'capabilities'],
  clientInfo: ['params', 'clientInfo'],
  /** `logging/setLevel`, `notifications/message`. */
  level: ['params', 'level'],
  /** `notifications/cancelled`. */
  requestId: ['params', 'requestId'],
  nextCursor: ['result', 'nextCursor'],
  resultTools: ['result', 'tools'],
  resultPrompts: ['result', 'prompts'],
  resultResources: ['result', 'resources'],
  resultTemplates: ['result', 'resourceTemplates'],
  resultTasks: ['result', 'tasks'],
  resultSkills: ['result', 'skills'],
  errorCode: ['error', 'code'],
  isError: ['result', 'isError'],
  /** The task that a request became. */
  createdTask: ['result', 'task', 'taskId'],
  /** `tasks/get`, `tasks/cancel`. */
  resultTaskId: ['result', 'taskId'],
  resultStatus: ['result', 'status'],
  resultRelatedTask: ['result', '_meta', RELATED_TASK, 'taskId'],
  /** Results of modern servers. */
  resultType: ['result', 'resultType'],
  resultMeta: ['result', '_meta'],
  resultServerInfo: ['result', '_meta', 'io.modelcontextprotocol/serverInfo'],
  ttlMs: ['result', 'ttlMs'],
  cacheScope: ['result', 'cacheScope'],
  inputRequests: ['result', 'inputRequests'],
  resultState: ['result', 'requestState'],
} as const satisfies jsonrpc.WatchedPaths;

type Watched = typeof WATCHED;

/** Names of the members of `params`. */
export type ParamName = { [Name in keyof Watched]: Watched[Name][0] extends 'params' ? Name : never }[keyof Watched];

/** Limit of the levels of nesting in a message. Deeper JSON can be parsed, but overflows serializers. */
const MAX_DEPTH = 512;

/** Limit of the messages in one batch, as in the official server. Larger batches would bypass the limits on requests. */
const MAX_BATCH = 100;

export type Envelope = jsonrpc.Envelope<Watched>;
export type RequestEnvelope = jsonrpc.RequestEnvelope<Watched>;
export type NotificationEnvelope = jsonrpc.NotificationEnvelope<Watched>;
export type ResponseEnvelope = jsonrpc.ResponseEnvelope<Watched>;
export type { Rejection } from '../jsonrpc/envelope-scanner.js';

/** Scans the envelope of one line: all of the bytes, or those from `start` to `end`. See `EnvelopeScanner` for the rules. */
export type ScanEnvelope = (bytes: Uint8Array, start?: number, end?: number) => Envelope | jsonrpc.Rejection;

/** Makes the scan of MCP messages. `isUtf8` is the check of the platform, which is much faster than one in JavaScript. */
export function createScan(isUtf8: (bytes: Uint8Array) => boolean): ScanEnvelope {
  const limits = { maxDepth: MAX_DEPTH, maxElements: MAX_BATCH, isUtf8 };
  const scanner = new EnvelopeScanner({ watch: WATCHED, ...limits });
  return (bytes, start, end) => scanner.scan(bytes, start, end);
}

/** Scans messages that the gateway made. Parts that come from other messages were checked when those were read. */
export const scanOwn = createScan(() => true);

/**
 * Scans each element of a batch like a line of its own. Copies the elements, because the memory of one message may be
 * reused while other messages are still in use. An array among the elements is not a batch.
 */
export function messagesOf(batch: jsonrpc.Rejection, scan: ScanEnvelope): readonly (Envelope | jsonrpc.Rejection)[] {
  return (batch.elements ?? []).map(({ start, end }) => {
    const message = scan(new Uint8Array(batch.bytes.subarray(start, end)));
    return message.kind === 'rejected' && message.reason === 'batch' ? { ...message, elements: [] } : message;
  });
}

/** The JSON-RPC error that answers a message which cannot be read. */
export function rejectionReply({ reason, bytes, id, lookalike }: jsonrpc.Rejection): SplicedMessage {
  const code = reason === 'not-json' ? RPC_CODES.parseError : RPC_CODES.invalidRequest;
  const token = id === undefined ? NULL_ID : bytes.slice(id.start, id.end);
  const key =
    lookalike === undefined ? '' : ` ${JSON.stringify(lookalike)}, which some readers take for a member of MCP`;
  return rpcErrorMessage(token, new RpcError(code, `Refused: ${reason}${key}`));
}

/** Whether a response is a JSON-RPC error, or the result of a tool with `isError: true`. */
export function isErrorResponse({ error, bytes, tokens: { isError } }: ResponseEnvelope): boolean {
  return error !== undefined || (isError !== undefined && bytes[isError.start] === LETTER_T);
}

/** The first byte of the token `true`. */
const LETTER_T = 0x74;

/** A server's statement on caching its result: `ttlMs` and `cacheScope` of revision 2026-07-28. */
export interface CachingHint {
  /** End of the time for which the result may be cached, in milliseconds on the clock. */
  readonly freshUntil: number;
  /** Whether the result is the same for all users. */
  readonly isPublic: boolean;
}

/** Returns the hint of a result that was read at this time; `undefined` without one, as before revision 2026-07-28. */
export function readCachingHint({ bytes, tokens }: ResponseEnvelope, at: number): CachingHint | undefined {
  const { ttlMs, cacheScope } = tokens;
  if (ttlMs === undefined && cacheScope === undefined) return undefined;
  const ttl = ttlMs === undefined ? 0 : Number(readText(bytes, ttlMs));
  return { freshUntil: ttl > 0 ? at + ttl : at, isPublic: stringAt(bytes, cacheScope) === 'public' };
}

/** Merges the hints of several results. A result without a hint counts as private, and limits no time. */
export function mergeCachingHints(hints: readonly (CachingHint | undefined)[]): CachingHint | undefined {
  const known = hints.filter((hint) => hint !== undefined);
  if (known.length === 0) return undefined;
  return {
    freshUntil: Math.min(...known.map(({ freshUntil }) => freshUntil)),
    isPublic: known.length === hints.length && known.every(({ isPublic }) => isPublic),
  };
}
