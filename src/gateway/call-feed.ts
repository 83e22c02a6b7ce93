import { outcomeOf } from '../downstream/failure.js';
import type { CallEnd, CallTrail, ClientFacts, Exchange, SendingConnection, User } from '../downstream/port.js';
import { type OnInternalError, reportInternalError } from '../host/errors/internal-error.js';
import { readText, stringAt } from '../wire/json/json-text.js';
import { asText } from '../wire/json/json-value.js';
import { concatEdits, type Edit, type SplicedMessage, splicedLength } from '../wire/json/splice.js';
import { RpcError } from '../wire/jsonrpc/message.js';
import { isErrorResponse } from '../wire/mcp/envelope.js';
import type { ClientProfile } from '../wire/mcp/handshake.js';
import { METHODS } from '../wire/mcp/methods.js';
import type { Outcome } from '../wire/mcp/outcome.js';

export type { CallEnd } from '../downstream/port.js';

export interface CallingClient {
  readonly name: string;
  readonly version: string;
  /** Number of the session, counted from the start of this process. */
  readonly session: number;
  /** Absent if clients do not authenticate as users. */
  readonly user?: User | undefined;
}

/** Observes the calls of all clients, such as the call log, the metrics and the traces. */
export interface CallObserver {
  /** Whether the observer is asked about all requests, including lists and polls. */
  readonly takesAll?: boolean;
  /**
   * A call has arrived, and no server has it yet. Returns its observation, which may be the same object for all calls, or
   * `undefined` if the observer does not want the call. `isCall` is false for the requests that only `takesAll` adds.
   */
  begin(call: ObservedCall, isCall: boolean): CallObservation | undefined;
}

/**
 * One observer's observation of a call. See `CallTrail` for the methods and for the lifetime of bytes. The facts of `call` are complete
 * when `ended` is called. An error in an observation is an internal error. It ends the observation of this call, but not the call.
 */
export interface CallObservation {
  sending?(call: ObservedCall, connection: SendingConnection, edits: readonly Edit[]): readonly Edit[] | undefined;
  sent?(call: ObservedCall, message: SplicedMessage): void;
  /** `ms` is the time from the sending to the end of the attempt; 0 if the request could not be sent. */
  attemptEnded?(call: ObservedCall, outcome: Outcome, ms: number): void;
  ended?(call: ObservedCall, end: CallEnd): void;
}

/** Limit of the remarks about one call. */
const MAX_REMARKS = 10;
const NO_REMARKS: readonly string[] = [];

/** Methods of the requests that are observed as calls. Lists and polls are not. */
const CALLS: readonly string[] = [METHODS.callTool, METHODS.getPrompt, METHODS.readResource, METHODS.complete];

/** Shows the calls of all clients to observers. Without observers, a request costs only the look-up of its method. */
export class CallFeed {
  readonly clock: { now(): number };
  readonly onInternalError: OnInternalError | undefined;
  #observers: readonly CallObserver[] = [];
  #takingAll: readonly CallObserver[] = [];
  #sessions = 0;

  constructor(clock: { now(): number }, onInternalError?: OnInternalError) {
    this.clock = clock;
    this.onInternalError = onInternalError;
  }

  get isObserved(): boolean {
    return this.#observers.length > 0;
  }

  /** Shows the calls that arrive from now on to an observer, until the returned function is called. */
  observe(observer: CallObserver): () => void {
    this.#setObservers([...this.#observers, observer]);
    return () => this.#setObservers(this.#observers.filter((each) => each !== observer));
  }

  #setObservers(observers: readonly CallObserver[]): void {
    this.#observers = observers;
    this.#takingAll = observers.filter(({ takesAll }) => takesAll === true);
  }

  /** Returns a function that passes the requests of one session to the current client view of that session. */
  session(connected: {
    readonly facts: ClientFacts;
    readonly view: { serve(exchange: Exchange): void };
  }): (exchange: Exchange) => void {
    this.#sessions += 1;
    const { user } = connected.facts;
    const session = { client: { ...namesOf(connected.facts), session: this.#sessions, user }, feed: this };
    return (exchange) => {
      // A request that its session serves again is still the same call.
      const isCall = CALLS.includes(exchange.request.method);
      const observers = isCall ? this.#observers : this.#takingAll;
      if (observers.length > 0 && exchange.trail === undefined) {
        const call = new ObservedCall(exchange, session);
        if (call.begin(observers, isCall)) exchange.trail = call;
      }
      connected.view.serve(exchange);
    };
  }
}

/** The feed of gateways without observers, such as those of most tests. */
export const NO_CALLS = new CallFeed({ now: () => 0 });

/** Name and version of the client as text. The client may have sent other types. */
export function namesOf({ profile }: { readonly profile: ClientProfile }): {
  readonly name: string;
  readonly version: string;
} {
  const { name, version } = profile.clientInfo;
  return { name: asText(name), version: asText(version) };
}

/** Returns the key in the name of an instance, such as `KEY`, `KEY~2` or `KEY~3`. */
export function serverOf(instance: string): string {
  return instance.replace(/~\d+$/, '');
}

interface ObservedSession {
  readonly client: CallingClient;
  readonly feed: CallFeed;
}

const NO_OBSERVATIONS: readonly CallObservation[] = [];

/** A call of a client, with the facts that are known so far. Times are milliseconds on the clock. */
export class ObservedCall implements CallTrail {
  readonly exchange: Exchange;
  /** The tool or the prompt, under the name that the client used. `undefined` if there is none, or if it is no text. */
  readonly name: string | undefined;
  readonly startedAt: number;
  /** Key of the server to which the call went last; `undefined` if it went to none. */
  server: string | undefined;
  /** Instance of this server. */
  instance: string | undefined;
  isRemote = false;
  /** Generation and revision of the connection of the last attempt. */
  generation: number | undefined;
  revision: string | undefined;
  attempts = 0;
  /** Time of all attempts together: the time in the server. The rest of the duration is the wait. */
  servedMs = 0;
  /** Whether a byte of the request may have reached a server. */
  isSent = false;
  endedAt: number | undefined;
  /** Remarks about the call, such as the findings of interceptors. */
  remarks: readonly string[] = NO_REMARKS;
  readonly #session: ObservedSession;
  #observations = NO_OBSERVATIONS;
  #end: CallEnd | undefined;
  /** Whether an attempt has not ended. */
  #isAttempted = false;

  // Every call makes such an object, so it has few members, and refers to the facts that the calls of a session share.
  constructor(exchange: Exchange, session: ObservedSession) {
    this.exchange = exchange;
    this.#session = session;
    const { bytes, tokens } = exchange.request;
    this.name = stringAt(bytes, tokens.name);
    this.startedAt = session.feed.clock.now();
  }

  get client(): CallingClient {
    return this.#session.client;
  }

  get method(): string {
    return this.exchange.request.method;
  }

  /** Id of the request, as JSON. */
  get requestId(): string {
    return this.exchange.requestId;
  }

  /** Milliseconds from the arrival to the end, or until now. */
  get durationMs(): number {
    return (this.endedAt ?? this.#session.feed.clock.now()) - this.startedAt;
  }

  /** Milliseconds in which no attempt was under way, such as the wait for a slot or for a start. */
  get waitedMs(): number {
    return Math.max(0, this.durationMs - this.servedMs);
  }

  /** Bytes of the parameters. */
  get bytesIn(): number {
    const { params } = this.exchange.request;
    return params === undefined ? 0 : params.end - params.start;
  }

  /** Bytes of the answer that the client gets; 0 if it gets none. Call it in `ended` only. */
  get bytesOut(): number {
    const message = this.#end?.message;
    return message === undefined ? 0 : splicedLength(message);
  }

  /** Kind of the client's answer. `tool_error` is a tool result with `isError`, `failed` a failure that the gateway describes. */
  get outcome(): 'ok' | 'tool_error' | 'rpc_error' | 'failed' | 'cancelled' {
    const { response, result, failure } = this.#end ?? {};
    if (failure !== undefined) return failure instanceof RpcError ? 'rpc_error' : 'failed';
    if (response?.error !== undefined) return 'rpc_error';
    if (response !== undefined) return isErrorResponse(response) ? 'tool_error' : 'ok';
    if (result === undefined) return 'cancelled';
    return hasFailed(result) ? 'tool_error' : 'ok';
  }

  /**
   * Effect of the call at the server. A call without an answer of the server is `not_sent` if it certainly did not run, and
   * `unknown` if it may have run. `failed` is an error of the server, or an answer that was lost.
   */
  get effect(): 'ok' | 'tool_error' | 'not_sent' | 'unknown' | 'failed' {
    const { response, result, failure } = this.#end ?? {};
    if (response?.error !== undefined) return 'failed';
    if (response !== undefined) return isErrorResponse(response) ? 'tool_error' : 'ok';
    if (result !== undefined) return hasFailed(result) ? 'tool_error' : 'ok';
    if (failure !== undefined && !(failure instanceof RpcError)) return outcomeOf(failure);
    return this.isSent ? 'unknown' : 'not_sent';
  }

  /** Reason of a failure, or the message of an error that the gateway made. */
  get reason(): string | undefined {
    const failure = this.#end?.failure;
    return failure instanceof RpcError ? failure.message : failure?.reason;
  }

  noted(remark: string): void {
    if (this.remarks.length < MAX_REMARKS) this.remarks = [...this.remarks, remark];
  }

  /** The place of the rule in the configuration that denies the call, or the interceptor that refuses it. */
  get rule(): string | undefined {
    const failure = this.#end?.failure;
    return failure instanceof RpcError ? undefined : failure?.rule;
  }

  /** Code of the JSON-RPC error that is the answer. Call it in `ended` only. */
  get errorCode(): number | undefined {
    const { response, failure } = this.#end ?? {};
    if (failure instanceof RpcError) return failure.code;
    const token = response?.error === undefined ? undefined : response.tokens.errorCode;
    return response === undefined || token === undefined ? undefined : Number(readText(response.bytes, token));
  }

  /** Asks the observers for their observations. Returns whether there are any. */
  begin(observers: readonly CallObserver[], isCall: boolean): boolean {
    try {
      for (const observer of observers) {
        const observation = observer.begin(this, isCall);
        if (observation !== undefined) this.#observations = [...this.#observations, observation];
      }
    } catch (error) {
      this.#abandon(error);
    }
    return this.#observations.length > 0;
  }

  routed(server: string, instance: string, isRemote: boolean): void {
    this.isRemote = isRemote;
    this.server = server;
    this.instance = instance;
  }

  sending(connection: SendingConnection, edits: readonly Edit[]): readonly Edit[] | undefined {
    this.generation = connection.generation;
    this.revision = connection.revision;
    this.attempts += 1;
    this.#isAttempted = true;
    let added: readonly Edit[] | undefined;
    this.#tell((each) => {
      const own = each.sending?.(this, connection, edits);
      if (own !== undefined) added = concatEdits(added, own);
    });
    return added;
  }

  sent(message: SplicedMessage): void {
    this.#tell((each) => each.sent?.(this, message));
  }

  attemptEnded(outcome: Outcome, sentAt?: number): void {
    if (!this.#isAttempted) return;
    const isAnswered = outcome.kind === 'answered';
    const at = isAnswered ? outcome.at : this.#session.feed.clock.now();
    const ms = sentAt === undefined ? 0 : at - sentAt;
    this.servedMs += ms;
    this.isSent ||= isAnswered || outcome.sent;
    this.#isAttempted = false;
    this.#tell((each) => each.attemptEnded?.(this, outcome, ms));
  }

  ended(end: CallEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.endedAt = this.#session.feed.clock.now();
    // An attempt that has not ended may have been sent.
    this.isSent ||= this.#isAttempted;
    this.#tell((each) => each.ended?.(this, end));
    this.#observations = NO_OBSERVATIONS;
  }

  #tell(tell: (observation: CallObservation) => void): void {
    try {
      for (const each of this.#observations) tell(each);
    } catch (error) {
      this.#abandon(error);
    }
  }

  #abandon(error: unknown): void {
    this.#observations = NO_OBSERVATIONS;
    reportInternalError(error, this.#session.feed.onInternalError);
  }
}

/** Whether a result that the gateway made has `isError`. No text within it can match, because quotes in texts are escaped. */
function hasFailed(result: Uint8Array): boolean {
  return readText(result, { start: 0, end: result.length }).includes('"isError":true');
}
