import type { Exchange } from '../downstream/port.js';
import { isRepeatable, TASK_METHODS } from '../mcp/methods.js';
import type { Handling } from './dispatch/handling.js';
import type { Target } from './routing/target.js';
import { askedTask, updated } from './tasks/asked-task.js';
import { calledTask } from './tasks/called-task.js';
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
    backend.serve(exchange, { edits, editAnswer, onAnswered, translation, isRepeatable: mayRepeat, refusal });
    return;
  }
  if (updated(exchange, backend, tasks)) return;
  const related = tasks.towardServer(request, client, backend);
  const translation = askedTask(exchange, backend, tasks);
  backend.serve(exchange, { edits: [...edits, ...related], editAnswer, onAnswered, translation, refusal });
}
