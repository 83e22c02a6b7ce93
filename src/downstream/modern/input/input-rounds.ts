import { isObject, readString, type Span, toBytes, visitMembers } from '../../../json/json-text.js';
import { type SplicedMessage, splice } from '../../../json/splice.js';
import { type Answer, join, resultMessage } from '../../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ScanEnvelope } from '../../../mcp/envelope.js';
import { METHODS } from '../../../mcp/methods.js';
import type { Hmac } from '../../../mcp/task-id.js';
import type { Cancel, Clock } from '../../../timing/clock.js';
import { MAX_UNANSWERED, TOO_MANY_UNANSWERED } from '../../input-capability.js';
import { inputRequestMembers, isLiftable } from '../../lifted-request.js';
import type { InputRequest, WithdrawInput } from '../../port.js';
import type { ReplyChannel } from '../../transport.js';
import { type StateContext, sealState } from './input-state.js';
import type { SuspendedCalls } from './suspended-calls.js';

/** Server requests that come together are asked together. */
const GATHER_MS = 15;
/** How long a call waits for its client to come back with input. */
const EXPIRES_MS = 600_000;

/** One request of the client: the call itself, or the call again with input. */
export interface Front {
  readonly envelope: RequestEnvelope;
  readonly reply: ReplyChannel;
}

export interface InputRoundsOptions {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly calls: SuspendedCalls<InputRounds>;
  readonly seal: Hmac;
  /** The unguessable id of this call, and the name of this process. */
  readonly id: string;
  readonly instance: string;
  readonly context: StateContext;
  readonly first: Front;
  /** Completes a result that requires input; `members` is JSON without the braces. */
  readonly inputRequired: (members: Uint8Array) => Uint8Array;
  /** The client came back with this request. */
  readonly onResumed: (envelope: RequestEnvelope) => void;
  /** The open request was answered, and the call goes on without one. */
  readonly onSuspended: () => void;
  /** Cancels the call at its server. */
  readonly cancel: (notification?: NotificationEnvelope) => void;
}

/** A server request that the client has not answered. */
interface Pending {
  readonly input: InputRequest;
  /** The method and the params, as a member of `inputRequests` needs them. */
  readonly members: Uint8Array;
}

/**
 * A call whose server asks the client for input. The server speaks a revision in which it sends requests to its client;
 * the client speaks one in which it gets them as a result, and sends its call again with the answers. See the page
 * basic/patterns/mrtr of revision 2026-07-28.
 *
 * The call stays open at the server. The messages for the client come here: they reach the requests of the client that are
 * open, and wait if there is none.
 */
export class InputRounds implements ReplyChannel {
  readonly isShared = false;
  readonly isUnheard = false;
  readonly #options: InputRoundsOptions;
  readonly #pending = new Map<string, Pending>();
  #fronts: Front[];
  #round = 0;
  #asked = 0;
  /** The result of the last round, for a client that lost it. */
  #lastResult: Uint8Array | undefined;
  /** The answer of the server, under an id of no meaning. */
  #answer: Uint8Array | undefined;
  #errorCode: number | undefined;
  #gathering: Cancel | undefined;
  #expiry: Cancel | undefined;
  #isOver = false;

  constructor(options: InputRoundsOptions) {
    this.#options = options;
    this.#fronts = [options.first];
    options.calls.add(options.id, this);
  }

  get principal(): string {
    return this.#options.context.principal;
  }

  /** Whether no request of the client is open. */
  get isSuspended(): boolean {
    return this.#fronts.length === 0;
  }

  get unwrittenBytes(): number {
    return this.#fronts.at(-1)?.reply.unwrittenBytes ?? 0;
  }

  /** Asks the client in the next round. */
  requireInput(input: InputRequest): WithdrawInput {
    if (!isLiftable(input.request.method) || this.#isOver) {
      const { method } = input.request;
      input.fail(new RpcError(RPC_CODES.methodNotFound, `${method} cannot reach a client of this revision`));
      return () => {};
    }
    if (this.#pending.size >= MAX_UNANSWERED) {
      input.fail(TOO_MANY_UNANSWERED);
      return () => {};
    }
    this.#asked += 1;
    const key = `input-${this.#asked}`;
    this.#pending.set(key, { input, members: inputRequestMembers(input, this.#options.scan) });
    this.#gather();
    return () => {
      this.#pending.delete(key);
    };
  }

  /** The client comes back. Returns why it cannot. */
  resume(front: Front, round: number): RpcError | undefined {
    if (round !== this.#round && round !== this.#round - 1) return STALE;
    if (this.#isOver) return STALE;
    if (this.#answer !== undefined) {
      this.#fronts.push(front);
      this.#deliver(this.#answer);
      return undefined;
    }
    const isSuspended = this.#fronts.length === 0;
    if (isSuspended && round !== this.#round && this.#lastResult !== undefined) {
      front.reply.answer(resultMessage(idOf(front.envelope), this.#lastResult));
      return undefined;
    }
    this.#fronts.push(front);
    this.#options.onResumed(front.envelope);
    if (isSuspended) this.#consume(front.envelope);
    return undefined;
  }

  /** The client cancels one of its requests. Without another one, that cancels the call. */
  cancel(front: Front, notification?: NotificationEnvelope): void {
    if (!this.#fronts.includes(front)) return;
    this.#fronts = this.#fronts.filter((each) => each !== front);
    front.reply.withdraw();
    if (this.#fronts.length === 0) this.#options.cancel(notification);
  }

  /** A message that belongs to the call. Without an open request, it has nowhere to go. */
  send(message: SplicedMessage, source?: string): void {
    const front = this.#fronts.at(-1);
    if (front === undefined) return;
    const bytes = splice(message);
    const span = { start: 0, end: bytes.length };
    const notification = this.#options.scan(bytes);
    if (notification.kind !== 'notification') return;
    const { progressToken } = notification.tokens;
    if (notification.method !== METHODS.progress || progressToken === undefined) {
      front.reply.send({ bytes, span, edits: [] }, source);
      return;
    }
    const own = front.envelope.tokens.requestProgressToken;
    if (own === undefined) return;
    const edits = [{ span: progressToken, text: front.envelope.bytes.slice(own.start, own.end) }];
    front.reply.send({ bytes, span, edits }, source);
  }

  /** The answer of the call. It waits for the client if no request is open. */
  answer(message: Answer): void {
    this.#gathering?.();
    this.#refuseAll('The call is answered');
    this.#answer = splice(message);
    this.#errorCode = message.errorCode;
    message.lease?.release();
    if (this.#fronts.length > 0) this.#deliver(this.#answer);
  }

  /** Each request of the client that comes back is given up on its own. */
  onAbandoned(): void {}

  /** The call was cancelled. */
  withdraw(): void {
    if (this.#isOver) return;
    for (const { reply } of this.#fronts) reply.withdraw();
    this.#fronts = [];
    this.#refuseAll('The call was cancelled');
    this.#end();
  }

  #gather(): void {
    if (this.#fronts.length === 0 || this.#gathering !== undefined) return;
    this.#gathering = this.#options.clock.schedule(GATHER_MS, () => {
      this.#gathering = undefined;
      if (this.#pending.size > 0 && this.#fronts.length > 0) this.#suspend();
    });
  }

  /** Answers the open requests with what the server asks for. */
  #suspend(): void {
    const { clock, id, instance, context, seal, inputRequired, onSuspended } = this.#options;
    this.#round += 1;
    const state = sealState({ call: id, round: this.#round, instance }, context, seal);
    const parts: Uint8Array[] = [toBytes('"inputRequests":{')];
    for (const [key, { members }] of this.#pending) {
      parts.push(toBytes(`${parts.length > 1 ? ',' : ''}${JSON.stringify(key)}:{`), members, toBytes('}'));
    }
    parts.push(toBytes(`},"requestState":${JSON.stringify(state)}`));
    const result = inputRequired(join(parts));
    this.#lastResult = result;
    const fronts = this.#fronts;
    this.#fronts = [];
    onSuspended();
    for (const { envelope, reply } of fronts) reply.answer(resultMessage(idOf(envelope), result));
    this.#expiry = clock.schedule(EXPIRES_MS, () => this.#expire());
  }

  /** Answers the server requests whose answers the client brings. The others are asked again. */
  #consume({ bytes, tokens: { inputResponses } }: RequestEnvelope): void {
    this.#expiry?.();
    const answers = new Map<string, Span>();
    if (inputResponses !== undefined && isObject(bytes, inputResponses)) {
      visitMembers(bytes, inputResponses.start, Number.POSITIVE_INFINITY, (key, value) => {
        if (isObject(bytes, value)) answers.set(readString(bytes, key), value);
      });
    }
    for (const [key, { input }] of [...this.#pending]) {
      const value = answers.get(key);
      if (value === undefined) continue;
      this.#pending.delete(key);
      this.#answered(input, bytes.slice(value.start, value.end));
    }
    if (this.#pending.size > 0) this.#gather();
  }

  #answered(input: InputRequest, result: Uint8Array): void {
    const response = this.#options.scan(splice(resultMessage(ANY_ID, result)));
    if (response.kind === 'response') input.answer(response, () => () => {});
    else input.fail(new RpcError(RPC_CODES.internalError, 'The answer of the client cannot be read'));
  }

  /** Nobody will answer. For an elicitation, that is a person who cancels. */
  #refuseAll(message: string): void {
    for (const { input } of this.#pending.values()) {
      if (input.request.method === METHODS.elicit) this.#answered(input, CANCELED);
      else input.fail(new RpcError(RPC_CODES.internalError, message));
    }
    this.#pending.clear();
  }

  #deliver(answer: Uint8Array): void {
    const response = this.#options.scan(answer);
    const fronts = this.#fronts;
    this.#fronts = [];
    this.#expiry?.();
    if (response.kind === 'response') {
      const { span, id } = response;
      for (const { envelope, reply } of fronts) {
        const edits = [{ span: id, text: idOf(envelope) }];
        reply.answer({ bytes: answer, span, edits, errorCode: this.#errorCode });
      }
    }
    this.#options.calls.answered(this.#options.id);
  }

  #expire(): void {
    this.#refuseAll('The client did not come back with the input');
    const wasAnswered = this.#answer !== undefined;
    this.#end();
    if (!wasAnswered) this.#options.cancel();
  }

  #end(): void {
    this.#isOver = true;
    this.#gathering?.();
    this.#expiry?.();
    this.#options.calls.delete(this.#options.id);
  }
}

/** The id does not matter: the server request that gets the response has its own. */
const ANY_ID = toBytes('0');
const CANCELED = toBytes('{"action":"cancel"}');

export const STALE = new RpcError(
  RPC_CODES.invalidParams,
  'The request with this requestState was answered already or has expired. Begin again without it',
);

/** The id as raw JSON, in memory of its own. */
function idOf({ bytes, id }: RequestEnvelope): Uint8Array {
  return bytes.slice(id.start, id.end);
}
