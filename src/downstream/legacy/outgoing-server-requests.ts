import { Digits } from '../../json/digits.js';
import { isRecord } from '../../json/is-record.js';
import { isString, readString, readText, type Span } from '../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../json/splice.js';
import { AnsweredRequests } from '../../jsonrpc/answered-requests.js';
import { CorrelationTable } from '../../jsonrpc/correlation-table.js';
import { notificationMessage } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { Exchange } from '../exchange.js';
import type { InputRequest, WithdrawInput } from '../port.js';

/**
 * What one client is asked on behalf of servers, by the ids that we give these questions.
 *
 * A client is never asked for what it did not declare.
 */
export class OutgoingServerRequests {
  readonly #send: (message: SplicedMessage) => void;
  readonly #pending = new CorrelationTable<InputRequest>();
  readonly #lasting = new AnsweredRequests<InputRequest>();
  readonly #digits = new Digits();
  #capabilities: Readonly<Record<string, unknown>> = {};

  /** `send` takes what no request of the client's has caused. */
  constructor(send: (message: SplicedMessage) => void) {
    this.#send = send;
  }

  /** What the client declared in `initialize`. */
  declare(capabilities: Readonly<Record<string, unknown>>): void {
    this.#capabilities = capabilities;
  }

  /** Questions that were not answered yet. */
  get size(): number {
    return this.#pending.size;
  }

  ask(input: InputRequest, via: Exchange | undefined): WithdrawInput {
    const { request } = input;
    const refusal = this.#pending.size < MAX_OPEN ? this.#refusal(request) : TOO_MANY;
    if (refusal !== undefined) {
      input.fail(refusal);
      return () => {};
    }
    const id = this.#pending.add(input);
    const own = this.#digits.write(id);
    const edits: Edit[] = [{ span: request.id, ...own }, ...input.edits];
    const { requestProgressToken } = request.tokens;
    if (requestProgressToken !== undefined) edits.push({ span: requestProgressToken, ...own });
    const send = (message: SplicedMessage) => {
      if (via === undefined || via.isSettled) this.#send(message);
      else via.send(message);
    };
    send({ bytes: request.bytes, span: request.span, edits });
    return (...why) => this.#withdraw(id, send, ...why);
  }

  /** The client's answer to one of the questions; any other is dropped. */
  answered(response: ResponseEnvelope): void {
    const id = readId(response.bytes, response.id);
    const input = id === undefined ? undefined : this.#pending.settle(id);
    if (id !== undefined) input?.answer(response, () => this.#lasting.add(id, input));
  }

  /** The client's progress on one of the questions, or on the task that one has become. */
  progressed(notification: NotificationEnvelope): void {
    const { progressToken } = notification.tokens;
    const id = progressToken === undefined ? undefined : readId(notification.bytes, progressToken);
    const input = id === undefined ? undefined : (this.#pending.get(id) ?? this.#lasting.get(id));
    input?.progress(notification);
  }

  /** The client is gone. */
  close(): void {
    for (const input of this.#pending.drain()) {
      input.fail(new RpcError(RPC_CODES.internalError, 'The client is gone'));
    }
  }

  /** `send` takes the way that the question took, so that its end cannot come before it. */
  #withdraw(
    id: number,
    send: (message: SplicedMessage) => void,
    notice?: NotificationEnvelope,
    edits: readonly Edit[] = [],
  ): void {
    if (this.#pending.abandon(id) === undefined) return;
    const requestId = notice?.tokens.requestId;
    if (notice === undefined || requestId === undefined) {
      send(notificationMessage(METHODS.cancelled, { requestId: id }));
    } else {
      const own: Edit = { span: requestId, ...this.#digits.write(id) };
      send({ bytes: notice.bytes, span: notice.span, edits: [own, ...edits] });
    }
  }

  #refusal({ method, bytes, tokens }: RequestEnvelope): RpcError | undefined {
    const path = CAPABILITY_OF.get(method);
    // What we do not know, the client may; it says so itself if not.
    if (path === undefined) return undefined;
    const declared = this.#declared(path);
    if (declared === undefined) {
      return new RpcError(RPC_CODES.methodNotFound, `The client does not support ${method}`);
    }
    if (method !== METHODS.elicit) return undefined;
    const mode = tokens.mode !== undefined && isString(bytes, tokens.mode) ? readString(bytes, tokens.mode) : 'form';
    // Before there were modes, a client that declared nothing more meant forms.
    const modes = Object.keys(declared);
    const isMeant = modes.includes(mode) || (mode === 'form' && !modes.includes('url'));
    return isMeant ? undefined : new RpcError(RPC_CODES.invalidParams, `The client does not support mode ${mode}`);
  }

  /** What the client declared at this path. */
  #declared(path: readonly string[]): object | undefined {
    let value: unknown = this.#capabilities;
    for (const name of path) {
      value = isRecord(value) ? value[name] : undefined;
    }
    // A capability is an object; whatever else stands there was meant as one, unless it says no.
    return value === undefined || value === null || value === false ? undefined : Object(value);
  }
}

/** Of questions that one client is asked at the same time; no person answers as many. */
const MAX_OPEN = 256;
const TOO_MANY = new RpcError(RPC_CODES.internalError, 'Too many questions wait for an answer of this client already');

const CAPABILITY_OF = new Map<string, readonly string[]>([
  [METHODS.createMessage, ['sampling']],
  [METHODS.elicit, ['elicitation']],
  [METHODS.listRoots, ['roots']],
  [METHODS.getTask, ['tasks']],
  [METHODS.taskResult, ['tasks']],
  [METHODS.cancelTask, ['tasks', 'cancel']],
  [METHODS.listTasks, ['tasks', 'list']],
]);

function readId(bytes: Uint8Array, token: Span): number | undefined {
  const id = Number(readText(bytes, token));
  return Number.isSafeInteger(id) ? id : undefined;
}
