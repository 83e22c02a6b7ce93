import { isString, readString, valuesAt } from '../json/json-text.js';
import type { ResponseEnvelope } from './envelope.js';
import type { RelayedRequest } from './relayed-request.js';

/** The tasks of revision 2026-07-28. See the specification of the extension, SEP-2663. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Whether the client of a request without a handshake takes a task as the answer. */
export function declaresTasks({
  bytes,
  tokens: { eraCapabilities },
}: Pick<RelayedRequest, 'bytes' | 'tokens'>): boolean {
  if (eraCapabilities === undefined) return false;
  return valuesAt(bytes, eraCapabilities, ['extensions', TASKS_EXTENSION]).length > 0;
}

/** Whether a server answered with a task of the extension. */
export function isTaskResult({ bytes, tokens: { resultType } }: ResponseEnvelope): boolean {
  return resultType !== undefined && isString(bytes, resultType) && readString(bytes, resultType) === 'task';
}
