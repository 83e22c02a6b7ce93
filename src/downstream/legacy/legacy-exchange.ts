import { Lease } from '../../io/lease.js';
import { LARGE_FROM_BYTES } from '../../io/read-buffer.js';
import type { Span } from '../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../json/splice.js';
import type { IdKey } from '../../jsonrpc/id-key.js';
import { errorMessage, resultMessage } from '../../jsonrpc/message.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { Clock } from '../../timing/clock.js';
import type { Exchange } from '../exchange.js';
import type { DownstreamClient } from '../port.js';
import type { ReplyChannel } from './reply-channel.js';

/**
 * Between the last progress of a request and its answer. The official client drops progress that it reads together
 * with the answer, and what a child writes in two pieces would often reach it in one.
 */
const PROGRESS_GAP_MS = 5;

export interface LegacyExchangeOptions {
  readonly request: RequestEnvelope;
  readonly client: DownstreamClient;
  readonly reply: ReplyChannel;
  readonly clock: Clock;
  /** Under which the session keeps it. */
  readonly key: IdKey;
  readonly owner: ExchangeOwner;
}

/** Whoever keeps a client's exchanges, made once for all of them. */
export interface ExchangeOwner {
  /** Sends the client what cannot go the way of the answer. */
  sendUnasked(message: SplicedMessage): void;
  /** Called once for each. */
  settled(exchange: LegacyExchange): void;
}

/** A request of a client that speaks a revision with a handshake. */
export class LegacyExchange implements Exchange {
  readonly request: RequestEnvelope;
  readonly client: DownstreamClient;
  readonly key: IdKey;
  readonly #reply: ReplyChannel;
  readonly #clock: Clock;
  readonly #owner: ExchangeOwner;
  #isSettled = false;
  #isLasting = false;
  #lastProgressAt: number | undefined;
  /** Whose messages go to the client along it. */
  #source: string | undefined;
  #isAskedElsewhere = false;
  /** On the request's memory, from the first `leaseRequest` to the answer. */
  #lease: Lease | undefined;
  #cancelled: ((notice?: NotificationEnvelope) => void) | undefined;

  constructor({ request, client, key, reply, clock, owner }: LegacyExchangeOptions) {
    this.request = request;
    this.client = client;
    this.key = key;
    this.#reply = reply;
    this.#clock = clock;
    this.#owner = owner;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  get wantsProgress(): boolean {
    return this.request.tokens.requestProgressToken !== undefined;
  }

  /** What the last backend says must not overtake what one before it said, so it keeps its place among all. */
  goesTo(source: string): void {
    this.#isAskedElsewhere ||= this.#source !== undefined && this.#source !== source;
    this.#source = this.#isAskedElsewhere ? undefined : source;
  }

  /** Leases only a large tool call: it goes to one server and nothing keeps it. Other requests may go to several. */
  leaseRequest(): Lease | undefined {
    if (!this.#isLarge || this.request.method !== METHODS.callTool) return undefined;
    this.#lease ??= Lease.of(this.request.bytes);
    return this.#lease?.retain();
  }

  relay(response: ResponseEnvelope, edits: readonly Edit[] = []): void {
    // Of a task, progress goes on, and what else is said of it must not come before its id.
    const since = this.#isLasting ? undefined : this.#lastProgressAt;
    const waitMs = since === undefined ? 0 : since + PROGRESS_GAP_MS - this.#clock.now();
    if (waitMs > 0) this.#clock.schedule(waitMs, () => this.#answer(response, edits));
    else this.#answer(response, edits);
  }

  succeed(result: Uint8Array): void {
    if (this.#settle()) this.#reply.answer(resultMessage(this.#id, result), this.#source);
  }

  fail(error: RpcError): void {
    if (this.#settle()) this.#reply.answer(errorMessage(this.#id, error), this.#source);
  }

  progress(notification: NotificationEnvelope, more: readonly Edit[] = [], via?: Exchange): void {
    const { bytes, span, tokens } = notification;
    const asked = this.request.tokens.requestProgressToken;
    if (asked === undefined || tokens.progressToken === undefined) return;
    const edits: Edit[] = [this.#replacing(tokens.progressToken, asked), ...more];
    if (!this.#isSettled) {
      this.#lastProgressAt = this.#clock.now();
      this.#reply.send({ bytes, span, edits }, this.#source);
    } else if (this.#isLasting) {
      if (via === undefined) this.client.notify(notification, edits);
      else via.send({ bytes, span, edits });
    }
  }

  keepProgress(): () => void {
    this.#isLasting = true;
    return () => {
      this.#isLasting = false;
    };
  }

  send(message: SplicedMessage): void {
    if (this.#isSettled) return;
    if (this.#reply.isUnheard === true) this.#owner.sendUnasked(message);
    else this.#reply.send(message, this.#source);
  }

  onCancel(listener: (notice?: NotificationEnvelope) => void): void {
    this.#cancelled = listener;
  }

  /** The client wants no answer any more, so there will be none. */
  cancel(notice?: NotificationEnvelope): void {
    if (!this.#settle()) return;
    this.#reply.withdraw();
    this.#cancelled?.(notice);
  }

  #answer({ bytes, span, id }: ResponseEnvelope, edits: readonly Edit[]): void {
    if (!this.#settle()) return;
    const own = this.#replacing(id, this.request.id);
    const message: SplicedMessage = { bytes, span, edits: edits.length === 0 ? [own] : [own, ...edits] };
    // Only large lines have a lease. An answer is written once and nothing keeps it.
    const isLarge = span.end - span.start > LARGE_FROM_BYTES;
    this.#reply.answer(isLarge ? { ...message, lease: Lease.of(bytes) } : message, this.#source);
    this.#lease?.release();
  }

  /** Puts a part of the request into another message: a copy, if the request's memory may be reused before that is written. */
  #replacing(span: Span, part: Span): Edit {
    const { bytes } = this.request;
    return this.#isLarge ? { span, text: bytes.slice(part.start, part.end) } : { span, text: bytes, part };
  }

  get #isLarge(): boolean {
    return this.request.span.end - this.request.span.start > LARGE_FROM_BYTES;
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#owner.settled(this);
    return true;
  }

  get #id(): Uint8Array {
    const { bytes, id } = this.request;
    return bytes.subarray(id.start, id.end);
  }
}
