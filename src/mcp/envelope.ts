import type * as jsonrpc from '../jsonrpc/envelope.js';
import { EnvelopeScanner } from '../jsonrpc/envelope-scanner.js';

/** Names the task that a message belongs to. */
const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/**
 * Every member that a gateway has to read or replace in an MCP message. What is not named here is never looked at.
 *
 * The same list serves both directions and both eras: a message has few of them.
 */
const WATCHED = {
  /** `tools/call`, `prompts/get`: the exposed name from a client, the original name towards a child. */
  name: ['params', 'name'],
  uri: ['params', 'uri'],
  refName: ['params', 'ref', 'name'],
  refUri: ['params', 'ref', 'uri'],
  /** The page asked for. */
  cursor: ['params', 'cursor'],
  /** `tasks/*` and `notifications/tasks/status`. */
  taskId: ['params', 'taskId'],
  status: ['params', 'status'],
  /** Present when the request is to become a task. */
  task: ['params', 'task'],
  /** Where progress of this request is to be reported. */
  requestProgressToken: ['params', '_meta', 'progressToken'],
  relatedTask: ['params', '_meta', RELATED_TASK, 'taskId'],
  /** Present in every request of a modern client, in none of a legacy one. */
  eraVersion: ['params', '_meta', 'io.modelcontextprotocol/protocolVersion'],
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
  errorCode: ['error', 'code'],
  isError: ['result', 'isError'],
  /** The task that a request has become. */
  createdTask: ['result', 'task', 'taskId'],
  /** `tasks/get`, `tasks/cancel`. */
  resultTaskId: ['result', 'taskId'],
  resultStatus: ['result', 'status'],
  resultRelatedTask: ['result', '_meta', RELATED_TASK, 'taskId'],
} as const satisfies jsonrpc.WatchedPaths;

type Watched = typeof WATCHED;

/** JSON nests at most this deep; deeper text parses but overflows serialisers. */
const MAX_DEPTH = 512;

/** Messages in one batch: as many as the official server takes. More would be a way round every limit on requests. */
const MAX_BATCH = 100;

export type Envelope = jsonrpc.Envelope<Watched>;
export type RequestEnvelope = jsonrpc.RequestEnvelope<Watched>;
export type NotificationEnvelope = jsonrpc.NotificationEnvelope<Watched>;
export type ResponseEnvelope = jsonrpc.ResponseEnvelope<Watched>;
export type { Rejection } from '../jsonrpc/envelope.js';

/** Reads the envelope of one line: all of the bytes, or those from `start` to `end`. See `EnvelopeScanner` for what is refused. */
export type ScanEnvelope = (bytes: Uint8Array, start?: number, end?: number) => Envelope | jsonrpc.Rejection;

/** `isUtf8` comes from the platform, which checks much faster than a script could. */
export function createScan(isUtf8: (bytes: Uint8Array) => boolean): ScanEnvelope {
  const limits = { maxDepth: MAX_DEPTH, maxElements: MAX_BATCH, isUtf8 };
  const scanner = new EnvelopeScanner({ watch: WATCHED, ...limits });
  return (bytes, start, end) => scanner.scan(bytes, start, end);
}

/**
 * The elements of a batch, each read as if it had come alone, and copied: when one of them is not needed any more, its
 * memory may get another use, and the others must not be in it. An array among them is no batch again.
 */
export function messagesOf(batch: jsonrpc.Rejection, scan: ScanEnvelope): readonly (Envelope | jsonrpc.Rejection)[] {
  return (batch.elements ?? []).map(({ start, end }) => {
    const message = scan(new Uint8Array(batch.bytes.subarray(start, end)));
    return message.kind === 'rejected' && message.reason === 'batch' ? { ...message, elements: [] } : message;
  });
}
