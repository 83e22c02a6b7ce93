import type { Exchange } from '../../downstream/port.js';
import { internalError, withErrorBoundaryAsync } from '../../errors/internal-error.js';
import { stringAt, toBytes } from '../../json/json-text.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { declaresTasks, isTaskResult } from '../../mcp/extensions.js';
import { METHODS } from '../../mcp/methods.js';
import { isModernRevision, knowsTasks } from '../../mcp/revisions.js';

import type { Outcome, UpstreamConnection } from '../../upstream/port.js';
import type { Translation } from '../dispatch/call.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';
import { NOTHING, toAcknowledgment, toTaskResult, toTaskState, UNKNOWN_TASK } from './extension-task.js';
import { madeOutcome } from './made-response.js';
import { PolledTask } from './polled-task.js';
import { TaskInputs } from './task-inputs.js';
import type { Tasks } from './tasks.js';

/** Added at the end of `params`, which contains the name of the tool. */
const AS_TASK = toBytes(',"task":{}');

/**
 * The call of a tool that may become a task without its client having asked for one. `undefined` if it cannot.
 *
 * Some tools of revision 2025-11-25 can only run as a task: the call of a client that has no such tasks is made one. A server
 * of 2026-07-28 may answer any call with a task of the extension. A client that declares the extension gets the task. For
 * any other client, this waits for the task and answers the call with its result; cancelling the call cancels the task.
 */
export function calledTask(exchange: Exchange, { backend, tool }: Target, tasks: Tasks): Translation | undefined {
  const { client, request } = exchange;
  const { params } = request;
  const { connection } = backend.dispatcher;
  if (tool === undefined || params === undefined) return undefined;
  // Without a process, neither its revision nor its tools are known yet.
  const isPossible =
    connection === undefined ||
    isModernRevision(connection.revision) ||
    (!knowsTasks(client.revision) && backend.isTaskOnly(tool));
  if (!isPossible) return undefined;
  const { dispatcher } = backend;
  /** Whether the call was made a task. */
  let isMade = false;
  return {
    ...tasks.translationOf(exchange, backend),
    request: (to) => {
      const isMissing = !knowsTasks(client.revision) && backend.isTaskOnly(tool);
      isMade = isMissing && to.offers('tasks.requests.tools.call');
      const end = params.end - 1;
      return isMade ? [{ span: { start: end, end }, text: AS_TASK }] : [];
    },
    goOn: (response, from, keepProgress) => {
      const { bytes, tokens } = response;
      const isOfExtension = isModernRevision(from.revision) && isTaskResult(response);
      const made = isMade ? tokens.createdTask : undefined;
      const taskId = stringAt(bytes, isOfExtension ? tokens.resultTaskId : made);
      if (taskId === undefined) return undefined;
      if (declaresTasks(request)) {
        tasks.ofServers.created(taskId, client, backend, () => {});
        if (isOfExtension) return undefined;
        tasks.inputsOf(exchange, backend, taskId);
        return Promise.resolve(madeOutcome(toTaskResult(response), dispatcher));
      }
      const polled = isOfExtension ? new PolledTask({ taskId, exchange, connection: from, dispatcher }) : undefined;
      const endProgress = keepProgress();
      const end = () => {
        endProgress();
        polled?.hurry();
      };
      tasks.ofServers.created(taskId, client, backend, end, exchange);
      const outcome = polled?.outcome(response) ?? resultOf(taskId, exchange, from, backend);
      return outcome.finally(() => tasks.ofServers.finished(taskId, backend));
    },
  };
}

async function resultOf(
  taskId: string,
  exchange: Exchange,
  connection: UpstreamConnection,
  { dispatcher }: Backend,
): Promise<Outcome> {
  let isCancelled = false;
  const cancel = () => {
    isCancelled = true;
    if (connection.offers('tasks.cancel'))
      void connection.request(METHODS.cancelTask, { taskId }, dispatcher.listTimeouts);
  };
  exchange.onCancel(cancel);
  const outcome = await connection.request(METHODS.taskResult, { taskId }, dispatcher.taskTimeouts);
  if (isCancelled) return { kind: 'failed', reason: 'cancelled', sent: true };
  if (outcome.kind === 'answered') return outcome;
  if (outcome.reason === 'timeout') cancel();
  // The task may have had effects even if the request for its result failed.
  return { ...outcome, sent: true };
}

/**
 * The translation of a request about one task. A client of the extension may ask about a task of revision 2025-11-25.
 */
export function askedTask(exchange: Exchange, backend: Backend, tasks: Tasks): Translation {
  const translation = tasks.translationOf(exchange, backend);
  const { client, request } = exchange;
  if (client.revision === undefined || !isModernRevision(client.revision)) return translation;
  const { dispatcher } = backend;
  return {
    ...translation,
    goOn: (response, connection) => {
      if (isModernRevision(connection.revision)) return undefined;
      // The server has no such request: its process is another one than the one that had the task.
      if (request.method === METHODS.updateTask) return Promise.resolve(madeOutcome(UNKNOWN_TASK, dispatcher));
      const taskId = tasks.taskOf(exchange, backend);
      if (taskId === undefined) return undefined;
      if (request.method === METHODS.cancelTask) return toAcknowledgment(response, taskId, { connection, dispatcher });
      const inputs = tasks.inputsOf(exchange, backend, taskId);
      return toTaskState(response, { connection, dispatcher, inputs });
    },
  };
}

/** Answers `tasks/update` for a task of revision 2025-11-25, which has no such request. Returns whether it did. */
export function updated(exchange: Exchange, backend: Backend, tasks: Tasks): boolean {
  const { client, request } = exchange;
  const { connection } = backend.dispatcher;
  const isTranslated = connection !== undefined && !isModernRevision(connection.revision);
  if (request.method !== METHODS.updateTask || !isTranslated) return false;
  if (client.revision === undefined || !isModernRevision(client.revision)) return false;
  const taskId = tasks.taskOf(exchange, backend);
  if (taskId === undefined) exchange.fail(UNKNOWN_TASK);
  else if (tasks.ofServers.carrierOf(taskId, backend) instanceof TaskInputs) answer(exchange, backend, tasks, taskId);
  else {
    // The task is unchecked since its server started, and the process may be a later one than that of the task.
    const known = connection.request(METHODS.getTask, { taskId }, backend.dispatcher.listTimeouts);
    const updating = known.then((outcome) => {
      if (exchange.isSettled) return;
      const isKnown = outcome.kind === 'answered' && outcome.response.result !== undefined;
      if (isKnown) answer(exchange, backend, tasks, taskId);
      else exchange.fail(outcome.kind === 'answered' ? UNKNOWN_TASK : SILENT);
    });
    void withErrorBoundaryAsync(updating, tasks.onInternalError, () => exchange.fail(internalError()));
  }
  return true;
}

function answer(exchange: Exchange, backend: Backend, tasks: Tasks, taskId: string): void {
  const { bytes, tokens } = exchange.request;
  const { inputResponses } = tokens;
  const inputs = tasks.inputsOf(exchange, backend, taskId);
  if (inputResponses !== undefined) inputs.answer(bytes, inputResponses);
  exchange.succeed(NOTHING);
}

const SILENT = new RpcError(RPC_CODES.internalError, 'The server of the task does not answer');
