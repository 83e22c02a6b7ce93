import { type OnInternalError, reportInternalError } from '../../errors/error-boundary.js';
import { AnsweredRequests } from '../../jsonrpc/answered-requests.js';
import { CorrelationTable } from '../../jsonrpc/correlation-table.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Clock } from '../../timing/clock.js';
import { Deadlines } from '../../timing/deadlines.js';
import type { BridgeCounters } from '../counters.js';
import type { Outcome, RequestFailure, RequestHandler, RequestTimeouts } from '../request.js';
import { readOwnId } from './own-id.js';
import { PendingRequest, type RequestKeeper } from './pending-request.js';

export interface OutgoingRequestsOptions {
  readonly clock: Clock;
  readonly counters: BridgeCounters;
  /** Whether the child waits for others; then it is not late itself. */
  readonly isExcused: () => boolean;
  /** The client gave up; whoever waited has been told. */
  readonly onCancelled: RequestKeeper['cancel'];
  /** Nothing came in time; whoever waited has been told. */
  readonly onTimeout: (request: PendingRequest) => void;
  readonly onInternalError: OnInternalError | undefined;
}

/** The requests sent to one child, each until it has ended: answered, given up or too late, and then exactly once. */
export class OutgoingRequests {
  readonly #options: OutgoingRequestsOptions;
  readonly #pending = new CorrelationTable<PendingRequest>();
  readonly #lasting = new AnsweredRequests<PendingRequest>();
  readonly #deadlines: Deadlines<PendingRequest>;
  readonly #keeper: RequestKeeper;

  constructor(options: OutgoingRequestsOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.clock, (request) => this.#timeOut(request));
    this.#keeper = {
      cancel: (request, notice, edits) => {
        if (this.#abandon(request, 'cancelled')) options.onCancelled(request, notice, edits);
      },
      keepProgress: (request) => this.#lasting.add(request.id, request),
    };
  }

  /** Those that wait for an answer. */
  get size(): number {
    return this.#pending.size;
  }

  /** A request is about to be sent, under the id that it has from now on. */
  add(timeouts: RequestTimeouts, handler: RequestHandler, isCancellable: boolean): PendingRequest {
    const now = this.#options.clock.now();
    const request = new PendingRequest({ keeper: this.#keeper, timeouts, handler, isCancellable, now });
    request.id = this.#pending.add(request);
    this.#deadlines.watch(request);
    return request;
  }

  /** The child has answered; `at` is when that was read, in milliseconds on the clock. */
  answered(response: ResponseEnvelope, at: number): void {
    const id = readOwnId(response.bytes, response.id);
    const isAwaited = this.#end(id, { kind: 'answered', response, at });
    if (!isAwaited) this.#options.counters[this.#pending.stray(id, at)] += 1;
  }

  /** What would have answered this request was dropped: waiting on would be waiting for nothing. */
  fail(id: number | undefined, reason: RequestFailure): void {
    this.#end(id, { kind: 'failed', reason, sent: true });
  }

  /** Progress of what is finished or unknown is dropped: hosts close the connection over a token they do not know. */
  progressed(notification: NotificationEnvelope): void {
    const { clock, counters } = this.#options;
    const { progressToken } = notification.tokens;
    const id = progressToken === undefined ? undefined : readOwnId(notification.bytes, progressToken);
    const request = id === undefined ? undefined : (this.#pending.get(id) ?? this.#lasting.get(id));
    if (request?.progress(notification, clock.now()) !== true) counters.staleProgress += 1;
  }

  /** The child is gone: everyone who waits is told so. */
  close(reason: 'exited' | 'stopped'): void {
    this.#deadlines.close();
    for (const request of this.#pending.drain()) this.#settle(request, { kind: 'failed', reason, sent: true });
  }

  /** Returns whether there was such a request. */
  #end(id: number | undefined, outcome: Outcome): boolean {
    const request = id === undefined ? undefined : this.#pending.settle(id);
    if (request === undefined) return false;
    this.#deadlines.unwatch(request);
    this.#settle(request, outcome);
    return true;
  }

  /** Nobody waits any more; an answer is late from now on. Returns whether anybody did. */
  #abandon(request: PendingRequest, reason: 'cancelled' | 'timeout'): boolean {
    if (this.#pending.abandon(request.id, this.#options.clock.now()) === undefined) return false;
    this.#deadlines.unwatch(request);
    this.#settle(request, { kind: 'failed', reason, sent: true });
    return true;
  }

  #timeOut(request: PendingRequest): void {
    const { clock, isExcused, onTimeout } = this.#options;
    const now = clock.now();
    if (isExcused() && now < request.hardAt) {
      request.prolong(now);
      this.#deadlines.watch(request);
    } else if (this.#abandon(request, 'timeout')) {
      onTimeout(request);
    }
  }

  /** What a handler throws must not keep the rest of what was read from those it is for. */
  #settle({ handler }: PendingRequest, outcome: Outcome): void {
    // In place: a function for each answer would cost more than the check.
    try {
      handler.settle(outcome);
    } catch (error) {
      reportInternalError(error, this.#options.onInternalError);
    }
  }
}
