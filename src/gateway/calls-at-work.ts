import { METHODS, TASK_METHODS } from '../mcp/methods.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';

/**
 * The calls that one process is at work on, by which it is told whom it means when it says or asks something. One may be
 * settled already, and then nothing more can go along it.
 */
export class CallsAtWork {
  /** In the order in which they were sent. */
  readonly #calls = new Set<Exchange>();

  get size(): number {
    return this.#calls.size;
  }

  add(exchange: Exchange): void {
    this.#calls.add(exchange);
  }

  delete(exchange: Exchange): void {
    this.#calls.delete(exchange);
  }

  /**
   * The call because of which the process says or asks something: the latest, if all are one client's; `undefined` when
   * there is none, or when more than one client could be meant.
   *
   * What belongs to a task says so, hence requests about tasks count only where there are no others.
   */
  get cause(): Exchange | undefined {
    const all = [...this.#calls].filter(({ isSettled }) => !isSettled);
    const others = all.filter((exchange) => !isAboutTask(exchange));
    const meant = others.length > 0 ? others : all;
    const latest = meant.at(-1);
    return meant.every(({ client }) => client === latest?.client) ? latest : undefined;
  }

  /**
   * The call of this client's along which a question about a task is best asked: one that waits for a task's result,
   * else the latest. One that merely looks at a task's state, or ends it, is to be answered and nothing else.
   */
  latestOf(client: GatewayClient): Exchange | undefined {
    let latest: Exchange | undefined;
    for (const exchange of this.#calls) {
      const isFit = isLookout(exchange) || !(isAboutTask(exchange) || (latest !== undefined && isLookout(latest)));
      if (exchange.client === client && !exchange.isSettled && isFit) latest = exchange;
    }
    return latest;
  }

  /** The same for reports of progress, whose order would be lost if they went along one call and then another. */
  lookoutOf(client: GatewayClient): Exchange | undefined {
    const latest = this.latestOf(client);
    return latest !== undefined && isLookout(latest) ? latest : undefined;
  }
}

/** Whether it waits for the end of a task, for which the server need do nothing. */
export function isLookout({ request }: Exchange): boolean {
  return request.method === METHODS.taskResult;
}

function isAboutTask({ request }: Exchange): boolean {
  return TASK_METHODS.has(request.method);
}
