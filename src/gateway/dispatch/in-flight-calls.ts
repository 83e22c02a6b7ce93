import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { METHODS, TASK_METHODS } from '../../mcp/methods.js';

/**
 * The calls that one process is at work on, by which it is told whom it means when it says or asks something. One may be
 * settled already, and then nothing more can go along it.
 */
export class InFlightCalls {
  /**
   * In the order in which they were sent, with gaps where one has left: to close one up would move all behind it, and a
   * set would be made anew all the time as calls come and go, and keep the garbage collector busy.
   */
  #places: (Exchange | undefined)[] = [];
  /** Before this place there are only gaps. */
  #first = 0;
  #size = 0;
  #onIdle = () => {};

  get size(): number {
    return this.#size;
  }

  add(exchange: Exchange): void {
    if (this.#places.length >= MIN_PLACES && this.#places.length > 2 * this.#size) this.#closeUp();
    this.#places.push(exchange);
    this.#size += 1;
  }

  delete(exchange: Exchange): void {
    const place = this.#places.indexOf(exchange, this.#first);
    if (place >= 0) {
      this.#places[place] = undefined;
      this.#size -= 1;
      while (this.#first < this.#places.length && this.#places[this.#first] === undefined) this.#first += 1;
    }
    if (this.#size === 0) this.#onIdle();
  }

  /** Calls `onIdle` whenever there is no call left, and at once if there is none now. */
  whenIdle(onIdle: () => void): void {
    this.#onIdle = onIdle;
    if (this.#size === 0) onIdle();
  }

  /**
   * The call because of which the process says or asks something: the latest, if all that could be are one client's;
   * `undefined` when there is none, or when more than one client could be meant. What clients declared does not tell: a
   * server that serves all of them knows of none what it can do.
   *
   * What belongs to a task says so, hence requests about tasks count only where there are no others; and what makes no
   * server ask counts only where nothing else does.
   */
  get cause(): Exchange | undefined {
    const all = this.#all.filter(({ isSettled }) => !isSettled);
    const meant = onlySome(onlySome(all, isNoTask), isInteractive);
    const latest = meant.at(-1);
    return meant.every(({ client }) => client === latest?.client) ? latest : undefined;
  }

  /**
   * The call of this client's along which a question about a task is best asked: one that waits for a task's result,
   * else the latest. One that merely looks at a task's state, or ends it, is to be answered and nothing else.
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

  /** The same for reports of progress, whose order would be lost if they went along one call and then another. */
  taskResultWaitOf(client: DownstreamClient): Exchange | undefined {
    const latest = this.latestOf(client);
    return latest !== undefined && isTaskResultWait(latest) ? latest : undefined;
  }

  get #all(): Exchange[] {
    return this.#places.filter((exchange) => exchange !== undefined);
  }

  #closeUp(): void {
    this.#places = this.#all;
    this.#first = 0;
  }
}

/** So few places are not worth to be closed up. */
const MIN_PLACES = 256;

/** Whether it waits for the end of a task, for which the server need do nothing. */
export function isTaskResultWait({ request }: Exchange): boolean {
  return request.method === METHODS.taskResult;
}

/** Whether a request may make a server ask something before it answers. */
export function isInteractive({ request }: Exchange): boolean {
  return INTERACTIVE.has(request.method);
}

const INTERACTIVE: ReadonlySet<string> = new Set([METHODS.callTool, METHODS.getPrompt, METHODS.readResource]);

function isNoTask({ request }: Exchange): boolean {
  return !TASK_METHODS.has(request.method);
}

/** Those that are of this kind, or all if none is. */
function onlySome(calls: readonly Exchange[], isOfKind: (call: Exchange) => boolean): readonly Exchange[] {
  const some = calls.filter(isOfKind);
  return some.length > 0 ? some : calls;
}
