import { canonicalObject } from '../../../json/canonical-json.js';
import { isObject, readString, type Span, toBytes, visitMembers } from '../../../json/json-text.js';
import { type SplicedMessage, splice } from '../../../json/splice.js';
import type { IdKey } from '../../../jsonrpc/envelope-scanner.js';
import { type Answer, join, resultMessage } from '../../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ScanEnvelope } from '../../../mcp/envelope.js';
import { METHODS } from '../../../mcp/methods.js';
import type { RelayedRequest } from '../../../mcp/relayed-request.js';
import { type Hmac, isSameSeal } from '../../../mcp/task-id.js';
import type { Cancel, Clock } from '../../../timing/clock.js';
import { inputRequestMembers, isLiftable, MAX_UNANSWERED, TOO_MANY_UNANSWERED } from '../../input-requests.js';
import type { InputRequest, WithdrawInput } from '../../port.js';
import type { ReplyChannel } from '../../transport.js';

interface InputRoundsOptions {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly calls: SuspendedCalls;
  readonly seal: Hmac;
  /** The unguessable id of this call, and the name of this process. */
  readonly id: string;
  readonly instance: string;
  readonly context: StateContext;
  readonly first: OpenRequest;
  /** Completes a result that requires input; `members` is JSON without the braces. */
  readonly inputRequired: (members: Uint8Array) => Uint8Array;
  /** Reports the request with which the client came back. */
  readonly onResumed: (envelope: RequestEnvelope) => void;
  /** Reports that the open requests were answered. The call goes on without one. */
  readonly onSuspended: () => void;
  /** Cancels the call at its server. */
  readonly cancel: (notification?: NotificationEnvelope) => void;
}

/** Server requests within this time go to the client in one result. */
const GATHER_MS = 15;

/** Time that a call waits for its client to come back with input. */
const EXPIRES_MS = 600_000;

/** One request of the client: the call itself, or the call again with input. */
interface OpenRequest {
  readonly envelope: RequestEnvelope;
  readonly reply: ReplyChannel;
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
 * The call stays open at the server. Its messages go to the open requests of the client. The answer waits if there is none.
 */
export class InputRounds implements ReplyChannel {
  readonly isShared = false;
  readonly isUnheard = false;
  readonly #options: InputRoundsOptions;
  readonly #pending = new Map<string, Pending>();
  #open: OpenRequest[];
  #round = 0;
  #asked = 0;
  /** The result of the last round, for a client that lost it. */
  #lastResult: Uint8Array | undefined;
  /** The answer of the server. Its id is replaced for each request that gets it. */
  #answer: Uint8Array | undefined;
  #errorCode: number | undefined;
  #gathering: Cancel | undefined;
  #expiry: Cancel | undefined;
  #isOver = false;

  constructor(options: InputRoundsOptions) {
    this.#options = options;
    this.#open = [options.first];
    options.calls.add(options.id, this);
  }

  get principal(): string {
    return this.#options.context.principal;
  }

  /** Whether no request of the client is open. */
  get isSuspended(): boolean {
    return this.#open.length === 0;
  }

  get unwrittenBytes(): number {
    return this.#open.at(-1)?.reply.unwrittenBytes ?? 0;
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

  /** Continues the call with another request of the client. Returns the error if the round is over. */
  resume(request: OpenRequest, round: number): RpcError | undefined {
    if (round !== this.#round && round !== this.#round - 1) return STALE;
    if (this.#isOver) return STALE;
    if (this.#answer !== undefined) {
      this.#open.push(request);
      this.#deliver(this.#answer);
      return undefined;
    }
    const isSuspended = this.#open.length === 0;
    if (isSuspended && round !== this.#round && this.#lastResult !== undefined) {
      request.reply.answer(resultMessage(idOf(request.envelope), this.#lastResult));
      return undefined;
    }
    this.#open.push(request);
    this.#options.onResumed(request.envelope);
    if (isSuspended) this.#consume(request.envelope);
    return undefined;
  }

  /** The client cancels one of its requests. Without another one, that cancels the call. */
  cancel(request: OpenRequest, notification?: NotificationEnvelope): void {
    if (!this.#open.includes(request)) return;
    this.#open = this.#open.filter((each) => each !== request);
    request.reply.withdraw();
    if (this.#open.length === 0) this.#options.cancel(notification);
  }

  /** Sends a message of the call on the latest open request. Drops it if there is none. */
  send(message: SplicedMessage, source?: string): void {
    const request = this.#open.at(-1);
    if (request === undefined) return;
    const bytes = splice(message);
    const span = { start: 0, end: bytes.length };
    const notification = this.#options.scan(bytes);
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
    this.#refuseAll('The call is answered');
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
    for (const { reply } of this.#open) reply.withdraw();
    this.#open = [];
    this.#refuseAll('The call was cancelled');
    this.#end();
  }

  #gather(): void {
    if (this.#open.length === 0 || this.#gathering !== undefined) return;
    this.#gathering = this.#options.clock.schedule(GATHER_MS, () => {
      this.#gathering = undefined;
      if (this.#pending.size > 0 && this.#open.length > 0) this.#suspend();
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
    const open = this.#open;
    this.#open = [];
    onSuspended();
    for (const { envelope, reply } of open) reply.answer(resultMessage(idOf(envelope), result));
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

  /** Fails all server requests, because the client will not answer. An elicitation counts as canceled by the user. */
  #refuseAll(message: string): void {
    for (const { input } of this.#pending.values()) {
      if (input.request.method === METHODS.elicit) this.#answered(input, CANCELED);
      else input.fail(new RpcError(RPC_CODES.internalError, message));
    }
    this.#pending.clear();
  }

  #deliver(answer: Uint8Array): void {
    const response = this.#options.scan(answer);
    const open = this.#open;
    this.#open = [];
    this.#expiry?.();
    if (response.kind === 'response') {
      const { span, id } = response;
      for (const { envelope, reply } of open) {
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

interface RetriedRequestOptions {
  readonly envelope: RequestEnvelope;
  readonly reply: ReplyChannel;
  /** The id under which the session tracks the request. */
  readonly key: IdKey;
  readonly rounds: InputRounds;
  /** The request was answered or cancelled. Called once. */
  readonly onOver: (request: RetriedRequest) => void;
}

/** A request with which a client comes back to a suspended call. It is open until the call needs more or is answered. */
export class RetriedRequest implements OpenRequest, ReplyChannel {
  readonly envelope: RequestEnvelope;
  readonly key: IdKey;
  readonly isShared: boolean;
  readonly #reply: ReplyChannel;
  readonly #rounds: InputRounds;
  readonly #onOver: (request: RetriedRequest) => void;

  constructor({ envelope, reply, key, rounds, onOver }: RetriedRequestOptions) {
    this.envelope = envelope;
    this.key = key;
    this.isShared = reply.isShared;
    this.#reply = reply;
    this.#rounds = rounds;
    this.#onOver = onOver;
  }

  get reply(): ReplyChannel {
    return this;
  }

  get isUnheard(): boolean {
    return this.#reply.isUnheard;
  }

  get unwrittenBytes(): number {
    return this.#reply.unwrittenBytes;
  }

  send(message: SplicedMessage, source?: string): void {
    this.#reply.send(message, source);
  }

  answer(message: Answer, source?: string): void {
    this.#onOver(this);
    this.#reply.answer(message, source);
  }

  onAbandoned(listener: () => void): void {
    this.#reply.onAbandoned(listener);
  }

  withdraw(): void {
    this.#onOver(this);
    this.#reply.withdraw();
  }

  /** The client has cancelled the request or left. */
  cancel(notification?: NotificationEnvelope): void {
    this.#rounds.cancel(this, notification);
  }
}

/** Most calls that wait for input: of one principal, and in all. */
const MAX_PER_PRINCIPAL = 64;

const MAX_CALLS = 1_024;

/** Time for which the answer of a call is kept for a client that lost it, and the most answers that are kept. */
const ANSWER_KEPT_MS = 60_000;

const MAX_ANSWERED = 256;

/** The calls that asked their clients for input, by their ids. They live in this process. */
export class SuspendedCalls {
  readonly #clock: Clock;
  readonly #calls = new Map<string, InputRounds>();
  readonly #perPrincipal = new Map<string, number>();
  /** Calls that were answered, oldest first, each with a function that stops its timer. */
  readonly #answered = new Map<string, Cancel>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls that wait for input or for their answer. */
  get size(): number {
    return this.#calls.size - this.#answered.size;
  }

  /** Whether another call of this principal may ask for input. */
  admits(principal: string): boolean {
    return this.size < MAX_CALLS && (this.#perPrincipal.get(principal) ?? 0) < MAX_PER_PRINCIPAL;
  }

  /** An unguessable id that no other call had. */
  nextId(seal: Hmac): string {
    this.#count += 1;
    return seal(`suspended call ${this.#count}`).slice(0, 22);
  }

  find(id: string): InputRounds | undefined {
    return this.#calls.get(id);
  }

  add(id: string, call: InputRounds): void {
    this.#calls.set(id, call);
    this.#perPrincipal.set(call.principal, (this.#perPrincipal.get(call.principal) ?? 0) + 1);
  }

  /** Keeps an answered call for a while, because its client may have lost the answer. */
  answered(id: string): void {
    const call = this.#calls.get(id);
    if (call === undefined || this.#answered.has(id)) return;
    this.#release(call.principal);
    this.#answered.set(
      id,
      this.#clock.schedule(ANSWER_KEPT_MS, () => this.#forget(id)),
    );
    for (const oldest of this.#answered.keys()) {
      if (this.#answered.size <= MAX_ANSWERED) break;
      this.#forget(oldest);
    }
  }

  /** Removes a call that ended without an answer. */
  delete(id: string): void {
    const call = this.#calls.get(id);
    if (call === undefined || this.#answered.has(id)) return;
    this.#calls.delete(id);
    this.#release(call.principal);
  }

  #forget(id: string): void {
    this.#answered.get(id)?.();
    this.#answered.delete(id);
    this.#calls.delete(id);
  }

  #release(principal: string): void {
    const left = (this.#perPrincipal.get(principal) ?? 1) - 1;
    if (left === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, left);
  }
}

/** The only context in which a state is valid: one principal, and one request with the same params. */
export interface StateContext {
  readonly principal: string;
  readonly request: string;
}

/** State of a suspended call, which the client keeps as `requestState` and brings back with its input. */
interface InputState {
  /** The suspended call, by its unguessable id. */
  readonly call: string;
  /** Counts the times that the client was asked, from 1. */
  readonly round: number;
  /** The gateway process that keeps the call. */
  readonly instance: string;
}

const PREFIX = 'S';

/** Returns the state as text with a signature. */
function sealState({ call, round, instance }: InputState, context: StateContext, seal: Hmac): string {
  const payload = [PREFIX, call, round, instance].join('.');
  return `${payload}.${seal(sealed(payload, context))}`;
}

/** Whether a text looks like the state of a suspended call. Its signature is not checked. */
export function isOwnState(text: string): boolean {
  return text.startsWith(`${PREFIX}.`);
}

/** Reads a state. `undefined` if the gateway did not make it for this principal and request. */
export function openState(text: string, context: StateContext, seal: Hmac): InputState | undefined {
  const end = text.lastIndexOf('.');
  const payload = text.slice(0, end);
  const [prefix, call, round, instance] = payload.split('.');
  if (prefix !== PREFIX || call === undefined || round === undefined || instance === undefined) return undefined;
  return isSameSeal(text.slice(end + 1), seal(sealed(payload, context)))
    ? { call, round: Number(round), instance }
    : undefined;
}

/** State of a request that needs visits of URLs, which the client keeps and brings back. No call is suspended meanwhile. */
export interface VisitState {
  /** Counts the times that the client was asked, from 1. */
  readonly round: number;
  /** Names the pages, so that the same ones are not shown twice, and their number. */
  readonly pages: string;
  readonly count: number;
  /** Whether the user has agreed to visit these pages already. */
  readonly isAccepted: boolean;
}

const VISIT_PREFIX = 'U';

export function sealVisit({ round, pages, count, isAccepted }: VisitState, context: StateContext, seal: Hmac): string {
  const payload = [VISIT_PREFIX, round, pages, count, isAccepted ? 'accepted' : 'asked'].join('.');
  return `${payload}.${seal(sealed(payload, context, 'visit'))}`;
}

/** Whether a text looks like the state of visits. Its signature is not checked. */
export function isVisitState(text: string): boolean {
  return text.startsWith(`${VISIT_PREFIX}.`);
}

/** Reads the state of visits. `undefined` if the gateway did not make it for this principal and request. */
export function openVisit(text: string, context: StateContext, seal: Hmac): VisitState | undefined {
  const end = text.lastIndexOf('.');
  const payload = text.slice(0, end);
  const [, round, pages = '', count, stage] = payload.split('.');
  const isOurs = isSameSeal(text.slice(end + 1), seal(sealed(payload, context, 'visit')));
  if (!isOurs) return undefined;
  return { round: Number(round), pages, count: Number(count), isAccepted: stage === 'accepted' };
}

/**
 * Wraps the state of a server, so that the client can bring it back only with the same request. The server gets its own
 * text, byte for byte.
 */
export function wrapServerState(original: string, context: StateContext, seal: Hmac): string {
  return `P.${seal(sealed(original, context))}.${original}`;
}

/** Returns the server's own state; `undefined` if the gateway did not wrap it for this principal and request. */
export function unwrapServerState(text: string, context: StateContext, seal: Hmac): string | undefined {
  const [, mac, original] = /^P\.([^.]*)\.(.*)$/s.exec(text) ?? [];
  if (mac === undefined || original === undefined) return undefined;
  return isSameSeal(mac, seal(sealed(original, context))) ? original : undefined;
}

/** Names a request by its method and params, without the members that differ each time that the client sends it. */
export function requestDigest({ method, bytes, params }: RelayedRequest): string {
  return `${method} ${params === undefined ? '' : canonicalObject(bytes, params, (name) => !CHANGING.has(name))}`;
}

const CHANGING: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);

/** Joins the parts unambiguously, whatever they contain. */
function sealed(payload: string, { principal, request }: StateContext, use = 'input'): string {
  return JSON.stringify([use, payload, principal, request]);
}

/** The name of this process in the states of its calls. */
export function instanceName(run: Hmac): string {
  return run('instance').slice(0, 22);
}
