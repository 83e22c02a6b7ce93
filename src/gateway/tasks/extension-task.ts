import { editMembers, REMOVED, rewriteObject } from '../../json/edit-members.js';
import { isObject, readText, stringAt, toBytes, valuesAt } from '../../json/json-text.js';
import { type Edit, splice } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { RELATED_TASK, type ResponseEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';

import type { Outcome, UpstreamConnection } from '../../upstream/port.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import { madeCopy, madeOutcome, madeResponse } from './made-response.js';
import type { TaskInputs } from './task-inputs.js';

/*
 * A task of revision 2025-11-25 in the form of the tasks extension of 2026-07-28. Its members have other names, and its
 * state contains what the client had to request for itself: the result, and what the server asks for.
 */

/** A server's response that created a task, as the extension has it. */
export function toTaskResult({ bytes, result }: ResponseEnvelope): ResponseEnvelope {
  const [task] = result === undefined ? [] : valuesAt(bytes, result, ['task']);
  if (task === undefined) throw new Error('The response created no task');
  return madeResponse(renamed(bytes.slice(task.start, task.end), { first: '"resultType":"task"' }));
}

export interface TaskStateOptions {
  readonly connection: UpstreamConnection;
  readonly dispatcher: Dispatcher;
  readonly inputs: TaskInputs;
}

/** The answer of a server to `tasks/get`, completed by what the extension has in it. */
export async function toTaskState(response: ResponseEnvelope, options: TaskStateOptions): Promise<Outcome> {
  const { connection, dispatcher, inputs } = options;
  const { bytes, result, tokens } = response;
  const taskId = stringAt(bytes, tokens.resultTaskId);
  if (result === undefined || taskId === undefined) return madeOutcome(response, dispatcher);
  // The memory of the response has another use soon.
  const task = bytes.slice(result.start, result.end);
  const status = stringAt(bytes, tokens.resultStatus);
  const stated = (becomes: string, ...members: Uint8Array[]) => {
    const changed = renamed(task, { status: becomes, first: '"resultType":"complete"' });
    return madeOutcome(join([changed.subarray(0, -1), ...members, CLOSE]), dispatcher);
  };
  if (status === 'completed' || status === 'failed') {
    const outcome = await connection.request(METHODS.taskResult, { taskId }, dispatcher.listTimeouts);
    if (outcome.kind === 'failed') return outcome;
    const { response: last } = outcome;
    const content = splice({ ...last, span: last.result ?? last.error ?? last.span, edits: withoutTaskName(last) });
    // A tool result that is an error is a failed task up to 2025-11-25, and a completed one in the extension.
    if (last.result !== undefined) return stated('completed', toBytes(',"result":'), content);
    return stated('failed', toBytes(',"error":'), content);
  }
  if (status === 'input_required') await inputs.gather(connection, taskId, dispatcher.taskTimeouts);
  const { requests } = inputs;
  // The requests of the task may be answered by now, or not have arrived yet.
  if (status === 'input_required' || status === 'working') {
    return requests === undefined
      ? stated('working')
      : stated('input_required', toBytes(',"inputRequests":'), requests);
  }
  return stated(status ?? 'working');
}

/**
 * The answer of a server to `tasks/cancel`, which the extension has without content. In the extension, a task that has ended
 * can be canceled in vain.
 */
export async function toAcknowledgment(
  response: ResponseEnvelope,
  taskId: string,
  { connection, dispatcher }: Omit<TaskStateOptions, 'inputs'>,
): Promise<Outcome> {
  if (response.result !== undefined) return madeOutcome(NOTHING, dispatcher);
  const refused = madeOutcome(madeCopy(response), dispatcher);
  const state = await connection.request(METHODS.getTask, { taskId }, dispatcher.listTimeouts);
  const isKnown = state.kind === 'answered' && state.response.result !== undefined;
  return isKnown ? madeOutcome(NOTHING, dispatcher) : refused;
}

/** Removes the server's own name of the task, which the result does not need within the state of the task. */
function withoutTaskName({ bytes, result }: ResponseEnvelope): Edit[] {
  const [meta] = result === undefined ? [] : valuesAt(bytes, result, ['_meta']);
  return meta !== undefined && isObject(bytes, meta)
    ? editMembers(bytes, meta, { removes: (name) => name === RELATED_TASK })
    : [];
}

/** Answer for a task that its server cannot know. */
export const UNKNOWN_TASK = new RpcError(RPC_CODES.invalidParams, 'Unknown task');

export const NOTHING = toBytes('{}');

/** Members with other names in the extension, and those that only the extension has: a server may send both. */
const REPLACED: ReadonlySet<string> = new Set([
  ...['ttl', 'pollInterval', 'ttlMs', 'pollIntervalMs', 'resultType'],
  ...['result', 'error', 'inputRequests'],
]);

/** A task with its members under their new names. All others stay as they are. */
function renamed(
  task: Uint8Array,
  { status, first }: { readonly status?: string; readonly first: string },
): Uint8Array {
  const whole = { start: 0, end: task.length };
  const textOf = (name: string) => valuesAt(task, whole, [name]).map((value) => readText(task, value))[0];
  const { ttl = 'null', pollInterval } = { ttl: textOf('ttl'), pollInterval: textOf('pollInterval') };
  const added = [first, `"ttlMs":${ttl}`, ...(pollInterval === undefined ? [] : [`"pollIntervalMs":${pollInterval}`])];
  return rewriteObject(task, whole, {
    change: (name) => {
      if (REPLACED.has(name)) return REMOVED;
      return name === 'status' && status !== undefined ? toBytes(JSON.stringify(status)) : undefined;
    },
    insert: () => added.map(toBytes),
  });
}

const CLOSE = toBytes('}');
