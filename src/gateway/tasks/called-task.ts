import type { Exchange, WithdrawInput } from '../../downstream/port.js';
import { internalError, withErrorBoundaryAsync } from '../../host/errors/internal-error.js';
import type { UpstreamConnection } from '../../upstream/upstream-connection.js';
import {
  isNumber,
  isObject,
  membersOf,
  readText,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
} from '../../wire/json/json-text.js';
import { EMPTY_RESULT, jsonObject, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { declaresTasks, isTaskResult } from '../../wire/mcp/extensions.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { asOlderInput, withoutResultMembers } from '../../wire/mcp/older-revisions.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { readAsked, toolError } from '../../wire/mcp/relayed-request.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import { signedQuestion } from '../../wire/mcp/signed-questions.js';
import { isTerminal } from '../../wire/mcp/task-id.js';
import type { Cancel } from '../../wire/timing/clock.js';
import type { Translation } from '../dispatch/call.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Backend } from '../registry/backend.js';
import {
  madeOutcome,
  TaskInputs,
  toAcknowledgment,
  toTaskResult,
  toTaskState,
  UNKNOWN_TASK,
} from './extension-task.js';
import type { Tasks } from './tasks.js';

/** Added at the end of `params`. Begins with a comma, because `params` has at least the name of the tool. */
const AS_TASK = toBytes(',"task":{}');

/**
 * Returns the translation for a tool call that may become a task although its client did not ask for one (`Backend.mayMakeTask`).
 *
 * Some tools of revision 2025-11-25 run only as a task, so the gateway turns the call of a client without such tasks into one. A server of
 * 2026-07-28 may answer any call with a task of the extension. A client that declares the extension gets the task. For any other client,
 * the gateway waits for the task and answers the call with the task's result. A cancelled call cancels the task.
 */
export function calledTask(exchange: Exchange, backend: Backend, tool: string, tasks: Tasks): Translation | undefined {
  const { client, request } = exchange;
  const { params } = request;
  if (params === undefined) return undefined;
  const { dispatcher } = backend;
  let isMade = false;
  return {
    ...tasks.translationOf(exchange, backend),
    request: (to) => {
      isMade = backend.lacksTasks(tool, client.revision) && to.offers('tasks.requests.tools.call');
      const end = params.end - 1;
      return isMade ? [{ span: { start: end, end }, text: AS_TASK }] : [];
    },
    conclude: (response, from, keepProgress) => {
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

/** Returns the translation of a request about one task. A client of the extension may ask about a task of revision 2025-11-25. */
export function askedTask(exchange: Exchange, backend: Backend, tasks: Tasks): Translation {
  const translation = tasks.translationOf(exchange, backend);
  const { client, request } = exchange;
  if (client.revision === undefined || !isModernRevision(client.revision)) return translation;
  const { dispatcher } = backend;
  return {
    ...translation,
    conclude: (response, connection) => {
      if (isModernRevision(connection.revision)) return undefined;
      // `updated` has answered if a process of 2025-11-25 ran when the request came. This one has started since then, so the
      // task belongs to an earlier process.
      if (request.method === METHODS.updateTask) return Promise.resolve(madeOutcome(UNKNOWN_TASK, dispatcher));
      const taskId = tasks.taskOf(exchange, backend);
      if (taskId === undefined) return undefined;
      if (request.method === METHODS.cancelTask) return toAcknowledgment(response, taskId, { connection, dispatcher });
      const inputs = tasks.inputsOf(exchange, backend, taskId);
      return toTaskState(response, { connection, dispatcher, inputs });
    },
  };
}

/** Answers `tasks/update` for a task of revision 2025-11-25, which lacks this method. Returns whether it answers, now or later. */
export function updated(exchange: Exchange, backend: Backend, tasks: Tasks): boolean {
  const { client, request } = exchange;
  const { connection } = backend.dispatcher;
  const isTranslated = connection !== undefined && !isModernRevision(connection.revision);
  if (request.method !== METHODS.updateTask || !isTranslated) return false;
  if (client.revision === undefined || !isModernRevision(client.revision)) return false;
  const taskId = tasks.taskOf(exchange, backend);
  if (taskId === undefined) exchange.fail(UNKNOWN_TASK);
  else if (tasks.ofServers.channelOf(taskId, backend) instanceof TaskInputs) answer(exchange, backend, tasks, taskId);
  else {
    // Asks the server, because no earlier message confirms that the present process has the task.
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
  exchange.succeed(EMPTY_RESULT);
}

const SILENT = new RpcError(RPC_CODES.internalError, 'The server of the task does not answer');

/** Pauses between two reads of the state of a task, in milliseconds: the default, the shortest and the longest. */
const POLL_MS = 1_000;
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 30_000;
/** Limit of the inputs that one task may request from its client. No user gives as many. */
const MAX_ASKED = 256;

interface PolledTaskOptions {
  readonly taskId: string;
  readonly exchange: Exchange;
  readonly connection: UpstreamConnection;
  readonly dispatcher: Dispatcher;
}

/** Polls a task of the extension for a client that does not know it, and ends with the answer of the call. */
class PolledTask {
  readonly #options: PolledTaskOptions;
  readonly #endsAt: number;
  /** Inputs that were requested from the client. The server repeats an input in each state until it has the answer. */
  readonly #asked = new Set<string>();
  /** Answers that the server may lack, because the request with the answer failed. By the key of the input. */
  readonly #unsent = new Map<string, Uint8Array>();
  /** Cancels the timer for the next read. Present while no read is in flight. */
  #cancelTimer: Cancel | undefined;
  #settle: (outcome: Outcome) => void = () => {};
  #isOver = false;
  /** Functions that withdraw the requests to the client. They do nothing for answered requests. */
  readonly #withdraws: WithdrawInput[] = [];

  constructor(options: PolledTaskOptions) {
    this.#options = options;
    const { dispatcher } = options;
    this.#endsAt = dispatcher.options.clock.now() + dispatcher.taskTimeouts.maxMs;
  }

  /** Resolves with the outcome of the call. `created` is the first answer, which names the task. */
  outcome(created: ResponseEnvelope): Promise<Outcome> {
    this.#options.exchange.onCancel(() => this.#stop('cancelled'));
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#wait(created);
    });
  }

  /** Reads the state now instead of at the next poll, because the task, or the process that runs it, may have ended. */
  hurry(): void {
    if (this.#cancelTimer === undefined) return;
    this.#cancelTimer();
    void this.#poll();
  }

  #wait(state: ResponseEnvelope | undefined): void {
    const { clock } = this.#options.dispatcher.options;
    const leftMs = this.#endsAt - clock.now();
    if (leftMs <= 0) this.#stop('timeout');
    else this.#cancelTimer = clock.schedule(Math.min(pollMs(state), leftMs), () => void this.#poll());
  }

  async #poll(): Promise<void> {
    const { connection, taskId, dispatcher } = this.#options;
    this.#cancelTimer = undefined;
    const outcome = await connection.request(METHODS.getTask, { taskId }, dispatcher.listTimeouts);
    if (this.#isOver) return;
    if (outcome.kind === 'failed') {
      // A late state does not fail the task.
      if (outcome.reason === 'timeout') this.#wait(undefined);
      else this.#end({ ...outcome, sent: true });
      return;
    }
    const { response } = outcome;
    if (response.result === undefined) this.#end(outcome);
    else if (isTerminal(response.bytes, response.tokens.resultStatus)) this.#end(this.#final(response));
    else {
      this.#askFor(response);
      // The client may have refused during the request.
      if (!this.#isOver) this.#wait(response);
    }
  }

  #final(response: ResponseEnvelope): Outcome {
    const { bytes, result = { start: 0, end: 0 } } = response;
    const { dispatcher } = this.#options;
    const [inner] = valuesAt(bytes, result, ['result']);
    if (inner !== undefined && isObject(bytes, inner))
      return madeOutcome(bytes.slice(inner.start, inner.end), dispatcher);
    const [code] = valuesAt(bytes, result, ['error', 'code']);
    const [message] = valuesAt(bytes, result, ['error', 'message']);
    if (code !== undefined && isNumber(bytes, code)) {
      const text = stringAt(bytes, message) ?? 'The task failed';
      const [data] = valuesAt(bytes, result, ['error', 'data']);
      const more: unknown = data === undefined ? undefined : JSON.parse(readText(bytes, data));
      return madeOutcome(new RpcError(Number(readText(bytes, code)), text, more), dispatcher);
    }
    return madeOutcome(CANCELED_BY_SERVER, dispatcher);
  }

  #askFor({ bytes, result = { start: 0, end: 0 } }: ResponseEnvelope): void {
    const [requests] = valuesAt(bytes, result, ['inputRequests']);
    for (const [key, request] of membersOf(bytes, requests)) {
      if (!isObject(bytes, request)) continue;
      const unsent = this.#unsent.get(key);
      if (unsent !== undefined) this.#update(key, unsent);
      if (this.#asked.has(key)) continue;
      if (this.#asked.size >= MAX_ASKED) this.#refused('input', `it asked for more than ${MAX_ASKED} inputs`);
      if (this.#isOver) return;
      this.#asked.add(key);
      this.#ask(key, bytes.slice(request.start, request.end));
    }
  }

  #ask(key: string, entry: Uint8Array): void {
    const { exchange, dispatcher } = this.#options;
    const whole = { start: 0, end: entry.length };
    const { request } = readAsked(entry, whole, () => `${this.#options.taskId} ${key}`);
    if (request === undefined) {
      this.#refused('input', 'the server asked for something that is no request for input');
      return;
    }
    const signed = signedQuestion(dispatcher.options.key, request);
    if (signed instanceof RpcError) {
      this.#refused('input', signed.message);
      return;
    }
    const withdraw = exchange.requireInput({
      request,
      edits: [...signed, ...asOlderInput(request, exchange.client.revision)],
      answer: ({ bytes, result, error = { start: 0, end: 0 } }) => {
        if (result !== undefined) this.#update(key, bytes.slice(result.start, result.end));
        else if (request.method === METHODS.elicit) this.#update(key, CANCELED);
        else this.#refused(request.method, messageAt(bytes, error));
      },
      // A user who does not answer counts as having canceled. Other kinds of input have no such answer.
      fail: (error) => {
        if (request.method === METHODS.elicit) this.#update(key, CANCELED);
        else this.#refused(request.method, error.message);
      },
      progress: () => {},
    });
    this.#withdraws.push(withdraw);
  }

  #update(key: string, answer: Uint8Array): void {
    if (this.#isOver) return;
    const { connection, taskId, dispatcher } = this.#options;
    const params = jsonObject([
      ['taskId', toBytes(JSON.stringify(taskId))],
      ['inputResponses', jsonObject([[key, answer]])],
    ]);
    this.#unsent.delete(key);
    void connection.request(METHODS.updateTask, params, dispatcher.listTimeouts).then(({ kind }) => {
      if (kind === 'failed') this.#unsent.set(key, answer);
    });
  }

  /** Cancels the task and ends the call with an error of the tool, because a required input is missing. `message` says why. */
  #refused(method: string, message: string): void {
    if (this.#isOver) return;
    this.#cancelTask();
    const result = toolError(`The tool needs ${method} from the client, but: ${message}`);
    this.#end(madeOutcome(result, this.#options.dispatcher));
  }

  #stop(reason: 'cancelled' | 'timeout'): void {
    if (this.#isOver) return;
    this.#cancelTask();
    this.#end({ kind: 'failed', reason, sent: true });
  }

  #cancelTask(): void {
    const { connection, taskId, dispatcher } = this.#options;
    void connection.request(METHODS.cancelTask, { taskId }, dispatcher.listTimeouts);
  }

  #end(outcome: Outcome): void {
    this.#isOver = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const isOther = outcome.kind === 'answered' && !this.#options.exchange.takesInputRequests;
    this.#settle(isOther ? { ...outcome, edits: withoutResultMembers(outcome.response) } : outcome);
    for (const withdraw of this.#withdraws.splice(0)) withdraw();
  }
}

function pollMs(state: ResponseEnvelope | undefined): number {
  if (state?.result === undefined) return POLL_MS;
  const [wanted] = valuesAt(state.bytes, state.result, ['pollIntervalMs']);
  if (wanted === undefined || !isNumber(state.bytes, wanted)) return POLL_MS;
  return Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, Number(readText(state.bytes, wanted))));
}

function messageAt(bytes: Uint8Array, error: Span): string {
  const [message] = error.end === 0 ? [] : valuesAt(bytes, error, ['message']);
  return stringAt(bytes, message) ?? 'the client refused';
}

const CANCELED = toBytes('{"action":"cancel"}');
const CANCELED_BY_SERVER = toolError('The server canceled the task of this call');
