import { readText, type Span } from '../jsonrpc/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import type { Backend } from './backend.js';
import type { ChildRequest } from './child-request.js';
import type { GatewayClient } from './gateway-port.js';

type TakeBack = (notice?: NotificationEnvelope) => void;

/**
 * What servers ask of clients: finds the client that a question is for, and takes the question back when the server
 * does not want the answer any more.
 *
 * A question goes to the client whose call the server is at work on. With no call under way it goes to the only
 * client there is. Where more than one client could be meant it is refused: to guess would be to show one
 * conversation's question in another.
 */
export class ChildRequests {
  /** By server, then by the id that the server gave its request. */
  readonly #open = new Map<Backend, Map<string, TakeBack>>();

  ask(backend: Backend, asked: ChildRequest): void {
    const via = backend.delivery.cause;
    const client = via?.client ?? (backend.delivery.isAtWork ? undefined : onlyOne(backend.clients));
    if (client === undefined) {
      asked.fail(new RpcError(RPC_CODES.internalError, 'It cannot be told which client this is for'));
      return;
    }
    const id = tokenText(asked.request, asked.request.id);
    const open = this.#open.get(backend) ?? new Map<string, TakeBack>();
    this.#open.set(backend, open);
    let isOver = false;
    const over = () => {
      isOver = true;
      open.delete(id);
    };
    const question: ChildRequest = {
      request: asked.request,
      progress: (notification) => asked.progress(notification),
      relay: (response) => {
        over();
        asked.relay(response);
      },
      fail: (error) => {
        over();
        asked.fail(error);
      },
    };
    const takeBack = client.ask(question, via);
    if (!isOver) open.set(id, takeBack);
  }

  /** The server cancels what it asked. Returns whether it had asked such a thing. */
  cancel(backend: Backend, notice: NotificationEnvelope): boolean {
    const { requestId } = notice.tokens;
    const id = requestId === undefined ? '' : tokenText(notice, requestId);
    const takeBack = this.#open.get(backend)?.get(id);
    this.#open.get(backend)?.delete(id);
    takeBack?.(notice);
    return takeBack !== undefined;
  }

  /** The process is gone: nobody waits for any of the answers. */
  drop(backend: Backend): void {
    const open = this.#open.get(backend);
    this.#open.delete(backend);
    for (const takeBack of open?.values() ?? []) takeBack();
  }
}

function onlyOne(clients: ReadonlySet<GatewayClient>): GatewayClient | undefined {
  const [client, ...others] = clients;
  return others.length === 0 ? client : undefined;
}

function tokenText({ bytes }: { readonly bytes: Uint8Array }, span: Span): string {
  return readText(bytes, span);
}
