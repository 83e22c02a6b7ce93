import type { Exchange } from '../../downstream/exchange.js';
import type { DownstreamClient } from '../../downstream/port.js';
import { METHODS, TASK_METHODS } from '../../mcp/methods.js';

/** A call that was sent, as `InFlightCalls` links it to its neighbors. */
export interface InFlightCall {
  readonly exchange: Exchange;
  previous?: InFlightCall | undefined;
  next?: InFlightCall | undefined;
}

/**
 * The calls that one process works on, in the order in which they were sent: they tell which client a notification or a
 * request of the server is for. A call may be settled already; then nothing more can go along with it.
 *
 * A linked list, because calls come and go all the time: a set would be made anew again and again.
 */
export class InFlightCalls {
  #first: InFlightCall | undefined;
  #last: InFlightCall | undefined;
  #size = 0;
  #onIdle = () => {};

  get size(): number {
    return this.#size;
  }

  add(call: InFlightCall): void {
    call.previous = this.#last;
    if (this.#last === undefined) this.#first = call;
    else this.#last.next = call;
    this.#last = call;
    this.#size += 1;
  }

  /** Does nothing for a call that was removed already. */
  delete(call: InFlightCall): void {
    if (call.previous === undefined && this.#first !== call) return;
    if (call.previous === undefined) this.#first = call.next;
    else call.previous.next = call.next;
    if (call.next === undefined) this.#last = call.previous;
    else call.next.previous = call.previous;
    call.previous = undefined;
    call.next = undefined;
    this.#size -= 1;
    if (this.#size === 0) this.#onIdle();
  }

  /** Calls `onIdle` whenever no call is left, and at once if none is in flight now. */
  whenIdle(onIdle: () => void): void {
    this.#onIdle = onIdle;
    if (this.#size === 0) onIdle();
  }

  /**
   * The call that can have caused a notification or a request of the process: the latest, if all candidates belong to one
   * client; `undefined` without a candidate or with candidates of several clients. The clients' capabilities do not help:
   * a process that serves all clients knows none of them.
   *
   * Messages of a task name their task, so requests about tasks are candidates only if no other call is in flight. Calls
   * that cannot make a server send a request are candidates only if no interactive call is in flight.
   */
  get cause(): Exchange | undefined {
    const all = this.#all.filter(({ isSettled }) => !isSettled);
    const meant = onlySome(onlySome(all, isNoTask), isInteractive);
    const latest = meant.at(-1);
    return meant.every(({ client }) => client === latest?.client) ? latest : undefined;
  }

  /**
   * The call of this client that best carries a message about a task: one that waits for a task's result, else the latest.
   * A call that reads or cancels a task carries nothing but its own answer.
   */
  latestOf(client: DownstreamClient): Exchange | undefined {
    let latest: Exchange | undefined;
    for (const exchange of this.#all) {
      const isBehind = latest !== undefined && isTaskResultWait(latest);
      const isFit = isTaskResultWait(exchange) || (isNoTask(exchange) && !isBehind);
      if (exchange.client === client && !exchange.isSettled && isFit) latest = exchange;
    }
    return latest;
  }

  /** The same for progress, whose order would be lost if it went along one call and then another. */
  taskResultWaitOf(client: DownstreamClient): Exchange | undefined {
    const latest = this.latestOf(client);
    return latest !== undefined && isTaskResultWait(latest) ? latest : undefined;
  }

  get #all(): Exchange[] {
    const all: Exchange[] = [];
    for (let call = this.#first; call !== undefined; call = call.next) all.push(call.exchange);
    return all;
  }
}

/** Whether the request waits for the result of a task, which costs the server no work. */
export function isTaskResultWait({ request }: Exchange): boolean {
  return request.method === METHODS.taskResult;
}

/** Whether the server may send a request of its own before it answers this one. */
export function isInteractive({ request }: Exchange): boolean {
  return INTERACTIVE.has(request.method);
}

const INTERACTIVE: ReadonlySet<string> = new Set([METHODS.callTool, METHODS.getPrompt, METHODS.readResource]);

function isNoTask({ request }: Exchange): boolean {
  return !TASK_METHODS.has(request.method);
}

/** The calls of this kind, or all calls if none is of this kind. */
function onlySome(calls: readonly Exchange[], isOfKind: (call: Exchange) => boolean): readonly Exchange[] {
  const some = calls.filter(isOfKind);
  return some.length > 0 ? some : calls;
}
