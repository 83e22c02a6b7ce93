import { readText, type Span } from '../../json/json-text.js';
import { type Edit, NumberWriter, type SplicedMessage } from '../../json/splice.js';
import { AnsweredRequests, CorrelationTable } from '../../jsonrpc/correlation-table.js';
import { notificationMessage } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MAX_UNANSWERED, refusedInput, TOO_MANY_UNANSWERED } from '../input-requests.js';
import type { InputRequest, WithdrawInput } from '../port.js';

/** Sends a server request, or the cancellation of it. */
type Send = (message: SplicedMessage, input: InputRequest) => void;

/**
 * The server requests that one client has to answer, by the ids that the gateway gives them.
 *
 * A request that needs a capability which the client did not declare fails at once. A client that sees one server
 * unchanged gets such a request, too, and refuses it itself.
 */
export class OutgoingServerRequests {
  readonly #sendUnsolicited: Send;
  readonly #pending: CorrelationTable<InputRequest>;
  readonly #answered = new AnsweredRequests<InputRequest>();
  readonly #numbers = new NumberWriter();
  #capabilities: Readonly<Record<string, unknown>> | undefined;

  /** `sendUnsolicited` sends messages that no request of the client caused. */
  constructor(sendUnsolicited: Send, firstId?: number) {
    this.#sendUnsolicited = sendUnsolicited;
    this.#pending = new CorrelationTable(firstId);
  }

  /** Sets the capabilities that the client declared in `initialize`. Without them, the client gets every request. */
  declare(capabilities: Readonly<Record<string, unknown>>): void {
    this.#capabilities = capabilities;
  }

  /** Requests that the client has not answered yet. */
  get size(): number {
    return this.#pending.size;
  }

  /** Sends the request to the client. `send` also sends its cancellation, so that the two keep their order. */
  send(input: InputRequest, send: Send = this.#sendUnsolicited): WithdrawInput {
    const { request, edits } = input;
    const isFull = this.#pending.size >= MAX_UNANSWERED;
    const refusal = isFull ? TOO_MANY_UNANSWERED : refusedInput(request, this.#capabilities);
    if (refusal !== undefined) {
      input.fail(refusal);
      return () => {};
    }
    const id = this.#pending.add(input);
    send(request.message(this.#numbers.write(id), edits), input);
    return (notification, cancelEdits) => this.#withdraw(id, send, notification, cancelEdits);
  }

  /** The client's response. A response to no pending request is dropped. */
  answered(response: ResponseEnvelope): void {
    const id = readId(response.bytes, response.id);
    const input = id === undefined ? undefined : this.#pending.settle(id);
    if (id !== undefined) input?.answer(response, () => this.#answered.add(id, input));
  }

  /** The client's progress on a pending request, or on the task that a request has become. */
  progressed(notification: NotificationEnvelope): void {
    const { progressToken } = notification.tokens;
    const id = progressToken === undefined ? undefined : readId(notification.bytes, progressToken);
    const input = id === undefined ? undefined : (this.#pending.get(id) ?? this.#answered.get(id));
    input?.progress(notification);
  }

  /** The client has left: pending requests fail. */
  close(): void {
    for (const input of this.#pending.drain()) {
      input.fail(new RpcError(RPC_CODES.internalError, 'The client has left'));
    }
  }

  #withdraw(id: number, send: Send, notification?: NotificationEnvelope, edits: readonly Edit[] = []): void {
    const input = this.#pending.abandon(id);
    if (input === undefined) return;
    const requestId = notification?.tokens.requestId;
    if (notification === undefined || requestId === undefined) {
      send(notificationMessage(METHODS.cancelled, { requestId: id }), input);
    } else {
      const own: Edit = { span: requestId, ...this.#numbers.write(id) };
      send({ bytes: notification.bytes, span: notification.span, edits: [own, ...edits] }, input);
    }
  }
}

function readId(bytes: Uint8Array, token: Span): number | undefined {
  const id = Number(readText(bytes, token));
  return Number.isSafeInteger(id) ? id : undefined;
}
