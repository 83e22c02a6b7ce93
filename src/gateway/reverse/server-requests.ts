import type { DownstreamClient, Exchange, InputRequest, WithdrawInput } from '../../downstream/port.js';
import type { ServerRequest } from '../../upstream/upstream-connection.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import { readText } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import { EMPTY_RESULT, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS, TASK_METHODS } from '../../wire/mcp/methods.js';
import { EnvelopeRequest } from '../../wire/mcp/relayed-request.js';
import { signedQuestion } from '../../wire/mcp/signed-questions.js';
import type { Backend } from '../registry/backend.js';
import type { Tasks } from '../tasks/tasks.js';

/** Limits of the remembered elicitations of one server: their number (the oldest is forgotten), and the length of their ids. */
const MAX_ELICITATIONS = 256;
const MAX_ID_BYTES = 1_024;

interface Addressee {
  readonly client: DownstreamClient;
  /** The client's request that caused the server request, if it is known. */
  readonly cause: { readonly requireInput: Exchange['requireInput'] } | undefined;
  readonly edits: readonly Edit[];
}

/** Returns a function that asks the client as `ask` does, once the gates have looked at the question. */
type Asking = (server: Backend, client: DownstreamClient, ask: Exchange['requireInput']) => Exchange['requireInput'];

/**
 * Relays server requests (sampling, elicitation, roots, requests about a client's tasks) to the right client, and withdraws them when the
 * server cancels them or exits.
 *
 * A request about a task goes to the owner of the task. Over HTTP, any other request goes to the client whose request it came with.
 * Otherwise it goes to the client whose call is in flight on the server. Without calls, a request for roots goes to the only client of the
 * server, and elicitation and sampling fail, because no client has asked the server for anything. If several clients are possible, the
 * request fails, because a guess could show one conversation's request in another. A `ping` goes to the only client of the server if that
 * client sees the server unchanged and can be reached now; otherwise, the gateway answers it.
 */
export class ServerRequests {
  readonly #tasks: Tasks;
  readonly #asking: Asking;
  /** Functions that withdraw the pending requests: by server, then by the id that the server gave its request. */
  readonly #pending = new Map<Backend, Map<string, WithdrawInput>>();
  /** The client that got each elicitation: by server, then by `elicitationId`. */
  readonly #elicitations = new WeakMap<Backend, NewestMap<string, DownstreamClient>>();

  constructor(tasks: Tasks, asking: Asking = (_server, _client, ask) => ask) {
    this.#tasks = tasks;
    this.#asking = asking;
  }

  relay(backend: Backend, serverRequest: ServerRequest): void {
    const addressee = this.#addressee(backend, serverRequest);
    if (addressee instanceof RpcError) {
      serverRequest.fail(addressee);
      return;
    }
    const { request } = serverRequest;
    if (addressee === 'gateway') {
      serverRequest.succeed(EMPTY_RESULT);
      return;
    }
    const { client, cause, edits } = addressee;
    const signed = signedQuestion(backend.key, request);
    if (signed instanceof RpcError) {
      serverRequest.fail(signed);
      return;
    }
    this.#noteElicitation(backend, request, client);
    const id = readText(request.bytes, request.id);
    let isOver = false;
    const over = () => {
      isOver = true;
      this.#forget(backend, id);
    };
    const input: InputRequest = {
      request: new EnvelopeRequest(request),
      edits: [...edits, ...signed, ...this.#tasks.towardClient(request, client, backend)],
      answer: (response, keepProgress) => {
        over();
        // A client without a session answers by sending its call again, so the call counts as sent just now.
        if (cause !== undefined && !client.hasSession) backend.dispatcher.inFlightCalls.resumed(cause);
        serverRequest.answer(response, [
          ...this.#tasks.ofClients.answered(request, response, client, backend, keepProgress),
          ...this.#tasks.towardServer(response, client, backend),
        ]);
      },
      fail: (error) => {
        over();
        // A `ping` always succeeds, because Trunkline is there even if the client is not.
        if (request.method === METHODS.ping) serverRequest.succeed(EMPTY_RESULT);
        else serverRequest.fail(error);
      },
      progress: (notification) =>
        serverRequest.progress(notification, this.#tasks.towardServer(notification, client, backend)),
    };
    const ask: Exchange['requireInput'] = (asked) => (cause ?? client).requireInput(asked);
    const withdraw = this.#asking(backend, client, ask)(input);
    if (isOver) return;
    const pending = this.#pending.get(backend) ?? new Map<string, WithdrawInput>();
    this.#pending.set(backend, pending);
    pending.set(id, (notification) =>
      withdraw(notification, notification && this.#tasks.towardClient(notification, client, backend)),
    );
  }

  cancel(backend: Backend, notification: NotificationEnvelope): void {
    const { requestId } = notification.tokens;
    if (requestId === undefined) return;
    const id = readText(notification.bytes, requestId);
    const withdraw = this.#pending.get(backend)?.get(id);
    this.#forget(backend, id);
    withdraw?.(notification);
  }

  /** The client that got the elicitation which this notification completes; `undefined` if it is not known. */
  elicited(backend: Backend, { bytes, tokens: { elicitationId } }: NotificationEnvelope): DownstreamClient | undefined {
    const id = elicitationId === undefined ? '' : readText(bytes, elicitationId);
    const client = this.#elicitations.get(backend)?.get(id);
    this.#elicitations.get(backend)?.delete(id);
    return client;
  }

  /** Withdraws all requests of a server whose process has exited. */
  drop(backend: Backend): void {
    const pending = this.#pending.get(backend);
    this.#pending.delete(backend);
    this.#elicitations.delete(backend);
    for (const withdraw of pending?.values() ?? []) withdraw();
  }

  #noteElicitation(
    backend: Backend,
    { bytes, tokens: { elicitationId } }: RequestEnvelope,
    client: DownstreamClient,
  ): void {
    if (elicitationId === undefined || elicitationId.end - elicitationId.start > MAX_ID_BYTES) return;
    const elicitations = this.#elicitations.get(backend) ?? new NewestMap<string, DownstreamClient>(MAX_ELICITATIONS);
    this.#elicitations.set(backend, elicitations);
    elicitations.set(readText(bytes, elicitationId), client);
  }

  #forget(backend: Backend, id: string): void {
    const pending = this.#pending.get(backend);
    pending?.delete(id);
    if (pending?.size === 0) this.#pending.delete(backend);
  }

  #addressee(backend: Backend, { request, cause: sender }: ServerRequest): Addressee | 'gateway' | RpcError {
    const { dispatcher, clients } = backend;
    if (request.method === METHODS.ping) {
      const [client, ...others] = clients;
      const isRelayed = client?.takesPings === true && others.length === 0;
      return isRelayed ? { client, cause: undefined, edits: [] } : 'gateway';
    }
    if (TASK_METHODS.has(request.method)) {
      const target = this.#tasks.ofClients.target(request, backend);
      if (target === undefined) return new RpcError(RPC_CODES.invalidParams, 'Unknown task');
      return { ...target, cause: dispatcher.inFlightCalls.latestOf(target.client) };
    }
    if (request.method === METHODS.listTasks && clients.size !== 1) {
      return new RpcError(RPC_CODES.methodNotFound, 'The tasks of several clients cannot be listed');
    }
    const owner = this.#tasks.ownerOf(backend, request);
    const { inFlightCalls } = dispatcher;
    const isQuestion = request.method === METHODS.elicit || request.method === METHODS.createMessage;
    const cause = (sender && inFlightCalls.sentBy(sender)) ?? inFlightCalls.cause;
    if (isQuestion && owner === undefined && inFlightCalls.size === 0) {
      return new RpcError(
        RPC_CODES.internalError,
        'A server may ask only while it works on a call, and none is in flight',
      );
    }
    const client = owner === undefined ? (cause?.client ?? onlyClient(backend)) : owner.client;
    if (client === undefined) {
      // Calls in flight do not decide the owner of a task or of roots, so calls of one client at a time would not help.
      const isOfCall = owner === undefined && request.method !== METHODS.listRoots;
      if (isOfCall) dispatcher.admission.serveOneClientAtATime();
      return new RpcError(
        RPC_CODES.internalError,
        'Several clients use this server, and it is unknown which one this is for',
      );
    }
    if (owner === undefined) return { client, cause, edits: [] };
    const channel = owner.channel?.isSettled === false ? owner.channel : undefined;
    // A client without a session can be reached only along the call that became the task.
    if (owner.channel !== undefined && channel === undefined && !client.hasSession) {
      return new RpcError(RPC_CODES.internalError, 'The client does not wait for this task any more');
    }
    return { client, cause: channel ?? dispatcher.inFlightCalls.latestOf(client), edits: [] };
  }
}

/** The only client of the server. `undefined` while a call is in flight, because that call may be another client's. */
function onlyClient({ dispatcher, clients }: Backend): DownstreamClient | undefined {
  const [client, ...others] = clients;
  return dispatcher.inFlightCalls.size > 0 || others.length > 0 ? undefined : client;
}
