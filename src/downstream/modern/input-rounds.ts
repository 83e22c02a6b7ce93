import { toBytes } from '../../wire/json/json-text.js';
import { type SplicedMessage, splice } from '../../wire/json/splice.js';
import { type Answer, join, RPC_CODES, RpcError, resultMessage, rpcErrorMessage } from '../../wire/jsonrpc/message.js';
import { type NotificationEnvelope, type RequestEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Hmac } from '../../wire/mcp/task-id.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { PendingInputs } from '../input-requests.js';
import type { InputRequest, WithdrawInput } from '../port.js';
import type { ReplyChannel } from '../transport.js';
import { CALL_STATE, type StateContext, sealState } from './request-state.js';

interface InputRoundsOptions {
  readonly clock: Clock;
  readonly calls: SuspendedCalls;
  readonly seal: Hmac;
  /** The unguessable id of this call, and the name of this process. */
  readonly id: string;
  readonly instance: string;
  readonly context: StateContext;
  readonly first: OpenRequest;
  /** Completes a result that requires input; `members` is JSON without the braces. */
  readonly inputRequired: (members: Uint8Array) => Uint8Array;
  /** Reports the request in which the client sent the call again with input. */
  readonly onResumed: (envelope: RequestEnvelope) => void;
  /** Reports that the open requests were answered. The call goes on without an open request. */
  readonly onSuspended: () => void;
  readonly cancel: (notification?: NotificationEnvelope) => void;
}

/** Time in milliseconds in which server requests are collected for one result. */
const GATHER_MS = 15;

/** Time that a call waits for its client to send the call again, in milliseconds. */
const EXPIRES_MS = 600_000;

/** Time for which the answer of a call is stored for a client that lost it, in milliseconds. */
const ANSWER_KEPT_MS = 60_000;

/** A request of the client: the call itself, or the repeated call with input. */
export interface OpenRequest {
  readonly envelope: RequestEnvelope;
  readonly reply: ReplyChannel;
  /** Called once, before a request with input is answered or withdrawn. */
  readonly onOver?: () => void;
}

/**
 * A call whose server asks the client for input. The server's revision sends requests to its client. The client's revision gets such
 * requests as a result, and the client sends its call again with the answers. See the page basic/patterns/mrtr of revision 2026-07-28.
 *
 * The call stays open at the server. Its messages go to the open requests of the client. Without an open request, the answer waits.
 */
export class InputRounds implements ReplyChannel {
  readonly isShared = false;
  readonly isDisconnected = false;
  readonly #options: InputRoundsOptions;
  readonly #pending = new PendingInputs();
  #open: OpenRequest[];
  #round = 0;
  /** Result of the last round, for a client that lost it. */
  #lastResult: Uint8Array | undefined;
  /** The answer of the server. Its id is replaced for each request that gets it. */
  #answer: Uint8Array | undefined;
  #errorCode: number | undefined;
  #gathering: Cancel | undefined;
  #expiry: Cancel | undefined;
  #isDelivered = false;
  #isOver = false;

  constructor(options: InputRoundsOptions) {
    this.#options = options;
    this.#open = [options.first];
    options.calls.add(options.id, this);
  }

  get principal(): string {
    return this.#options.context.principal;
  }

  /** Whether a request of the client got the answer of the call. */
  get isDelivered(): boolean {
    return this.#isDelivered;
  }

  get isSuspended(): boolean {
    return this.#open.length === 0;
  }

  get unwrittenBytes(): number {
    return this.#open.at(-1)?.reply.unwrittenBytes ?? 0;
  }

  /** Asks the client in the next round. */
  requireInput(input: InputRequest): WithdrawInput {
    if (this.#isOver) input.fail(OVER);
    const withdraw = this.#isOver ? undefined : this.#pending.add(input);
    if (withdraw !== undefined) this.#gather();
    return withdraw ?? (() => {});
  }

  /** Continues the call with another request of the client. If the round is over, that request gets an error. */
  resume(request: OpenRequest, round: number): void {
    const isSuspended = this.#open.length === 0;
    if (this.#isOver || (round !== this.#round && round !== this.#round - 1)) {
      reply(request, rpcErrorMessage(idOf(request), STALE));
    } else if (this.#answer !== undefined) {
      this.#open.push(request);
      this.#deliver(this.#answer);
    } else if (isSuspended && round !== this.#round && this.#lastResult !== undefined) {
      reply(request, resultMessage(idOf(request), this.#lastResult));
    } else {
      this.#open.push(request);
      this.#options.onResumed(request.envelope);
      if (isSuspended) this.#consume(request.envelope);
    }
  }

  /** Cancels one request of the client. Also cancels the call if no other request is open. */
  cancel(request: OpenRequest, notification?: NotificationEnvelope): void {
    if (!this.#open.includes(request)) return;
    this.#open = this.#open.filter((each) => each !== request);
    withdraw(request);
    if (this.#open.length === 0) this.#options.cancel(notification);
  }

  /** Sends a message of the call on the latest open request. Drops it if none is open. */
  send(message: SplicedMessage, source?: string): void {
    const request = this.#open.at(-1);
    if (request === undefined) return;
    const bytes = splice(message);
    const span = { start: 0, end: bytes.length };
    const notification = scanOwn(bytes);
    if (notification.kind !== 'notification') return;
    const { progressToken } = notification.tokens;
    if (notification.method !== METHODS.progress || progressToken === undefined) {
      request.reply.send({ bytes, span, edits: [] }, source);
      return;
    }
    const own = request.envelope.tokens.requestProgressToken;
    if (own === undefined) return;
    const edits = [{ span: progressToken, text: request.envelope.bytes.slice(own.start, own.end) }];
    request.reply.send({ bytes, span, edits }, source);
  }

  /** Answers the call. The answer waits for the client if no request is open. */
  answer(message: Answer): void {
    this.#gathering?.();
    this.#pending.refuseAll('The call is answered');
    this.#answer = splice(message);
    this.#errorCode = message.errorCode;
    message.lease?.release();
    if (this.#open.length > 0) this.#deliver(this.#answer);
  }

  /** Does nothing, because each request of the client is cancelled on its own. */
  onAbandoned(): void {}

  /** Ends the call without an answer, because it was cancelled. */
  withdraw(): void {
    if (this.#isOver) return;
    for (const request of this.#open) withdraw(request);
    this.#open = [];
    this.#pending.refuseAll('The call was cancelled');
    this.forget();
  }

  forget(): void {
    this.#isOver = true;
    this.#gathering?.();
    this.#expiry?.();
    this.#options.calls.delete(this.#options.id);
  }

  #gather(): void {
    if (this.#open.length === 0 || this.#gathering !== undefined) return;
    this.#gathering = this.#options.clock.schedule(GATHER_MS, () => {
      this.#gathering = undefined;
      if (this.#pending.size > 0 && this.#open.length > 0) this.#suspend();
    });
  }

  /** Answers the open requests with the pending server requests. */
  #suspend(): void {
    const { clock, id: call, instance, context, seal, inputRequired, onSuspended } = this.#options;
    this.#round += 1;
    const state = sealState(CALL_STATE, JSON.stringify({ call, round: this.#round, instance }), context, seal);
    const result = inputRequired(
      join([toBytes('"inputRequests":'), this.#pending.requests, toBytes(`,"requestState":${JSON.stringify(state)}`)]),
    );
    this.#lastResult = result;
    const open = this.#open;
    this.#open = [];
    onSuspended();
    for (const request of open) reply(request, resultMessage(idOf(request), result));
    this.#expiry = clock.schedule(EXPIRES_MS, () => this.#expire());
  }

  /** Passes the client's answers to the server requests. Requests without an answer are sent to the client again. */
  #consume({ bytes, tokens: { inputResponses } }: RequestEnvelope): void {
    this.#expiry?.();
    this.#pending.answer(bytes, inputResponses);
    if (this.#pending.size > 0) this.#gather();
  }

  #deliver(bytes: Uint8Array): void {
    const { clock, calls } = this.#options;
    const response = scanOwn(bytes);
    const open = this.#open;
    this.#open = [];
    if (!this.#isDelivered) {
      this.#isDelivered = true;
      this.#expiry?.();
      this.#expiry = clock.schedule(ANSWER_KEPT_MS, () => this.forget());
      calls.limitAnswers();
    }
    if (response.kind !== 'response') return;
    const { span, id } = response;
    for (const request of open) {
      reply(request, { bytes, span, edits: [{ span: id, text: idOf(request) }], errorCode: this.#errorCode });
    }
  }

  #expire(): void {
    this.#pending.refuseAll('The client did not come back with the input');
    this.forget();
    if (this.#answer === undefined) this.#options.cancel();
  }
}

function reply({ onOver, reply: channel }: OpenRequest, answer: Answer): void {
  onOver?.();
  channel.answer(answer);
}

function withdraw({ onOver, reply: channel }: OpenRequest): void {
  onOver?.();
  channel.withdraw();
}

const OVER = new RpcError(RPC_CODES.internalError, 'The call has ended');

export const STALE = new RpcError(
  RPC_CODES.invalidParams,
  'The request with this requestState was answered already or has expired. Begin again without it',
);

/** Returns the id as raw JSON, copied. */
function idOf({ envelope: { bytes, id } }: OpenRequest): Uint8Array {
  return bytes.slice(id.start, id.end);
}

/** Limits of the calls that wait for input: of one principal, and in all. */
const MAX_PER_PRINCIPAL = 64;

const MAX_CALLS = 1_024;

/** Limit of the answers that are stored for clients that lost them. */
const MAX_ANSWERED = 256;

/** The calls that asked their clients for input, by their ids. The calls belong to this process. */
export class SuspendedCalls {
  readonly #calls = new Map<string, InputRounds>();
  #count = 0;

  /** Whether another call of this principal may ask for input. */
  admits(principal: string): boolean {
    const waiting = [...this.#calls.values()].filter(({ isDelivered }) => !isDelivered);
    const own = waiting.filter((call) => call.principal === principal);
    return waiting.length < MAX_CALLS && own.length < MAX_PER_PRINCIPAL;
  }

  /** Returns a new unguessable id. */
  nextId(seal: Hmac): string {
    this.#count += 1;
    return seal(`suspended call ${this.#count}`).slice(0, 22);
  }

  find(id: string): InputRounds | undefined {
    return this.#calls.get(id);
  }

  add(id: string, call: InputRounds): void {
    this.#calls.set(id, call);
  }

  delete(id: string): void {
    this.#calls.delete(id);
  }

  limitAnswers(): void {
    const answered = [...this.#calls.values()].filter(({ isDelivered }) => isDelivered);
    for (const call of answered.slice(0, -MAX_ANSWERED)) call.forget();
  }
}
