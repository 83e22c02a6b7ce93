import type { Exchange } from '../../downstream/port.js';
import { toBytes } from '../../json/json-text.js';
import { METHODS } from '../../mcp/methods.js';
import { knowsTasks } from '../../mcp/revisions.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { Outcome } from '../../upstream/request.js';
import type { Translation } from '../dispatch/handling.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';
import { idAt } from './task-id-edits.js';
import type { Tasks } from './tasks.js';

/** The name of the tool stands before it. */
const AS_TASK = toBytes(',"task":{}');

/**
 * For a call of a client that is too old to know of tasks: where the server calls the tool as a task only, makes the
 * call one, waits for the task and answers the call with its result. To cancel the call cancels the task.
 *
 * That can be where a server is shared by clients of different revisions, and is told of the newest. `undefined` where
 * it cannot.
 */
export function drivingTask(exchange: Exchange, { backend, tool }: Target, tasks: Tasks): Translation | undefined {
  const { client, request } = exchange;
  const { params } = request;
  if (knowsTasks(client.revision) || tool === undefined || params === undefined) return undefined;
  // Before there is a process, its tools are not known either.
  if (backend.dispatcher.connection !== undefined && !backend.isTaskOnly(tool)) return undefined;
  let isDriven = false;
  return {
    ...tasks.translationOf(exchange, backend),
    request: (connection) => {
      isDriven = backend.isTaskOnly(tool) && connection.offers('tasks.requests.tools.call');
      const end = params.end - 1;
      return isDriven ? [{ span: { start: end, end }, text: AS_TASK }] : [];
    },
    goOn: (response, connection, keepProgress) => {
      const id = isDriven ? idAt(response.bytes, response.tokens.createdTask) : undefined;
      if (id === undefined) return undefined;
      tasks.ofServers.made(id, client, backend, keepProgress());
      const over = () => tasks.ofServers.finished(id, backend);
      return resultOf(id, exchange, connection, backend).finally(over);
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
    if (connection.offers('tasks.cancel')) void connection.ask(METHODS.cancelTask, { taskId }, dispatcher.listTimeouts);
  };
  exchange.onCancel(cancel);
  const outcome = await connection.ask(METHODS.taskResult, { taskId }, dispatcher.taskTimeouts);
  if (isCancelled) return { kind: 'failed', reason: 'cancelled', sent: true };
  if (outcome.kind === 'answered') return outcome;
  if (outcome.reason === 'timeout') cancel();
  // The task may have had effects, whatever became of the question for its result.
  return { ...outcome, sent: true };
}
