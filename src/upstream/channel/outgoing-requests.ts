import { type OnInternalError, reportInternalError } from '../../host/errors/internal-error.js';
import { isNumber, isObject, isString, readText, type Span, valuesAt } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import { AnsweredRequests, CorrelationTable, readId } from '../../wire/jsonrpc/correlation-table.js';
import { type MessageEnds, readMessageEnds } from '../../wire/jsonrpc/message-ends.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import type { CloseReason, EndedBecause, Outcome, RequestFailure } from '../../wire/mcp/outcome.js';
import type { Clock } from '../../wire/timing/clock.js';
import { Deadlines, type Due } from '../../wire/timing/deadlines.js';
import type { DropCounters, RequestHandler, RequestTimeouts, SentRequest } from '../upstream-connection.js';

export interface OutgoingRequestsOptions {
  readonly clock: Clock;
  readonly counters: DropCounters;
  /** Whether the server waits for an answer of a client. Meanwhile, only the maximum timeout ends the requests to the server. */
  readonly isServerWaiting: () => boolean;
  /** The server answered a request, in time or late, or reported progress of one. */
  readonly onSignOfLife: () => void;
  /** A request was cancelled. Its handler is settled already. */
  readonly onCancelled: (request: PendingRequest, notice?: NotificationEnvelope, edits?: readonly Edit[]) => void;
  /** A request timed out. Its handler is settled already. */
  readonly onTimeout: (request: PendingRequest) => void;
  readonly events: {
    /** An answer has a malformed result or error, or an id that no request has. It belongs in the server's log only. */
    junk(line: Uint8Array, reason: AnswerFault): void;
    readonly fault?: OnInternalError;
  };
}

/** The requests sent to one server. Each is settled exactly once: answered, failed, cancelled, or timed out. */
export class OutgoingRequests {
  readonly #options: OutgoingRequestsOptions;
  readonly #pending = new CorrelationTable<PendingRequest>();
  /** Requests that were answered with a task and whose progress is still reported. */
  readonly #answered = new AnsweredRequests<PendingRequest>();
  readonly #deadlines: Deadlines<PendingRequest>;
  /** Number of requests without a deadline, such as an open `subscriptions/listen`. */
  #withoutDeadline = 0;

  constructor(options: OutgoingRequestsOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.clock, (request) => this.#timeOut(request));
  }

  /** Number of requests that wait for an answer. Requests without a deadline do not count. */
  get size(): number {
    return this.#pending.size - this.#withoutDeadline;
  }

  /** Gives a request its id and starts its deadline. The caller must send it at once, at `position` in the output. */
  add(timeouts: RequestTimeouts, handler: RequestHandler, isCancellable: boolean, position: number): PendingRequest {
    const now = this.#options.clock.now();
    const request = new PendingRequest({ owner: this, timeouts, handler, isCancellable, position, now });
    request.id = this.#pending.add(request);
    if (request.dueAt === Number.POSITIVE_INFINITY) this.#withoutDeadline += 1;
    else this.#deadlines.watch(request);
    return request;
  }

  /**
   * Settles the request that a response answers. `at` is the arrival of the response, in milliseconds on the clock. `asked` is the request
   * on whose stream the response came, if the transport shows it. Returns whether this is the first answer to a request, in time or late.
   */
  answered(response: ResponseEnvelope, at: number, asked?: number): boolean {
    const id = readId(response.bytes, response.id) ?? this.#unnamedBy(response, asked);
    const { counters, onSignOfLife } = this.#options;
    const fault = faultOf(response);
    const isAwaited = this.#end(id, fault === undefined ? { kind: 'answered', response, at } : MALFORMED);
    if (fault !== undefined) this.#report(response, fault);
    if (isAwaited) {
      onSignOfLife();
      return true;
    }
    const kind = this.#pending.stray(id, at);
    counters[kind] += 1;
    // A server whose answers all have such an id is never ready, and only its log can say why.
    if (kind === 'unknown') this.#log(response, 'unknown-id');
    if (kind === 'late') onSignOfLife();
    return kind === 'late';
  }

  /**
   * Logs an answer of the wrong shape. Its request fails at once, because the official SDKs would drop the answer and let the
   * request time out. The server still counts as healthy, because the frame is valid and other requests get their answers.
   */
  #report(response: ResponseEnvelope, fault: AnswerFault): void {
    this.#options.counters.junk += 1;
    this.#log(response, fault);
  }

  #log({ bytes, span }: ResponseEnvelope, fault: AnswerFault): void {
    this.#options.events.junk(bytes.subarray(span.start, span.end), fault);
  }

  /** Fails the request whose answer is not a valid message. `token` is the id of the answer. */
  answerMalformed(bytes: Uint8Array, token: Span): void {
    this.#lost(readId(bytes, token), 'response_malformed');
  }

  /** Fails the request whose answer was dropped before it was read, if the ends of the dropped message show the id. */
  dropped(ends: MessageEnds, reason: RequestFailure): void {
    const { kind, id } = readMessageEnds(ends);
    const answered = kind === 'response' && id !== undefined ? readId(id, { start: 0, end: id.length }) : undefined;
    this.#lost(answered, reason);
  }

  /** Fails the request with this id, if there is one, because its answer was lost. The server is still alive. */
  #lost(id: number | undefined, reason: RequestFailure): void {
    if (this.#end(id, { kind: 'failed', reason, sent: true })) this.#options.onSignOfLife();
  }

  /** Fails a request that the transport could not send, or whose answer it cannot get. */
  fail(id: number, reason: RequestFailure, sent: boolean, because: EndedBecause | undefined): void {
    this.#end(id, { kind: 'failed', reason, sent, because });
  }

  isPending(id: number): boolean {
    return this.#pending.get(id) !== undefined;
  }

  /** The sender of a request that waits for its answer. */
  handlerOf(id: number): RequestHandler | undefined {
    return this.#pending.get(id)?.handler;
  }

  /** Reports progress of a request. Drops progress of an unknown one, because some clients close the connection at an unknown token. */
  progressed(notification: NotificationEnvelope): void {
    const { clock, counters, onSignOfLife } = this.#options;
    const { progressToken } = notification.tokens;
    const id = progressToken === undefined ? undefined : readId(notification.bytes, progressToken);
    const request = id === undefined ? undefined : (this.#pending.get(id) ?? this.#answered.get(id));
    if (request !== undefined) onSignOfLife();
    if (request?.progress(notification, clock.now()) !== true) counters.staleProgress += 1;
  }

  cancel(request: PendingRequest, notice: NotificationEnvelope | undefined, edits: readonly Edit[]): void {
    if (this.#abandon(request, 'cancelled')) this.#options.onCancelled(request, notice, edits);
  }

  /** Reports progress of an answered request until the returned function is called. */
  keepProgress(request: PendingRequest): () => void {
    return this.#answered.add(request.id, request);
  }

  /** Whether the server has reported progress of a request in flight. */
  get isProgressing(): boolean {
    for (const request of this.#pending.all()) if (request.hasProgressed) return true;
    return false;
  }

  /** Fails all requests. A request that begins after the first `takenBytes` of the output has not reached the server. */
  close(reason: CloseReason, takenBytes: number, because: EndedBecause | undefined): void {
    this.#deadlines.close();
    for (const request of this.#pending.drain())
      this.#settle(request, { kind: 'failed', reason, sent: request.position < takenBytes, because });
  }

  /** Finds the request for an error with a wrong or missing id, because some servers send `null` or an id of their own. */
  #unnamedBy({ bytes, id, error }: ResponseEnvelope, asked: number | undefined): number | undefined {
    if (error === undefined) return undefined;
    if (asked !== undefined) return asked;
    if (readText(bytes, id) !== 'null') return undefined;
    for (const request of this.#pending.all()) if (request.handler.takesErrorWithoutId === true) return request.id;
    return undefined;
  }

  /** Settles a request. Returns whether it was in flight. */
  #end(id: number | undefined, outcome: Outcome): boolean {
    const request = id === undefined ? undefined : this.#pending.settle(id);
    if (request === undefined) return false;
    this.#deadlines.unwatch(request);
    this.#settle(request, outcome);
    return true;
  }

  /** Settles a request that got no answer. A later answer counts as late. Returns whether the request was in flight. */
  #abandon(request: PendingRequest, reason: 'cancelled' | 'timeout'): boolean {
    if (this.#pending.abandon(request.id, this.#options.clock.now()) === undefined) return false;
    this.#deadlines.unwatch(request);
    this.#settle(request, { kind: 'failed', reason, sent: true });
    return true;
  }

  #timeOut(request: PendingRequest): void {
    const { clock, isServerWaiting, onTimeout } = this.#options;
    const now = clock.now();
    if (isServerWaiting() && now < request.hardAt) {
      request.prolong(now);
      this.#deadlines.watch(request);
    } else if (this.#abandon(request, 'timeout')) {
      onTimeout(request);
    }
  }

  /** An error in one handler must not stop the processing of the other messages in the same chunk. */
  #settle({ handler, dueAt }: PendingRequest, outcome: Outcome): void {
    if (dueAt === Number.POSITIVE_INFINITY) this.#withoutDeadline -= 1;
    // Not `withErrorBoundary`, because it would need a closure for each answer.
    try {
      handler.settle(outcome);
    } catch (error) {
      reportInternalError(error, this.#options.events.fault);
    }
  }
}

/** Reason for which an answer cannot be used, although it is a valid message. */
export type AnswerFault = 'result-not-an-object' | 'error-without-code-and-message' | 'unknown-id';

function faultOf({ bytes, result, error }: ResponseEnvelope): AnswerFault | undefined {
  if (result !== undefined) return isObject(bytes, result) ? undefined : 'result-not-an-object';
  if (error === undefined) return undefined;
  const [code] = valuesAt(bytes, error, ['code']);
  const [message] = valuesAt(bytes, error, ['message']);
  const isSound = code !== undefined && message !== undefined && isNumber(bytes, code) && isString(bytes, message);
  return isSound ? undefined : 'error-without-code-and-message';
}

const MALFORMED: Outcome = { kind: 'failed', reason: 'result_malformed', sent: true };

interface PendingRequestOptions {
  readonly owner: OutgoingRequests;
  readonly timeouts: RequestTimeouts;
  readonly handler: RequestHandler;
  readonly isCancellable: boolean;
  /** Position of the message in the output to the server, in bytes since the connection was opened. */
  readonly position: number;
  /** Milliseconds on the clock. */
  readonly now: number;
}

export class PendingRequest implements Due, SentRequest {
  id = 0;
  dueAt: number;
  hasProgressed = false;
  readonly sentAt: number;
  readonly position: number;
  readonly handler: RequestHandler;
  readonly isCancellable: boolean;
  #lastProgress: number;
  readonly #timeouts: RequestTimeouts;
  readonly #owner: OutgoingRequests;

  constructor({ owner, timeouts, handler, isCancellable, position, now }: PendingRequestOptions) {
    this.dueAt = now + Math.min(timeouts.firstMs ?? timeouts.idleMs, timeouts.maxMs);
    this.#lastProgress = handler.progressed ?? Number.NEGATIVE_INFINITY;
    this.sentAt = now;
    this.handler = handler;
    this.isCancellable = isCancellable;
    this.position = position;
    this.#timeouts = timeouts;
    this.#owner = owner;
  }

  /** Time of the maximum timeout. Progress does not postpone it. */
  get hardAt(): number {
    return this.sentAt + this.#timeouts.maxMs;
  }

  /** Starts the idle timeout again. */
  prolong(now: number): void {
    this.dueAt = Math.min(now + this.#timeouts.idleMs, this.hardAt);
  }

  /** Reports progress if its value has grown, and returns whether it has. Any progress starts the idle timeout again. */
  progress(notification: NotificationEnvelope, now: number): boolean {
    this.prolong(now);
    this.hasProgressed = true;
    const { bytes, tokens } = notification;
    const value = tokens.progress === undefined ? Number.NaN : Number(readText(bytes, tokens.progress));
    if (!(value > this.#lastProgress)) return false;
    this.#lastProgress = value;
    this.handler.progress?.(notification, value);
    return true;
  }

  cancel(notice?: NotificationEnvelope, edits: readonly Edit[] = []): void {
    this.#owner.cancel(this, notice, edits);
  }

  keepProgress(): () => void {
    return this.#owner.keepProgress(this);
  }
}
