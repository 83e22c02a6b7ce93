import { readText, type Span } from '../jsonrpc/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { Edit } from '../jsonrpc/splice.js';
import type { NotificationEnvelope, RequestEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import type { Backend } from './backend.js';
import type { ChildRequest } from './child-request.js';
import type { ClientTasks } from './client-tasks.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';
import { type ServerTasks, TASK_METHODS } from './server-tasks.js';

type TakeBack = (notice?: NotificationEnvelope) => void;

/** Of one server, that may be open elsewhere; the oldest is forgotten first. */
const MAX_ELICITATIONS = 256;

/** Who is asked, on the way of which request, and what is replaced in the question. */
interface Addressee {
  readonly client: GatewayClient;
  readonly via: Exchange | undefined;
  readonly edits: readonly Edit[];
}

/**
 * What servers ask of clients: finds the client that a question is for, and takes the question back when the server
 * does not want the answer any more.
 *
 * A question about a task goes to whose task it is; any other to the client whose call the server is at work on. With
 * no call under way it goes to the only client there is. Where more than one client could be meant it is refused: to
 * guess would be to show one conversation's question in another.
 */
export class ChildRequests {
  readonly #serverTasks: ServerTasks;
  readonly #clientTasks: ClientTasks;
  /** By server, then by the id that the server gave its request. */
  readonly #open = new Map<Backend, Map<string, TakeBack>>();
  /** By backend, then by the id of an elicitation that goes on elsewhere: who was asked for it. */
  readonly #elicitations = new WeakMap<Backend, Map<string, GatewayClient>>();

  constructor(serverTasks: ServerTasks, clientTasks: ClientTasks) {
    this.#serverTasks = serverTasks;
    this.#clientTasks = clientTasks;
  }

  ask(backend: Backend, asked: ChildRequest): void {
    const addressee = this.#addressee(backend, asked);
    if (addressee instanceof RpcError) {
      asked.fail(addressee);
      return;
    }
    const { client, via, edits } = addressee;
    this.#noteElicitation(backend, asked.request, client);
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
      edits,
      progress: (notification) => asked.progress(notification),
      relay: (response) => {
        over();
        const related = this.#serverTasks.editsForAnswer(response, client, backend);
        asked.relay(response, [
          ...related,
          ...this.#clientTasks.editsForAnswer(asked.request, response, client, backend),
        ]);
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

  /** The client that was asked for what this notification says is done; `undefined` if that is not known. */
  elicited(backend: Backend, { bytes, tokens: { elicitationId } }: NotificationEnvelope): GatewayClient | undefined {
    const id = elicitationId === undefined ? '' : readText(bytes, elicitationId);
    const client = this.#elicitations.get(backend)?.get(id);
    this.#elicitations.get(backend)?.delete(id);
    return client;
  }

  /** The process is gone: nobody waits for any of the answers. */
  drop(backend: Backend): void {
    const open = this.#open.get(backend);
    this.#open.delete(backend);
    this.#elicitations.delete(backend);
    for (const takeBack of open?.values() ?? []) takeBack();
  }

  #noteElicitation(
    backend: Backend,
    { bytes, tokens: { elicitationId } }: RequestEnvelope,
    client: GatewayClient,
  ): void {
    if (elicitationId === undefined) return;
    const asked = this.#elicitations.get(backend) ?? new Map<string, GatewayClient>();
    this.#elicitations.set(backend, asked);
    asked.set(readText(bytes, elicitationId), client);
    if (asked.size <= MAX_ELICITATIONS) return;
    for (const oldest of asked.keys()) {
      asked.delete(oldest);
      break;
    }
  }

  #addressee(backend: Backend, { request }: ChildRequest): Addressee | RpcError {
    const { delivery, clients } = backend;
    if (TASK_METHODS.has(request.method)) {
      const target = this.#clientTasks.target(request, backend);
      if (target === undefined) return new RpcError(RPC_CODES.invalidParams, 'Unknown task');
      return { ...target, via: delivery.sent.latestOf(target.client) };
    }
    if (request.method === METHODS.listTasks && clients.size !== 1) {
      return new RpcError(RPC_CODES.methodNotFound, 'Tasks of several clients cannot be listed');
    }
    const owner = this.#serverTasks.clientOf(backend, request);
    const via = owner === undefined ? causeOf(backend, request) : delivery.sent.latestOf(owner);
    const client = owner ?? via?.client ?? (delivery.sent.size > 0 ? undefined : onlyOne(clients));
    if (client === undefined) {
      delivery.serveOneClientAtATime();
      return new RpcError(RPC_CODES.internalError, 'It cannot be told which client this is for');
    }
    return { client, via, edits: this.#serverTasks.editsToward(client, backend, request) };
  }
}

/** One that could serve it, or else one that says itself that it cannot. */
function causeOf({ delivery }: Backend, request: RequestEnvelope): Exchange | undefined {
  return delivery.sent.causeAmong((client) => client.supports(request)) ?? delivery.sent.causeAmong();
}

function onlyOne(clients: ReadonlySet<GatewayClient>): GatewayClient | undefined {
  const [client, ...others] = clients;
  return others.length === 0 ? client : undefined;
}

function tokenText({ bytes }: { readonly bytes: Uint8Array }, span: Span): string {
  return readText(bytes, span);
}
