import type { Exchange } from '../downstream/port.js';
import { toBytes } from '../json/json-text.js';
import { asLegacyResult } from '../mcp/legacy-output.js';
import { isRepeatable, METHODS, TASK_METHODS } from '../mcp/methods.js';
import { asOlderContent, knowsOldContentOnly } from '../mcp/older-content.js';
import { hasHandshake } from '../mcp/revisions.js';
import type { UpstreamConnection } from '../upstream/port.js';
import { FAILURE_REASONS } from './dispatch/attempt.js';
import type { EditAnswer, Handling } from './dispatch/call.js';
import type { Dispatcher } from './dispatch/dispatcher.js';
import type { Target } from './routing/router.js';
import { askedTask, calledTask, updated } from './tasks/called-task.js';
import type { Tasks } from './tasks/tasks.js';

/** Sends a request to its server: with what the tool needs, and translated where it concerns a task. */
export function sendToServer(
  exchange: Exchange,
  target: Target,
  { tasks, onAnswered }: { readonly tasks: Tasks; readonly onAnswered: Handling['onAnswered'] },
): void {
  const { backend, edits, editAnswer, tool } = target;
  const needsApproval = tool !== undefined && backend.rules.approvals !== undefined;
  const refusal = needsApproval ? () => backend.approvalRefusal(tool) : undefined;
  const { request, client } = exchange;
  const { task, relatedTask } = request.tokens;
  if (task === undefined && relatedTask === undefined && !TASK_METHODS.has(request.method)) {
    const translation = calledTask(exchange, target, tasks);
    const mayRepeat = tool === undefined ? isRepeatable(request.method) : backend.isRepeatable(tool);
    // The calls of a server without a handshake have a translation, because they may become tasks.
    const mayDiffer = translation !== undefined || knowsOldContentOnly(client.revision);
    const editor = mayDiffer ? forClient(exchange, target) : editAnswer;
    backend.serve(exchange, { edits, editAnswer: editor, onAnswered, translation, isRepeatable: mayRepeat, refusal });
    return;
  }
  if (updated(exchange, backend, tasks)) return;
  const related = tasks.towardServer(request, client, backend);
  const translation = askedTask(exchange, backend, tasks);
  backend.serve(exchange, { edits: [...edits, ...related], editAnswer, onAnswered, translation, refusal });
}

/** Edits an answer also for the revision of its client, where the server speaks one without a handshake. */
function forClient({ client, request }: Exchange, { backend, tool, editAnswer }: Target): EditAnswer | undefined {
  const { revision } = client;
  if (!hasHandshake(revision)) return editAnswer;
  const ofPrompt = request.method === METHODS.getPrompt ? 'prompt' : undefined;
  const kind = tool === undefined ? ofPrompt : 'tool';
  return (response, connection) => {
    const own = editAnswer?.(response, connection);
    if (hasHandshake(connection.revision)) return own ?? [];
    const isOther = tool !== undefined && backend.knownListsAs('exposed').tools.otherOutputs.has(tool);
    const output = tool === undefined ? [] : asLegacyResult(response, isOther);
    const isOld = knowsOldContentOnly(revision) && kind !== undefined;
    const content = isOld ? asOlderContent(response, kind, revision) : [];
    return [...(own ?? []), ...output, ...content];
  };
}

/** The server that a `ping` is for. */
interface PingedServer {
  readonly dispatcher: Dispatcher;
  /** The connection, also before its lists are read. */
  readonly openConnection: UpstreamConnection | undefined;
}

const EMPTY_RESULT = toBytes('{}');

/**
 * Relays the `ping` of a client that sees one server unchanged. The server gets it at once, whatever calls wait: it takes
 * no slot and does not count as use of the server or for its circuit breaker.
 *
 * A client pings its session, which outlives processes. So the gateway answers while no process can, or if the process
 * ends before it answers.
 */
export function relayPing(exchange: Exchange, server: PingedServer | undefined): void {
  const { openConnection: connection, dispatcher } = server ?? {};
  if (connection === undefined || dispatcher === undefined) {
    exchange.succeed(EMPTY_RESULT);
    return;
  }
  const sent = connection.send(exchange.request, [], dispatcher.listTimeouts, {
    settle: (outcome) => {
      if (outcome.kind === 'answered') exchange.answer(outcome.response);
      else if (outcome.reason === 'exited' || outcome.reason === 'stopped') exchange.succeed(EMPTY_RESULT);
      else if (outcome.reason !== 'cancelled')
        exchange.fail(dispatcher.failureOf(FAILURE_REASONS[outcome.reason], outcome.sent, outcome));
    },
  });
  if (sent !== undefined) exchange.onCancel((notification) => sent.cancel(notification));
}
