import type { ChildConnection } from '../bridge/child-connection.js';
import type { Outcome } from '../bridge/request.js';
import { type Span, toBytes } from '../jsonrpc/json-text.js';
import type { Edit } from '../jsonrpc/splice.js';
import { METHODS } from '../mcp/methods.js';
import { isOlder } from '../mcp/revisions.js';
import type { Backend } from './backend.js';
import type { Exchange, Translation } from './exchange.js';
import { idAt } from './task-id-edits.js';
import type { Tasks } from './tasks.js';

/** The first revision that knows of tasks. */
const FIRST_WITH_TASKS = '2025-11-25';

/**
 * Whether a call has to be made a task for the client, which is too old to know of them: its server calls the tool only
 * so. That can be where a server is shared by clients of different revisions, and is told of the newest.
 */
export function mustBeDriven({ request, client }: Exchange, backend: Backend, needsTask: boolean): boolean {
  const isTooOld = client.revision !== undefined && isOlder(client.revision, FIRST_WITH_TASKS);
  const isTask = request.tokens.task !== undefined;
  const isKnown = backend.delivery.connection?.offers('tasks.requests.tools.call') !== false;
  return needsTask && isTooOld && !isTask && isKnown;
}

/** Makes the call a task: adds the member to the params of the request. */
export function asTask({ end }: Span): Edit {
  return { span: { start: end - 1, end: end - 1 }, text: AS_TASK };
}

/** The name of the tool stands before it. */
const AS_TASK = toBytes(',"task":{}');

/** Waits for the task that the call becomes and answers the call with its result. To cancel the call cancels the task. */
export function drivingTask(exchange: Exchange, backend: Backend, tasks: Tasks): Translation {
  const { client } = exchange;
  return {
    ...tasks.translationOf(exchange, backend),
    goOn: (response, connection, outlive) => {
      const id = idAt(response.bytes, response.tokens.createdTask);
      if (id === undefined) return undefined;
      tasks.ofServers.made(id, client, backend, outlive());
      const over = () => tasks.ofServers.finished(id, backend);
      return resultOf(id, exchange, connection, backend).finally(over);
    },
  };
}

async function resultOf(
  taskId: string,
  exchange: Exchange,
  connection: ChildConnection,
  { delivery }: Backend,
): Promise<Outcome> {
  let isCancelled = false;
  const cancel = () => {
    isCancelled = true;
    if (connection.offers('tasks.cancel')) void connection.ask(METHODS.cancelTask, { taskId }, delivery.listPatience);
  };
  exchange.onCancel(cancel);
  const outcome = await connection.ask(METHODS.taskResult, { taskId }, delivery.taskPatience);
  if (isCancelled) return { kind: 'failed', reason: 'cancelled', sent: true };
  if (outcome.kind === 'answered') return outcome;
  if (outcome.reason === 'timeout') cancel();
  // The task may have had effects, whatever became of the question for its result.
  return { ...outcome, sent: true };
}
