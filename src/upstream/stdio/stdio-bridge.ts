import { type OnInternalError, reportInternalError, withErrorBoundary } from '../../errors/internal-error.js';
import type { ByteReader } from '../../io/byte-reader.js';
import {
  type DroppedLineSink,
  LineDecoder,
  type LineDecoderOptions,
  type LineSink,
  type OversizedLine,
} from '../../io/line-decoder.js';
import type { Direction, FeedConnection, MessageFeed } from '../../io/message-feed.js';
import type { FloodBound } from '../../io/streams/turn-reader.js';
import { isObject, OPEN_BRACE, OPEN_BRACKET, readText } from '../../json/json-text.js';
import { type Edit, NumberWriter, type SplicedMessage } from '../../json/splice.js';
import { rawId } from '../../jsonrpc/envelope-scanner.js';
import {
  errorMessage,
  notificationMessage,
  requestMessage,
  resultMessage,
  type TrackedSink,
} from '../../jsonrpc/message.js';
import {
  type Envelope,
  messagesOf,
  type NotificationEnvelope,
  type Rejection,
  type RequestEnvelope,
  type ScanEnvelope,
} from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import type { Clock } from '../../timing/clock.js';
import type { Channel, ChannelReceiver } from '../dialect.js';
import { type HealthEvents, HealthMonitor } from '../health/health-monitor.js';
import {
  type CloseReason,
  type EndedBecause,
  newDropCounters,
  type Outcome,
  type RequestHandler,
  type RequestTimeouts,
  type SentNotification,
  type SentRequest,
  type ServerRequest,
} from '../port.js';
import { OutgoingRequests, type PendingRequest } from './outgoing-requests.js';

/**
 * Speaks JSON-RPC over the two pipes of one server process, for as long as the process lives.
 *
 * The bridge gives each request its own id, matches answers to requests, and settles each request exactly once: with
 * the answer, a timeout, a cancellation, or the end of the process. A new process gets a new bridge, so nothing that
 * belongs to the old process can reach the new one.
 */
export class StdioBridge implements Channel, ByteReader, LineSink, DroppedLineSink {
  readonly counters = newDropCounters();
  readonly #options: BridgeOptions;
  readonly #decoder: LineDecoder;
  readonly #outgoing: OutgoingRequests;
  /** The ids of the server's requests that are not answered yet, as JSON tokens. Without pings, because no person answers those. */
  readonly #unanswered = new Set<string>();
  readonly #numbers = new NumberWriter();
  readonly #health: HealthMonitor;
  /** Arrival of the bytes that are being scanned, in milliseconds on the clock, which is read once for all of them. */
  #readAt = 0;
  #isUseful = false;
  /** Bytes in these that are no message, from a server that logs to stdout. */
  #strayBytes = 0;
  #closed: CloseReason | undefined;
  #receiver: Pick<BridgeEvents, 'request' | 'notification'> & Partial<ChannelReceiver>;

  constructor(options: BridgeOptions) {
    const { clock, events } = options;
    this.#options = options;
    this.#receiver = events;
    this.#health = new HealthMonitor(clock, events);
    this.#outgoing = new OutgoingRequests({
      clock,
      counters: this.counters,
      // The server waits for a client's answer, and a person may take long to give it.
      isServerWaiting: () => this.#unanswered.size > 0,
      onCancelled: (request, notice, edits) => this.#cancelled(request, notice, edits),
      onTimeout: (request) => this.#timedOut(request),
      onSignOfLife: () => this.#health.signOfLife(),
      events,
    });
    this.#decoder = new LineDecoder({
      ...options,
      sink: this,
      dropped: this,
      maxLineBytes: options.maxFrameBytes,
      canBegin: (byte) => byte === OPEN_BRACE || byte === OPEN_BRACKET,
    });
  }

  /** Requests that wait for an answer. */
  get inFlight(): number {
    return this.#outgoing.size;
  }

  /** Whether the process has ended or was given up. Nothing can be sent anymore. */
  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Whether several requests in a row timed out and the server has answered nothing since. */
  get isSilent(): boolean {
    return this.#health.isSilent;
  }

  get pausedMs(): number {
    return this.#options.flood?.pausedMs ?? 0;
  }

  get freeSpace(): Uint8Array {
    return this.#decoder.freeSpace;
  }

  whenMoved(listener: () => void): void {
    this.#decoder.whenMoved(listener);
  }

  /** Whether the bytes that came last answered a request, or are the middle of an answer that a request waits for. */
  get wasUseful(): boolean {
    return this.#isUseful;
  }

  /** Takes bytes of the server's stdout, cut anywhere. Ignores them once the bridge is closed. */
  filled(byteLength: number): void {
    this.#isUseful = false;
    if (this.#closed !== undefined) return;
    this.#readAt = this.#options.clock.now();
    this.#strayBytes = 0;
    this.#decoder.filled(byteLength);
    this.counters.blank = this.#decoder.blankLines;
    this.#health.exceeded(this.#decoder.excessBytes);
    if (this.#strayBytes > 0) this.#health.strayOutput(this.#strayBytes);
    if (this.#outgoing.size > 0 && this.#decoder.unfinishedBytes >= byteLength) this.#isUseful = true;
  }

  /** Sends a client's request under an id of the bridge's own. */
  send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined {
    const pending = this.#admit(timeouts, handler, true);
    if (pending === undefined) return undefined;
    const message = request.message(this.#numbers.write(pending.id), edits);
    const { lease } = handler;
    // Only large requests have a lease; a copy for each request would cost more than the check.
    this.#write(lease === undefined ? message : { ...message, lease });
    return pending;
  }

  receive(receiver: ChannelReceiver): void {
    this.#receiver = receiver;
  }

  /** Sends a request of the gateway's own. It is cancelled when it times out, except for `initialize`. */
  request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome> {
    return new Promise((settle) => {
      const pending = this.#admit(timeouts, { settle }, method !== METHODS.initialize);
      if (pending !== undefined) this.#write(requestMessage(pending.id, method, params));
    });
  }

  notify({ bytes, span }: SentNotification, edits: readonly Edit[] = []): void {
    if (this.#closed === undefined) this.#write({ bytes, span, edits });
  }

  sendNotification(method: string, params?: unknown): void {
    if (this.#closed === undefined) this.#write(notificationMessage(method, params));
  }

  /** Settles all requests with the reason and ignores everything that the server writes from now on. */
  close(reason: CloseReason, because?: EndedBecause): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#health.end();
    this.#decoder.end();
    this.#outgoing.close(reason, this.#options.output.close(), because);
    this.#receiver.closed?.(reason, because);
  }

  /** Takes one line of the server's stdout. */
  line(bytes: Uint8Array, start: number, end: number): void {
    // An earlier line of the same chunk may have closed the bridge.
    if (this.#closed !== undefined) return;
    // Inline: a closure for each message costs more than the check.
    try {
      if (this.#isObserved) this.#show('s>g', { bytes, span: { start, end }, edits: [] });
      if (this.#take(this.#options.scan(bytes, start, end))) this.#isUseful = true;
    } catch (error) {
      reportInternalError(error, this.#options.events.fault);
    }
  }

  evicted(head: Uint8Array): void {
    this.counters.evicted += 1;
    this.#logDropped(head, 'memory-limit');
    this.#outgoing.dropped({ head, tail: NOTHING }, 'response_dropped');
    // A server that Trunkline does not read cannot finish its line.
    if (this.#options.isPaused?.() !== true) this.#health.brokenFrame();
  }

  text(head: Uint8Array): void {
    this.counters.junk += 1;
    this.#logDropped(head, 'not-json');
  }

  /** Fails the request that a dropped line answers, and counts a protocol violation. */
  oversized(line: OversizedLine): void {
    if (line.isText) return;
    if (line.isEvicted) {
      // It is counted already, but perhaps only its end shows the id.
      this.#outgoing.dropped(line, 'response_dropped');
      return;
    }
    this.counters.oversized += 1;
    this.#logDropped(line.head, 'too-large');
    this.#outgoing.dropped(line, 'response_too_large');
    this.#health.brokenFrame();
  }

  #logDropped(head: Uint8Array, reason: JunkReason): void {
    withErrorBoundary(() => this.#options.events.junk(head, reason), this.#options.events.fault);
  }

  #write(message: SplicedMessage): void {
    if (this.#isObserved) this.#show('g>s', message);
    this.#options.output.send(message);
  }

  get #isObserved(): boolean {
    return this.#options.feed?.messages.isObserved === true;
  }

  #show(direction: Direction, message: SplicedMessage): void {
    const { feed } = this.#options;
    feed?.messages.passed(direction, message, feed.connection);
  }

  #admit(timeouts: RequestTimeouts, handler: RequestHandler, isCancellable: boolean): PendingRequest | undefined {
    if (this.#closed !== undefined) {
      handler.settle({ kind: 'failed', reason: this.#closed, sent: false });
      return undefined;
    }
    if (this.#options.output.unwrittenBytes > this.#options.maxUnwrittenBytes) {
      handler.settle({ kind: 'failed', reason: 'overloaded', sent: false });
      return undefined;
    }
    return this.#outgoing.add(timeouts, handler, isCancellable, this.#options.output.sentBytes);
  }

  /** Returns whether the message answers a request. */
  #take(message: Envelope | Rejection): boolean {
    switch (message.kind) {
      case 'response':
        return this.#outgoing.answered(message, this.#readAt);
      case 'notification':
        this.#notification(message);
        return false;
      case 'request':
        this.#receiver.request(this.#toServerRequest(message));
        return false;
      case 'rejected':
        return this.#reject(message);
    }
  }

  #notification(notification: NotificationEnvelope): void {
    const { requestId } = notification.tokens;
    if (notification.method === METHODS.progress) {
      this.#outgoing.progressed(notification);
      return;
    }
    // The server cancels its own request, so it no longer waits for the answer.
    if (notification.method === METHODS.cancelled && requestId !== undefined) {
      this.#unanswered.delete(readText(notification.bytes, requestId));
    }
    this.#receiver.notification(notification);
  }

  /** A request of the server, in the form in which the gateway answers it. */
  #toServerRequest(request: RequestEnvelope): ServerRequest {
    const { bytes, tokens } = request;
    if (request.method !== METHODS.ping) this.#unanswered.add(readText(bytes, request.id));
    const id = () => rawId(request);
    return {
      request,
      answer: (response, edits) => {
        const own: Edit = { span: response.id, text: id() };
        this.#reply(request, () => ({ bytes: response.bytes, span: response.span, edits: [own, ...edits] }));
      },
      succeed: (result) => this.#reply(request, () => resultMessage(id(), result)),
      fail: (error) => this.#reply(request, () => errorMessage(id(), error)),
      progress: (notification, edits) => {
        const { requestProgressToken: token } = tokens;
        const span = notification.tokens.progressToken;
        if (token !== undefined && span !== undefined)
          this.notify(notification, [{ span, text: bytes, part: token }, ...edits]);
      },
    };
  }

  #reply({ bytes, id }: RequestEnvelope, message: () => SplicedMessage): void {
    this.#unanswered.delete(readText(bytes, id));
    const canReply =
      this.#closed === undefined && this.#options.output.unwrittenBytes <= this.#options.maxUnwrittenBytes;
    if (canReply) this.#write(message());
    else this.counters.unsentReplies += 1;
  }

  #cancelled({ id }: PendingRequest, notice?: NotificationEnvelope, edits: readonly Edit[] = []): void {
    const requestId = notice?.tokens.requestId;
    if (notice === undefined || requestId === undefined) {
      this.sendNotification(METHODS.cancelled, { requestId: id });
    } else {
      const own: Edit = { span: requestId, ...this.#numbers.write(id) };
      this.#write({ bytes: notice.bytes, span: notice.span, edits: [own, ...edits] });
    }
  }

  #timedOut({ id, isCancellable }: PendingRequest): void {
    if (isCancellable) this.sendNotification(METHODS.cancelled, { requestId: id, reason: 'timed out' });
    // A server that reports progress is busy. It need not answer anything else meanwhile.
    if (!this.#outgoing.isProgressing) this.#health.timedOut();
  }

  #reject(rejection: Rejection): boolean {
    const { reason, bytes, elements = [] } = rejection;
    if (reason === 'blank') return false;
    // Each message of a batch is taken as if it had come alone, whatever becomes of the others. An array without objects is
    // ordinary output.
    if (elements.some((element) => isObject(bytes, element))) {
      let isUseful = false;
      for (const message of messagesOf(rejection, this.#options.scan))
        withErrorBoundary(() => {
          isUseful = this.#take(message) || isUseful;
        }, this.#options.events.fault);
      return isUseful;
    }
    this.counters.junk += 1;
    this.#options.events.junk(bytes, reason);
    if (rejection.id !== undefined && rejection.isAnswer) this.#outgoing.answerMalformed(bytes, rejection.id);
    if (rejection.isMeant) this.#health.brokenFrame();
    else this.#strayBytes += bytes.length;
    return false;
  }
}

/** Reason for which a line of a server is no message. */
type JunkReason = Rejection['reason'] | 'result-not-an-object' | 'too-large' | 'memory-limit';

export interface BridgeEvents extends HealthEvents {
  /** The server sends a request. */
  request(request: ServerRequest): void;
  /** The server sends a notification other than progress, which the bridge delivers itself. */
  notification(notification: NotificationEnvelope): void;
  /** The server writes a line that is no message. It belongs in the server's log only. */
  junk(line: Uint8Array, reason: JunkReason): void;
  /** A handler threw. The error affects only the message that it was called for. Without a listener it is thrown on. */
  readonly fault?: OnInternalError;
}

export interface BridgeOptions extends Pick<LineDecoderOptions, 'unfinishedLines' | 'bufferPool'> {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** The server's stdin. */
  readonly output: TrackedSink;
  readonly events: BridgeEvents;
  /** The longest line that the server may write, in bytes. */
  readonly maxFrameBytes: number;
  /** Requests fail as `overloaded` while more bytes than this wait for the server to read them. */
  readonly maxUnwrittenBytes: number;
  /** Whether Trunkline reads nothing from the server at the moment. */
  readonly isPaused?: () => boolean;
  /** Tells how long the server was not read because it floods the gateway. */
  readonly flood?: Pick<FloodBound, 'pausedMs'>;
  /** Shows the messages of this connection to recordings. */
  readonly feed?: { readonly messages: MessageFeed; readonly connection: FeedConnection };
}

const NOTHING = new Uint8Array(0);
