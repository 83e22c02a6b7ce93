import type { Exchange } from '../../downstream/port.js';
import { toBytes } from '../../json/json-text.js';
import { METHODS } from '../../mcp/methods.js';
import { knowsTasks } from '../../mcp/revisions.js';
import { idAt } from '../../mcp/task-id.js';
import type { Outcome, UpstreamConnection } from '../../upstream/port.js';
import type { Translation } from '../dispatch/handling.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/target.js';
import type { Tasks } from './tasks.js';

/** Added at the end of `params`, which contains the name of the tool. */
const AS_TASK = toBytes(',"task":{}');

/**
 * Calls a tool that can only run as a task for a client whose revision has no tasks: makes the call a task, waits for the
 * task and answers the call with the task's result. Cancelling the call cancels the task.
 *
 * This happens when clients of several revisions share a server, which then gets the newest one. `undefined` when it
 * does not apply.
 */
export function drivingTask(exchange: Exchange, { backend, tool }: Target, tasks: Tasks): Translation | undefined {
  const { client, request } = exchange;
  const { params } = request;
  if (knowsTasks(client.revision) || tool === undefined || params === undefined) return undefined;
  // Without a process, the tools are not known yet.
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
      tasks.ofServers.created(id, client, backend, keepProgress(), exchange);
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
