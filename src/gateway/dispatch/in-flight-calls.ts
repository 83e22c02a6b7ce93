import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { METHODS, TASK_METHODS } from '../../wire/mcp/methods.js';

interface InFlightCall {
  readonly exchange: Exchange;
}

/** The calls in flight on one process, in order of sending. They decide which client gets a message of the server. */
export class InFlightCalls {
  /** An array, because a set reallocates its table as calls come and go (`RequestTable`). */
  readonly #calls: InFlightCall[] = [];
  #onIdle = () => {};

  get size(): number {
    return this.#calls.length;
  }

  add(call: InFlightCall): void {
    this.#calls.push(call);
  }

  /** Removes a call. Calling it again does nothing. */
  delete(call: InFlightCall): void {
    const index = this.#calls.indexOf(call);
    if (index < 0) return;
    this.#calls.splice(index, 1);
    if (this.#calls.length === 0) this.#onIdle();
  }

  /** The exchange of the call that is this sender, if it is in flight. */
  sentBy(sender: unknown): Exchange | undefined {
    return this.#calls.find((call) => call === sender)?.exchange;
  }

  /** The client of a suspended call came back with input. From now on, the call counts as the call that was sent last. */
  resumed(exchange: unknown): void {
    const index = this.#calls.findIndex((each) => each.exchange === exchange);
    if (index >= 0) this.#calls.push(...this.#calls.splice(index, 1));
  }

  /** Calls `onIdle` each time that the last call ends, and at once if no call is in flight. */
  whenIdle(onIdle: () => void): void {
    this.#onIdle = onIdle;
    if (this.#calls.length === 0) onIdle();
  }

  /**
   * The call that caused a notification or a server request: the latest candidate, if all candidates belong to one conversation.
   *
   * A task request is a candidate only if no other call is in flight, because messages about a task name the task. A call that is not
   * interactive is a candidate only if no interactive call is in flight. A suspended call, whose client was asked for input, is a candidate
   * only if no other candidate is active. If candidates, including the suspended ones, belong to different principals, the result is
   * `undefined`, because no user may get a request for another user.
   */
  get cause(): Exchange | undefined {
    const all = this.#all.filter(({ isSettled }) => !isSettled);
    const possible = preferring(preferring(all, isNotTaskRequest), isInteractive);
    const candidates = preferring(possible, isActive);
    const latest = candidates.at(-1);
    const isCertain = candidates.every(({ conversation }) => conversation === latest?.conversation);
    const isOfOneUser = possible.every(({ client }) => client.principal === latest?.client.principal);
    return isCertain && isOfOneUser ? latest : undefined;
  }

  /** The call that carries a message about a task: the latest task-result wait, otherwise the latest non-task request. */
  latestOf(client: DownstreamClient): Exchange | undefined {
    let latest: Exchange | undefined;
    for (const exchange of this.#all) {
      const isOutranked = latest !== undefined && isTaskResultWait(latest);
      const isCandidate = isTaskResultWait(exchange) || (isNotTaskRequest(exchange) && !isOutranked);
      if (exchange.client === client && !exchange.isSettled && isCandidate) latest = exchange;
    }
    return latest;
  }

  /** The call that carries progress of a task. Only a task-result wait may, because progress must stay in order. */
  taskResultWaitOf(client: DownstreamClient): Exchange | undefined {
    const latest = this.latestOf(client);
    return latest !== undefined && isTaskResultWait(latest) ? latest : undefined;
  }

  get #all(): Exchange[] {
    return this.#calls.map(({ exchange }) => exchange);
  }
}

/** Whether the request waits for a task result (`tasks/result`), which costs the server no work. */
export function isTaskResultWait({ request }: Exchange): boolean {
  return request.method === METHODS.taskResult;
}

/** Whether the server may send a request to the client before it answers this request. */
export function isInteractive({ request }: Exchange): boolean {
  return INTERACTIVE.has(request.method);
}

const INTERACTIVE: ReadonlySet<string> = new Set([METHODS.callTool, METHODS.getPrompt, METHODS.readResource]);

function isNotTaskRequest({ request }: Exchange): boolean {
  return !TASK_METHODS.has(request.method);
}

function preferring(calls: readonly Exchange[], isOfKind: (call: Exchange) => boolean): readonly Exchange[] {
  const some = calls.filter(isOfKind);
  return some.length > 0 ? some : calls;
}

function isActive({ isSuspended }: Exchange): boolean {
  return !isSuspended;
}
