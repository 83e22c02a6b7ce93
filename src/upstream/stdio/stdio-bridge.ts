import { type OnInternalError, reportInternalError, withErrorBoundary } from '../../errors/error-boundary.js';
import type { BufferPool } from '../../io/buffer-pool.js';
import type { ByteReader } from '../../io/byte-reader.js';
import { LineDecoder, type LineSink, type OversizedLine } from '../../io/line-decoder.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import { Digits } from '../../json/digits.js';
import { isObject, readText } from '../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../json/splice.js';
import {
  errorMessage,
  type MessageSink,
  notificationMessage,
  requestMessage,
  resultMessage,
} from '../../jsonrpc/message.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import {
  type Envelope,
  messagesOf,
  type NotificationEnvelope,
  type Rejection,
  type RequestEnvelope,
  type ResponseEnvelope,
  type ScanEnvelope,
} from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { Clock } from '../../timing/clock.js';
import { newCounters } from '../counters.js';
import { type HealthEvents, HealthMonitor } from '../health/health-monitor.js';
import type { OutgoingRequest } from '../port.js';
import type { Outcome, RequestHandler, RequestTimeouts, SentRequest } from '../request.js';
import { OutgoingRequests } from './outgoing-requests.js';
import { findIdInFragments } from './oversized-line.js';
import { readOwnId } from './own-id.js';
import type { PendingRequest } from './pending-request.js';

export interface BridgeEvents extends HealthEvents {
  /** A request of the child's own; whoever takes it answers through `respond`, `answer` or `refuse`. */
  request(request: RequestEnvelope): void;
  /** Everything but progress, which the bridge sees to. */
  notification(notification: NotificationEnvelope): void;
  /** A line that is no message. It goes to the child's log and nowhere else. */
  junk(line: Uint8Array, reason: Rejection['reason'] | 'too-large'): void;
  /** A handler threw, which concerns nobody but whom it was for. Without a listener it goes on to the caller. */
  readonly fault?: OnInternalError;
}

export interface BridgeOptions {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** The child's stdin. */
  readonly output: MessageSink;
  readonly events: BridgeEvents;
  readonly maxFrameBytes: number;
  /** Requests are refused while more than this waits to be read by the child. */
  readonly maxUnwrittenBytes: number;
  /** What all bridges together may hold of frames that are not complete. */
  readonly partialFrames?: SharedLimit;
  /** Where the memory is from that the child's stdout is read into. */
  readonly bufferPool?: BufferPool;
}

/**
 * Speaks JSON-RPC over the two pipes of one child, for as long as that process lives.
 *
 * It gives each request an id of its own, keeps who waits for which answer, and sees that everyone who waits is told
 * something exactly once: the answer, a timeout, a cancellation, or that the child is gone. A new process gets a new
 * bridge, so nothing that belongs to the old one can reach it.
 */
export class StdioBridge implements ByteReader, LineSink {
  readonly counters = newCounters();
  readonly #scan: ScanEnvelope;
  readonly #output: MessageSink;
  readonly #events: BridgeEvents;
  readonly #maxUnwrittenBytes: number;
  readonly #decoder: LineDecoder;
  readonly #outgoing: OutgoingRequests;
  /** Ids, as tokens, of what the child asked and was not answered yet. */
  readonly #asked = new Set<string>();
  readonly #digits = new Digits();
  readonly #health: HealthMonitor;
  readonly #clock: Clock;
  /** When the bytes came that are being looked at: the clock is read once for all of them. */
  #readAt = 0;
  #closed: 'exited' | 'stopped' | undefined;

  constructor(options: BridgeOptions) {
    const { clock, scan, output, events, maxFrameBytes, maxUnwrittenBytes, partialFrames, bufferPool } = options;
    this.#scan = scan;
    this.#output = output;
    this.#clock = clock;
    this.#events = events;
    this.#maxUnwrittenBytes = maxUnwrittenBytes;
    this.#health = new HealthMonitor(clock, events);
    this.#decoder = new LineDecoder({ sink: this, maxLineBytes: maxFrameBytes, held: partialFrames, bufferPool });
    this.#outgoing = new OutgoingRequests({
      clock,
      counters: this.counters,
      // A child that waits for an answer of the client's is not silent: a person may be thinking.
      isExcused: () => this.#asked.size > 0,
      onCancelled: (request, notice, edits) => this.#cancelled(request, notice, edits),
      onTimeout: (request) => this.#timedOut(request),
      onFault: events.fault,
    });
  }

  /** Requests that wait for an answer. */
  get inFlight(): number {
    return this.#outgoing.size;
  }

  /** Whether the process is gone or given up; nothing can be sent any more. */
  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Whether several requests in a row have timed out, and nothing has come since. */
  get isSilent(): boolean {
    return this.#health.isSilent;
  }

  get unwrittenBytes(): number {
    return this.#output.unwrittenBytes;
  }

  get freeSpace(): Uint8Array {
    return this.#decoder.freeSpace;
  }

  /** Bytes of the child's stdout, cut anywhere. Once it is given up, what it says concerns nobody. */
  filled(byteLength: number): void {
    if (this.#closed !== undefined) return;
    this.#readAt = this.#clock.now();
    this.#health.heard();
    this.#decoder.filled(byteLength);
    this.#health.exceeded(this.#decoder.excessBytes);
  }

  /**
   * Passes a client's request on: `edits` are made, and its id and progress token become our own.
   *
   * Returns `undefined` when it could not be sent, which `handler` has been told by then.
   */
  relay(
    request: OutgoingRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined {
    const pending = this.#admit(timeouts, handler, true);
    if (pending === undefined) return undefined;
    const message = request.message(this.#digits.write(pending.id), edits);
    const { onWritten } = handler;
    this.#output.send(onWritten === undefined ? message : { ...message, onWritten });
    return pending;
  }

  /** Sends a request of the gateway's own. `initialize` is the one that is never cancelled. */
  ask(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome> {
    return new Promise((settle) => {
      const pending = this.#admit(timeouts, { settle }, method !== METHODS.initialize);
      if (pending !== undefined) this.#output.send(requestMessage(pending.id, method, params));
    });
  }

  notify(method: string, params?: unknown): void {
    if (this.#closed === undefined) this.#output.send(notificationMessage(method, params));
  }

  /** Answers a request of the child's with `result`, which is JSON. */
  respond(request: RequestEnvelope, result: Uint8Array): void {
    this.#reply(request, () => resultMessage(request.bytes.subarray(request.id.start, request.id.end), result));
  }

  /** Answers a request of the child's with what a client answered, untouched but for the id and the edits. */
  answer(request: RequestEnvelope, { bytes, span, id }: ResponseEnvelope, edits: readonly Edit[] = []): void {
    const text = request.bytes.subarray(request.id.start, request.id.end);
    this.#reply(request, () => ({ bytes, span, edits: [{ span: id, text }, ...edits] }));
  }

  /** Passes a client's notification on, with some tokens replaced. */
  forward({ bytes, span }: NotificationEnvelope, edits: readonly Edit[] = []): void {
    if (this.#closed === undefined) this.#output.send({ bytes, span, edits });
  }

  /** Answers a request of the child's with an error. */
  refuse(request: RequestEnvelope, error: RpcError): void {
    this.#reply(request, () => errorMessage(request.bytes.subarray(request.id.start, request.id.end), error));
  }

  /** The process is gone, or is about to be: everyone who waits is told so, and nothing is sent any more. */
  close(reason: 'exited' | 'stopped'): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#health.end();
    this.#decoder.end();
    this.#outgoing.close(reason);
  }

  /** One line of the child's stdout. */
  line(bytes: Uint8Array, start: number, end: number): void {
    // What stands in the same chunk behind the line for which the child was given up concerns nobody either.
    if (this.#closed !== undefined) return;
    // In place: a function for each message would cost more than the check.
    try {
      this.#take(this.#scan(bytes, start, end));
    } catch (error) {
      reportInternalError(error, this.#events.fault);
    }
  }

  oversized(fragment: OversizedLine): void {
    this.counters.oversized += 1;
    this.#withErrorBoundary(() => this.#events.junk(fragment.head, 'too-large'));
    this.#outgoing.fail(findIdInFragments(fragment), 'response_too_large');
    this.#health.brokeFrame();
  }

  #admit(timeouts: RequestTimeouts, handler: RequestHandler, isCancellable: boolean): PendingRequest | undefined {
    if (this.#closed !== undefined) {
      handler.settle({ kind: 'failed', reason: this.#closed, sent: false });
      return undefined;
    }
    if (this.#output.unwrittenBytes > this.#maxUnwrittenBytes) {
      handler.settle({ kind: 'failed', reason: 'overloaded', sent: false });
      return undefined;
    }
    return this.#outgoing.add(timeouts, handler, isCancellable);
  }

  #take(message: Envelope | Rejection): void {
    switch (message.kind) {
      case 'response':
        this.#outgoing.answered(message, this.#readAt);
        break;
      case 'notification':
        this.#notification(message);
        break;
      case 'request':
        this.#asked.add(readText(message.bytes, message.id));
        this.#events.request(message);
        break;
      case 'rejected':
        this.#reject(message);
        break;
    }
  }

  #notification(notification: NotificationEnvelope): void {
    const { requestId } = notification.tokens;
    if (notification.method === METHODS.progress) {
      this.#outgoing.progressed(notification);
      return;
    }
    // What it does not want to know any more, it does not wait for either.
    if (notification.method === METHODS.cancelled && requestId !== undefined) {
      this.#asked.delete(readText(notification.bytes, requestId));
    }
    this.#events.notification(notification);
  }

  #cancelled({ id }: PendingRequest, notice: NotificationEnvelope | undefined, edits: readonly Edit[]): void {
    const requestId = notice?.tokens.requestId;
    if (notice === undefined || requestId === undefined) {
      this.notify(METHODS.cancelled, { requestId: id });
    } else {
      const own: Edit = { span: requestId, ...this.#digits.write(id) };
      this.#output.send({ bytes: notice.bytes, span: notice.span, edits: [own, ...edits] });
    }
  }

  #timedOut({ id, isCancellable }: PendingRequest): void {
    if (isCancellable) this.notify(METHODS.cancelled, { requestId: id, reason: 'timed out' });
    this.#health.timedOut();
  }

  #reject(rejection: Rejection): void {
    const { reason, bytes, elements = [] } = rejection;
    if (reason === 'blank') return;
    // What a batch brings is taken as if each message had come alone. An array without objects is mere output.
    if (elements.some((element) => isObject(bytes, element))) {
      for (const message of messagesOf(rejection, this.#scan)) this.#withErrorBoundary(() => this.#take(message));
      return;
    }
    this.counters.junk += 1;
    this.#events.junk(bytes, reason);
    if (rejection.id !== undefined && rejection.isAnswer)
      this.#outgoing.fail(readOwnId(rejection.bytes, rejection.id), 'response_malformed');
    if (rejection.isMeant) this.#health.brokeFrame();
    else this.#health.printed(bytes.length);
  }

  /** What a handler throws must not keep the rest of what was read from those it is for. */
  #withErrorBoundary(work: () => void): void {
    withErrorBoundary(work, this.#events.fault);
  }

  #reply({ bytes, id }: RequestEnvelope, message: () => SplicedMessage): void {
    this.#asked.delete(readText(bytes, id));
    const isBlocked = this.#closed !== undefined || this.#output.unwrittenBytes > this.#maxUnwrittenBytes;
    if (isBlocked) this.counters.unsentReplies += 1;
    else this.#output.send(message());
  }
}
