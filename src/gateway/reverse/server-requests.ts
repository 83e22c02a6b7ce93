import type { Exchange } from '../../downstream/exchange.js';
import type { DownstreamClient, InputRequest, WithdrawInput } from '../../downstream/port.js';
import { readText } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS, TASK_METHODS } from '../../mcp/methods.js';
import type { ServerRequest } from '../../upstream/port.js';
import type { Backend } from '../registry/backend.js';
import type { Tasks } from '../tasks/tasks.js';

/** Of one server, that may be open elsewhere; the oldest is forgotten first. */
const MAX_ELICITATIONS = 256;

/** Who is asked, on the way of which request, and what is replaced in the question. */
interface Addressee {
  readonly client: DownstreamClient;
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
export class ServerRequests {
  readonly #tasks: Tasks;
  /** By server, then by the id that the server gave its request. */
  readonly #open = new Map<Backend, Map<string, WithdrawInput>>();
  /** By backend, then by the id of an elicitation that goes on elsewhere: who was asked for it. */
  readonly #elicitations = new WeakMap<Backend, Map<string, DownstreamClient>>();

  constructor(tasks: Tasks) {
    this.#tasks = tasks;
  }

  ask(backend: Backend, asked: ServerRequest): void {
    const addressee = this.#addressee(backend, asked);
    if (addressee instanceof RpcError) {
      asked.fail(addressee);
      return;
    }
    const { request } = asked;
    const { client, via, edits } = addressee;
    this.#noteElicitation(backend, request, client);
    const id = readText(request.bytes, request.id);
    let isOver = false;
    const over = () => {
      isOver = true;
      this.#forget(backend, id);
    };
    const input: InputRequest = {
      request,
      edits: [...edits, ...this.#tasks.towardClient(request, client, backend)],
      answer: (response, keepProgress) => {
        over();
        asked.answer(response, [
          ...this.#tasks.ofClients.answered(request, response, client, backend, keepProgress),
          ...this.#tasks.towardServer(response, client, backend),
        ]);
      },
      fail: (error) => {
        over();
        asked.fail(error);
      },
      progress: (notification) => asked.progress(notification, this.#tasks.towardServer(notification, client, backend)),
    };
    const withdraw = client.ask(input, via);
    if (isOver) return;
    const open = this.#open.get(backend) ?? new Map<string, WithdrawInput>();
    this.#open.set(backend, open);
    open.set(id, (notice) => withdraw(notice, notice && this.#tasks.towardClient(notice, client, backend)));
  }

  /** The server cancels what it asked. */
  cancel(backend: Backend, notice: NotificationEnvelope): void {
    const { requestId } = notice.tokens;
    if (requestId === undefined) return;
    const id = readText(notice.bytes, requestId);
    const withdraw = this.#open.get(backend)?.get(id);
    this.#forget(backend, id);
    withdraw?.(notice);
  }

  /** The client that was asked for what this notification says is done; `undefined` if that is not known. */
  elicited(backend: Backend, { bytes, tokens: { elicitationId } }: NotificationEnvelope): DownstreamClient | undefined {
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
    for (const withdraw of open?.values() ?? []) withdraw();
  }

  #noteElicitation(
    backend: Backend,
    { bytes, tokens: { elicitationId } }: RequestEnvelope,
    client: DownstreamClient,
  ): void {
    if (elicitationId === undefined) return;
    const asked = this.#elicitations.get(backend) ?? new Map<string, DownstreamClient>();
    this.#elicitations.set(backend, asked);
    asked.set(readText(bytes, elicitationId), client);
    for (const oldest of asked.keys()) {
      if (asked.size <= MAX_ELICITATIONS) break;
      asked.delete(oldest);
    }
  }

  #forget(backend: Backend, id: string): void {
    const open = this.#open.get(backend);
    open?.delete(id);
    if (open?.size === 0) this.#open.delete(backend);
  }

  #addressee(backend: Backend, { request }: ServerRequest): Addressee | RpcError {
    const { dispatcher, clients } = backend;
    if (TASK_METHODS.has(request.method)) {
      const target = this.#tasks.ofClients.target(request, backend);
      if (target === undefined) return new RpcError(RPC_CODES.invalidParams, 'Unknown task');
      return { ...target, via: dispatcher.inFlightCalls.latestOf(target.client) };
    }
    if (request.method === METHODS.listTasks && clients.size !== 1) {
      return new RpcError(RPC_CODES.methodNotFound, 'Tasks of several clients cannot be listed');
    }
    const owner = this.#tasks.ownerOf(backend, request);
    const { cause } = dispatcher.inFlightCalls;
    const client = owner === undefined ? (cause?.client ?? onlyOne(backend)) : owner.client;
    if (client === undefined) {
      // Neither whose a task is nor whose roots are wanted depends on whose calls are under way.
      const isOfCall = owner === undefined && request.method !== METHODS.listRoots;
      if (isOfCall) dispatcher.serveOneClientAtATime();
      return new RpcError(RPC_CODES.internalError, 'It cannot be told which client this is for');
    }
    return { client, via: owner === undefined ? cause : dispatcher.inFlightCalls.latestOf(client), edits: [] };
  }
}

/** The only client there is, as long as no call is under way that may be another's. */
function onlyOne({ dispatcher, clients }: Backend): DownstreamClient | undefined {
  const [client, ...others] = clients;
  return dispatcher.inFlightCalls.size > 0 || others.length > 0 ? undefined : client;
}
