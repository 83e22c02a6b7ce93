import { METHODS, TASK_METHODS } from '../mcp/methods.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';

/** The calls that one process is at work on, by which it is told whom it means when it says or asks something. */
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
    const all = [...this.#calls];
    const others = all.filter(({ request }) => !TASK_METHODS.has(request.method));
    const meant = others.length > 0 ? others : all;
    const latest = meant.at(-1);
    return meant.every(({ client }) => client === latest?.client) ? latest : undefined;
  }

  /**
   * The call of this client's along which something about a task is best sent: one that waits for a task's result,
   * else the latest, and only then one that merely looks at a task's state.
   */
  latestOf(client: GatewayClient): Exchange | undefined {
    let best: Exchange | undefined;
    for (const exchange of this.#calls) {
      const isAsGood = best === undefined || fitness(exchange) >= fitness(best);
      if (exchange.client === client && isAsGood) best = exchange;
    }
    return best;
  }
}

/** Whether it waits for the end of a task, for which the server need do nothing. */
export function isLookout({ request }: Exchange): boolean {
  return request.method === METHODS.taskResult;
}

function fitness(exchange: Exchange): number {
  if (isLookout(exchange)) return 2;
  return TASK_METHODS.has(exchange.request.method) ? 0 : 1;
}
