import { PendingInputs } from '../../downstream/input-requests.js';
import type { DownstreamClient, InputRequest, WithdrawInput } from '../../downstream/port.js';
import type { RequestTimeouts, UpstreamConnection } from '../../upstream/upstream-connection.js';
import { editMembers, REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import { readText, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { EMPTY_RESULT, join, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import { RELATED_TASK, type ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { asResponse, ownResponse, type RelayedRequest } from '../../wire/mcp/relayed-request.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { TaskChannel } from './task-owners.js';

/*
 * Converts tasks of revision 2025-11-25 to the form of the tasks extension of 2026-07-28. In the extension, some members have
 * other names, and the state of a task includes its result and the input that the server asks for. In 2025-11-25, a client has
 * to send a request of its own for both, `tasks/result`.
 */

/** Converts a server's response that created a task into the form of the extension. */
export function toTaskResult({ bytes, result }: ResponseEnvelope): ResponseEnvelope {
  const [task] = result === undefined ? [] : valuesAt(bytes, result, ['task']);
  if (task === undefined) throw new Error('The response created no task');
  return ownResponse(renamed(bytes.slice(task.start, task.end), { first: '"resultType":"task"' }));
}

interface TaskPlace {
  readonly connection: UpstreamConnection;
  readonly dispatcher: Dispatcher;
}

interface TaskStateOptions extends TaskPlace {
  readonly inputs: TaskInputs;
}

/** Converts a server's answer to `tasks/get`, and adds the result or the input requests that the extension includes. */
export async function toTaskState(response: ResponseEnvelope, options: TaskStateOptions): Promise<Outcome> {
  const { connection, dispatcher, inputs } = options;
  const { bytes, result, tokens } = response;
  const taskId = stringAt(bytes, tokens.resultTaskId);
  if (result === undefined || taskId === undefined) return madeOutcome(response, dispatcher);
  // Copies the task, because the memory of the response is reused soon.
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
    // Up to 2025-11-25, a tool result with `isError` is a failed task; in the extension, it is a completed one.
    if (last.result !== undefined) return stated('completed', toBytes(',"result":'), content);
    return stated('failed', toBytes(',"error":'), content);
  }
  if (status === 'input_required') await inputs.gather(connection, taskId, dispatcher.taskTimeouts);
  const { requests } = inputs;
  // The requests of the task may be answered by now, or may still be on their way.
  if (status === 'input_required' || status === 'working') {
    return requests === undefined
      ? stated('working')
      : stated('input_required', toBytes(',"inputRequests":'), requests);
  }
  return stated(status ?? 'working');
}

/** Converts an answer to `tasks/cancel`. In the extension it has no content, and succeeds even if the task has ended. */
export async function toAcknowledgment(
  response: ResponseEnvelope,
  taskId: string,
  { connection, dispatcher }: TaskPlace,
): Promise<Outcome> {
  if (response.result !== undefined) return madeOutcome(EMPTY_RESULT, dispatcher);
  // Copies the response, because its memory is reused soon.
  const refused = madeOutcome(asResponse(response.bytes.slice(response.span.start, response.span.end)), dispatcher);
  const state = await connection.request(METHODS.getTask, { taskId }, dispatcher.listTimeouts);
  const isKnown = state.kind === 'answered' && state.response.result !== undefined;
  return isKnown ? madeOutcome(EMPTY_RESULT, dispatcher) : refused;
}

/** Returns the edits that remove the task's id from the `_meta` of its result. The state around it names the task. */
function withoutTaskName({ bytes, result }: ResponseEnvelope): Edit[] {
  const [meta] = result === undefined ? [] : valuesAt(bytes, result, ['_meta']);
  return meta === undefined ? [] : editMembers(bytes, meta, { removes: (name) => name === RELATED_TASK });
}

/** Error for a task whose id is not valid for the client, or that the present process of its server does not know. */
export const UNKNOWN_TASK = new RpcError(RPC_CODES.invalidParams, 'Unknown task');

/**
 * Members that the extension renames, under both names, and members that only the extension has. All are removed if a server
 * sends them, because the gateway adds its own.
 */
const REPLACED: ReadonlySet<string> = new Set([
  ...['ttl', 'pollInterval', 'ttlMs', 'pollIntervalMs', 'resultType'],
  ...['result', 'error', 'inputRequests'],
]);

/** Returns a task with its members under their new names. All other members stay. */
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

/** Longest waits in milliseconds for the first input request of a task, and then for further ones. */
const ASK_MS = 1_000;
const GATHER_MS = 15;

/** Input requests of a task, which the client reads in its state (`tasks/get`) and answers with `tasks/update`. */
export class TaskInputs implements TaskChannel {
  readonly isSettled = false;
  readonly logLevel = 'off';
  client: DownstreamClient;
  readonly #clock: Clock;
  readonly #pending = new PendingInputs();
  #capabilities: Readonly<Record<string, unknown>> = {};
  /** Whether a `tasks/result` request of the gateway waits for an answer. Meanwhile, the server sends the input requests of the task. */
  #isAwaited = false;
  /** Requests for the state of the task that wait for its input requests. */
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock, client: DownstreamClient) {
    this.#clock = clock;
    this.client = client;
  }

  /** Records that a client has sent a request about the task. The capabilities in it decide which inputs the task may request. */
  usedBy(client: DownstreamClient, { bytes, tokens: { eraCapabilities } }: RelayedRequest): void {
    this.client = client;
    const text = eraCapabilities === undefined ? '{}' : readText(bytes, eraCapabilities);
    this.#capabilities = JSON.parse(text) as Record<string, unknown>;
  }

  requireInput(input: InputRequest): WithdrawInput {
    const withdraw = this.#pending.add(input, this.#capabilities);
    if (withdraw === undefined) return () => {};
    for (const asked of this.#waiting) asked();
    this.#waiting.clear();
    return withdraw;
  }

  /** Sends nothing, because a task of the extension reports only its state. */
  send(): void {}

  /** The pending input requests of the task, as the JSON of `inputRequests`; `undefined` if there are none. */
  get requests(): Uint8Array | undefined {
    return this.#pending.size === 0 ? undefined : this.#pending.requests;
  }

  /** Lets the server send its input requests, and waits for them for a moment. Call this when the task requires input. */
  async gather(connection: UpstreamConnection, taskId: string, timeouts: RequestTimeouts): Promise<void> {
    if (!this.#isAwaited) {
      this.#isAwaited = true;
      void connection.request(METHODS.taskResult, { taskId }, timeouts).finally(() => {
        this.#isAwaited = false;
      });
    }
    if (this.#pending.size > 0) return;
    await new Promise<void>((resolve) => {
      const giveUp = this.#clock.schedule(ASK_MS, () => {
        this.#waiting.delete(asked);
        resolve();
      });
      const asked = () => {
        giveUp();
        this.#clock.schedule(GATHER_MS, resolve);
      };
      this.#waiting.add(asked);
    });
  }

  /** Answers the server's requests with the client's responses. Ignores responses to other requests. */
  answer(bytes: Uint8Array, inputResponses: Span): void {
    this.#pending.answer(bytes, inputResponses);
  }

  /** Fails the pending input requests, because the task is done. */
  end(): void {
    this.#pending.refuseAll('The task has ended');
  }
}

/** Makes the outcome of a request that is answered now, from a result as JSON, an error, or a response. */
export function madeOutcome(content: Uint8Array | RpcError | ResponseEnvelope, { options }: Dispatcher): Outcome {
  const isResponse = !(content instanceof Uint8Array || content instanceof RpcError);
  return { kind: 'answered', response: isResponse ? content : ownResponse(content), at: options.clock.now() };
}
