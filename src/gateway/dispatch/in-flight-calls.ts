import { type Linked, LinkedList } from '../../downstream/linked-list.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { requestedList } from '../../mcp/lists.js';
import { METHODS, TASK_METHODS } from '../../mcp/methods.js';

/** A call that was sent, as a node of the linked list in `InFlightCalls`. */
export interface InFlightCall extends Linked<InFlightCall> {
  readonly exchange: Exchange;
}

/**
 * The calls in flight on one process, in the order in which they were sent or resumed. They decide which client a
 * notification or a server request is for. A settled call cannot carry messages to its client any more.
 */
export class InFlightCalls {
  readonly #calls = new LinkedList<InFlightCall>();
  #onIdle = () => {};

  get size(): number {
    return this.#calls.size;
  }

  add(call: InFlightCall): void {
    this.#calls.add(call);
  }

  /** Removes a call. Calling it again does nothing. */
  delete(call: InFlightCall): void {
    if (this.#calls.delete(call) && this.#calls.size === 0) this.#onIdle();
  }

  /** The server goes on with a call for which its client came back, as if the call had been sent just now. */
  resumed(exchange: Pick<Exchange, 'requireInput'>): void {
    let call = this.#calls.first;
    while (call !== undefined && call.exchange !== exchange) call = call.next;
    if (call === undefined || call === this.#calls.last) return;
    this.delete(call);
    this.add(call);
  }

  /** Calls `onIdle` each time the last call ends, and at once if no call is in flight now. */
  whenIdle(onIdle: () => void): void {
    this.#onIdle = onIdle;
    if (this.#calls.size === 0) onIdle();
  }

  /**
   * The call that caused a notification or a server request: the latest candidate, if all candidates belong to one
   * conversation. `undefined` without a candidate, or with candidates of several conversations. Client capabilities do not help to
   * decide, because a process that serves all clients knows none of them.
   *
   * Messages about a task name that task, so task requests are candidates only if no other call is in flight. Calls
   * that are not interactive are candidates only if no interactive call is in flight, and those that wait for their client
   * only if no other one is. A call of another user that waits counts all the same: no user may get another's question.
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

  /**
   * The call of this client that carries a message about a task: the latest that waits for a task result, else the
   * latest that is not a task request. A request that reads or cancels a task carries only its own answer.
   */
  latestOf(client: DownstreamClient): Exchange | undefined {
    let latest: Exchange | undefined;
    for (const exchange of this.#all) {
      const isOutranked = latest !== undefined && isTaskResultWait(latest);
      const isCandidate = isTaskResultWait(exchange) || (isNotTaskRequest(exchange) && !isOutranked);
      if (exchange.client === client && !exchange.isSettled && isCandidate) latest = exchange;
    }
    return latest;
  }

  /** The call that carries progress of a task: only a task-result wait, so that progress keeps its order. */
  taskResultWaitOf(client: DownstreamClient): Exchange | undefined {
    const latest = this.latestOf(client);
    return latest !== undefined && isTaskResultWait(latest) ? latest : undefined;
  }

  get #all(): Exchange[] {
    const all: Exchange[] = [];
    for (let call = this.#calls.first; call !== undefined; call = call.next) all.push(call.exchange);
    return all;
  }
}

/** Whether the request waits for a task result (`tasks/result`), which costs the server no work. */
export function isTaskResultWait({ request }: Exchange): boolean {
  return request.method === METHODS.taskResult;
}

/** Whether the request does not count toward the concurrency limit of the server. */
export function needsNoSlot(exchange: Exchange): boolean {
  return isTaskResultWait(exchange) || requestedList(exchange.request.method) !== undefined;
}

/** Whether the server may send a request to the client before it answers this request. */
export function isInteractive({ request }: Exchange): boolean {
  return INTERACTIVE.has(request.method);
}

const INTERACTIVE: ReadonlySet<string> = new Set([METHODS.callTool, METHODS.getPrompt, METHODS.readResource]);

function isNotTaskRequest({ request }: Exchange): boolean {
  return !TASK_METHODS.has(request.method);
}

/** Returns the calls of this kind, or all calls if none is of this kind. */
function preferring(calls: readonly Exchange[], isOfKind: (call: Exchange) => boolean): readonly Exchange[] {
  const some = calls.filter(isOfKind);
  return some.length > 0 ? some : calls;
}

/** Whether the server works on the request, and does not wait for input of its client. */
function isActive({ isSuspended }: Exchange): boolean {
  return !isSuspended;
}
