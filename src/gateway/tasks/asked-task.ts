import type { Exchange } from '../../downstream/port.js';
import { internalError, withErrorBoundaryAsync } from '../../errors/internal-error.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { METHODS } from '../../mcp/methods.js';
import { isModernRevision } from '../../mcp/revisions.js';
import type { Translation } from '../dispatch/handling.js';
import type { Backend } from '../registry/backend.js';
import { NOTHING, toAcknowledgment, toTaskState, UNKNOWN_TASK } from './extension-task.js';
import { madeOutcome } from './made-response.js';
import { TaskInputs } from './task-inputs.js';
import type { Tasks } from './tasks.js';

/**
 * The translation of a request about one task. A client of the extension may ask about a task of revision 2025-11-25.
 */
export function askedTask(exchange: Exchange, backend: Backend, tasks: Tasks): Translation {
  const translation = tasks.translationOf(exchange, backend);
  const { client, request } = exchange;
  if (client.revision === undefined || !isModernRevision(client.revision)) return translation;
  const { clock } = tasks;
  return {
    ...translation,
    goOn: (response, connection) => {
      if (isModernRevision(connection.revision)) return undefined;
      // The server has no such request: its process is another one than the one that had the task.
      if (request.method === METHODS.updateTask) return Promise.resolve(madeOutcome(UNKNOWN_TASK, clock.now()));
      const taskId = tasks.taskOf(exchange, backend);
      if (taskId === undefined) return undefined;
      const { dispatcher } = backend;
      if (request.method === METHODS.cancelTask)
        return toAcknowledgment(response, taskId, { clock, connection, dispatcher });
      const inputs = tasks.inputsOf(exchange, backend, taskId);
      return toTaskState(response, { clock, connection, dispatcher, inputs });
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
    // Nobody has asked about the task since its server started, which may be a later process than that of the task.
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
