import { Lease } from '../wire/io/buffer-pool.js';
import { LARGE_FROM_BYTES } from '../wire/io/line-decoder.js';
import { readText, type Span } from '../wire/json/json-text.js';
import { concatEdits, type Edit, type SplicedMessage } from '../wire/json/splice.js';
import { RpcError, resultMessage, rpcErrorMessage } from '../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../wire/mcp/envelope.js';
import { METHODS } from '../wire/mcp/methods.js';
import { EnvelopeRequest, type RelayedRequest } from '../wire/mcp/relayed-request.js';
import type { Clock } from '../wire/timing/clock.js';
import { type Failure, failureError, failureResult } from './failure.js';
import type {
  CallTrail,
  DownstreamClient,
  ElicitationMode,
  Exchange,
  HttpFacts,
  InputRequest,
  WithdrawInput,
} from './port.js';
import type { ReplyChannel } from './transport.js';

/**
 * Shortest time between the last progress of a request and its answer, because the official client drops progress that it
 * reads together with the answer.
 */
const PROGRESS_GAP_MS = 5;

export interface WireExchangeOptions {
  readonly envelope: RequestEnvelope;
  readonly client: DownstreamClient;
  readonly reply: ReplyChannel;
  readonly clock: Clock;
  /** The id under which the session tracks the exchange. */
  readonly key: string;
  readonly owner: ExchangeOwner;
  /** The request without its envelope, if the server gets another request than the client sent. */
  readonly request?: RelayedRequest | undefined;
}

export interface ExchangeOwner<E extends WireExchange = WireExchange> {
  /** Sends a message that cannot travel with the answer. */
  sendUnsolicited(message: SplicedMessage): void;
  /** Called once for each exchange. */
  settled(exchange: E): void;
}

export interface AnswerForm {
  /** Edits of a server's response before the client gets it. For `server`, see `Exchange.answer`. */
  edits(response: ResponseEnvelope, method: string, server?: Uint8Array): readonly Edit[];
  /** Completes a result of the gateway, which is JSON. */
  result(result: Uint8Array, method: string): Uint8Array;
}

export const UNCHANGED: AnswerForm = {
  edits: () => NO_EDITS,
  result: (result) => result,
};

const NO_EDITS: readonly Edit[] = [];

/** One request of a client, as it came on the wire. Each protocol era has a subclass. */
export abstract class WireExchange implements Exchange {
  abstract readonly logLevel: Exchange['logLevel'];
  abstract readonly takesInputRequests: boolean;
  abstract elicits(mode: ElicitationMode): boolean;
  request: RelayedRequest;
  readonly client: DownstreamClient;
  readonly key: string;
  trail: CallTrail | undefined;
  readonly #envelope: RequestEnvelope;
  #reply: ReplyChannel;
  readonly #clock: Clock;
  readonly #owner: ExchangeOwner;
  #isSettled = false;
  #keepsProgress = false;
  #lastProgressAt: number | undefined;
  /** The backend whose messages reach the client along this exchange. */
  #source: string | undefined;
  #hasSeveralSources = false;
  /** Lease of the request's memory, from the first `leaseRequest` to the answer. */
  #lease: Lease | undefined;
  #onCancel: ((notification?: NotificationEnvelope) => void) | undefined;

  constructor({ envelope, client, key, reply, clock, owner, request }: WireExchangeOptions) {
    this.request = request ?? new EnvelopeRequest(envelope);
    this.client = client;
    this.key = key;
    this.#envelope = envelope;
    this.#reply = reply;
    this.#clock = clock;
    this.#owner = owner;
  }

  protected abstract readonly form: AnswerForm;

  /** Sends all further messages to another channel. */
  protected redirect(reply: ReplyChannel): void {
    this.#reply = reply;
  }

  abstract requireInput(input: InputRequest): WithdrawInput;

  abstract get conversation(): object;

  abstract readonly isSuspended: boolean;

  get received(): SplicedMessage {
    return { bytes: this.#envelope.bytes, span: this.#envelope.span, edits: NO_EDITS };
  }

  get http(): HttpFacts | undefined {
    return this.#reply.http;
  }

  get requestId(): string {
    return readText(this.#envelope.bytes, this.#envelope.id);
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  get wantsProgress(): boolean {
    return this.#envelope.tokens.requestProgressToken !== undefined;
  }

  /** Keeps the order of all messages once there is a second backend, which must not overtake the first. */
  route(source: string): void {
    this.#hasSeveralSources ||= this.#source !== undefined && this.#source !== source;
    this.#source = this.#hasSeveralSources ? undefined : source;
  }

  /** Leases only a large tool call, because it goes to one server. Other requests may go to several servers. */
  leaseRequest(): Lease | undefined {
    if (!this.#isLarge || this.request.method !== METHODS.callTool) return undefined;
    this.#lease ??= Lease.of(this.#envelope.bytes);
    return this.#lease?.retain();
  }

  answer(response: ResponseEnvelope, edits: readonly Edit[] = [], server?: Uint8Array): void {
    // An answer with a task is not delayed, because the next progress of the task must not overtake the id of the task.
    const since = this.#keepsProgress ? undefined : this.#lastProgressAt;
    const waitMs = since === undefined ? 0 : since + PROGRESS_GAP_MS - this.#clock.now();
    if (waitMs > 0) this.#clock.schedule(waitMs, () => this.#answer(response, edits, server));
    else this.#answer(response, edits, server);
  }

  succeed(result: Uint8Array): void {
    this.#succeed(result);
  }

  /** Fails the request. A failed tool call gets a tool result, unless the call was to become a task. */
  fail(reason: RpcError | Failure): void {
    if (reason instanceof RpcError) this.#fail(reason, reason);
    else if (this.request.method === METHODS.callTool && this.request.tokens.task === undefined)
      this.#succeed(failureResult(reason), reason);
    else this.#fail(failureError(reason), reason);
  }

  progress(notification: NotificationEnvelope, more: readonly Edit[] = [], via?: Exchange): void {
    const { bytes, span, tokens } = notification;
    const token = this.#envelope.tokens.requestProgressToken;
    if (token === undefined || tokens.progressToken === undefined) return;
    const edits: Edit[] = [this.#replacing(tokens.progressToken, token), ...more];
    if (!this.#isSettled) {
      this.#lastProgressAt = this.#clock.now();
      this.#reply.send({ bytes, span, edits }, this.#source);
    } else if (this.#keepsProgress) {
      if (via === undefined) this.client.notify(notification, edits);
      else via.send({ bytes, span, edits });
    }
  }

  keepProgress(): () => void {
    this.#keepsProgress = true;
    return () => {
      this.#keepsProgress = false;
    };
  }

  send(message: SplicedMessage): void {
    if (this.#isSettled) return;
    if (this.#reply.isDisconnected) this.#owner.sendUnsolicited(message);
    else this.#reply.send(message, this.#source);
  }

  onCancel(listener: (notification?: NotificationEnvelope) => void): void {
    this.#onCancel = listener;
  }

  /** Settles the request without an answer, because the client has cancelled it or left. */
  cancel(notification?: NotificationEnvelope): void {
    if (!this.#settle()) return;
    this.#reply.withdraw();
    this.#onCancel?.(notification);
    this.trail?.ended({ response: undefined, result: undefined, failure: undefined, message: undefined });
  }

  #succeed(made: Uint8Array, failure?: Failure): void {
    if (!this.#settle()) return;
    const result = this.form.result(made, this.request.method);
    const message = resultMessage(this.#id, result);
    this.trail?.ended({ response: undefined, result: failure === undefined ? result : undefined, failure, message });
    this.#reply.answer(message, this.#source);
  }

  #fail(error: RpcError, failure: RpcError | Failure): void {
    if (!this.#settle()) return;
    const message = rpcErrorMessage(this.#id, error);
    this.trail?.ended({ response: undefined, result: undefined, failure, message });
    this.#reply.answer(message, this.#source);
  }

  #answer(response: ResponseEnvelope, relayed: readonly Edit[], server: Uint8Array | undefined): void {
    if (!this.#settle()) return;
    const { bytes, span, id } = response;
    const edits = concatEdits(relayed, this.form.edits(response, this.request.method, server));
    const own = this.#replacing(id, this.#envelope.id);
    const message: SplicedMessage = { bytes, span, edits: edits.length === 0 ? [own] : [own, ...edits] };
    // Only large lines have a lease. An answer is written once and stored nowhere.
    const isLarge = span.end - span.start > LARGE_FROM_BYTES;
    this.trail?.ended({ response, result: undefined, failure: undefined, message });
    const code = response.error === undefined ? undefined : response.tokens.errorCode;
    const answer = code === undefined ? message : { ...message, errorCode: Number(readText(bytes, code)) };
    this.#reply.answer(isLarge ? { ...answer, lease: Lease.of(bytes) } : answer, this.#source);
    this.#lease?.release();
  }

  /** Puts a part of the request into another message. Copies it if the memory may be reused before the write. */
  #replacing(span: Span, part: Span): Edit {
    const { bytes } = this.#envelope;
    return this.#isLarge ? { span, text: bytes.slice(part.start, part.end) } : { span, text: bytes, part };
  }

  get #isLarge(): boolean {
    return this.#envelope.span.end - this.#envelope.span.start > LARGE_FROM_BYTES;
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#owner.settled(this);
    return true;
  }

  get #id(): Uint8Array {
    const { bytes, id } = this.#envelope;
    return bytes.subarray(id.start, id.end);
  }
}
