import { METHODS } from '../mcp/methods.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';

/** Whether a request may make a server ask something before it answers. */
export function isInteractive({ request }: Exchange): boolean {
  return INTERACTIVE.has(request.method);
}

const INTERACTIVE: ReadonlySet<string> = new Set([
  METHODS.callTool,
  METHODS.getPrompt,
  METHODS.readResource,
  METHODS.taskResult,
]);

/** The calls that one process is at work on, for telling why it says or asks something. */
export class SentCalls {
  readonly #calls = new Set<Exchange>();

  get size(): number {
    return this.#calls.size;
  }

  add(call: Exchange): void {
    this.#calls.add(call);
  }

  delete(call: Exchange): void {
    this.#calls.delete(call);
  }

  /**
   * The call because of which the process says or asks something: the latest it was given, if all that could be are one
   * client's; `undefined` when there is none, or when more than one client could be meant. `canBe` says whether a
   * client could be meant at all.
   */
  causeAmong(canBe: (client: GatewayClient) => boolean = () => true): Exchange | undefined {
    const possible = [...this.#calls].filter(({ client }) => canBe(client));
    const asking = possible.filter(isInteractive);
    const calls = asking.length > 0 ? asking : possible;
    const latest = calls.at(-1);
    return calls.every(({ client }) => client === latest?.client) ? latest : undefined;
  }

  /** The latest call of this client's. */
  latestOf(client: GatewayClient): Exchange | undefined {
    let latest: Exchange | undefined;
    for (const call of this.#calls) if (call.client === client) latest = call;
    return latest;
  }
}
