import type { OnInternalError } from '../../host/errors/internal-error.js';
import { readText } from '../../wire/json/json-text.js';
import { type Edit, NumberWriter, type SplicedMessage, splicedLength } from '../../wire/json/splice.js';
import { rawId } from '../../wire/jsonrpc/envelope-scanner.js';
import {
  notificationMessage,
  requestMessage,
  resultMessage,
  rpcErrorMessage,
  type TrackedSink,
} from '../../wire/jsonrpc/message.js';
import type { Envelope, NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { CloseReason, EndedBecause, Outcome, RequestFailure } from '../../wire/mcp/outcome.js';
import { cancellation, type RelayedRequest } from '../../wire/mcp/relayed-request.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import type { Channel, ChannelReceiver } from '../dialect.js';
import { type HealthEvents, HealthMonitor } from '../health/health-monitor.js';
import {
  newDropCounters,
  type RequestHandler,
  type RequestTimeouts,
  type SentNotification,
  type SentRequest,
  type ServerMessages,
  type ServerRequest,
} from '../upstream-connection.js';
import { type JunkReason, MessageReader, type ReadingOptions } from './message-reader.js';
import { OutgoingRequests, type PendingRequest } from './outgoing-requests.js';

/**
 * Speaks JSON-RPC with one server, for as long as the connection lives. `output` sends messages over the transport. The
 * transport opens a reader (`open`) for each stream of messages from the server.
 *
 * The bridge gives each request its own id, matches answers to requests, and settles each request exactly once: with the
 * answer, a timeout, a cancellation, or the end of the connection. A new connection gets a new bridge, so nothing that
 * belongs to the old one can reach the new one.
 */
export class Bridge implements Channel {
  readonly counters = newDropCounters();
  readonly #options: BridgeOptions;
  readonly #output: TrackedSink;
  readonly #outgoing: OutgoingRequests;
  readonly #held: HeldMessages;
  #heldRequests = 0;
  /** Ids of the server's requests without an answer, as JSON tokens. Pings are left out, because no person answers them. */
  readonly #unanswered = new Set<string>();
  readonly #numbers = new NumberWriter();
  readonly #health: HealthMonitor;
  readonly #readers = new Set<MessageReader>();
  #closed: CloseReason | undefined;
  #receiver: ServerMessages & Partial<ChannelReceiver>;

  constructor(options: BridgeOptions) {
    const { clock, output, events } = options;
    this.#options = options;
    this.#output = output;
    this.#receiver = events;
    this.#health = new HealthMonitor(clock, events);
    this.#held = new HeldMessages(options);
    this.#outgoing = new OutgoingRequests({
      clock,
      counters: this.counters,
      // The server waits for a client's answer, and a person may take long to give it.
      isServerWaiting: () => this.#unanswered.size > 0,
      onCancelled: ({ id }, notice, edits) => this.#write(cancellation(id, this.#numbers, notice, edits)),
      onTimeout: (request) => this.#timedOut(request),
      onSignOfLife: () => this.#health.signOfLife(),
      events,
    });
  }

  get inFlight(): number {
    return this.#outgoing.size + this.#heldRequests;
  }

  /** Whether the connection has ended or was given up. Nothing can be sent anymore. */
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

  /** Opens the reader of a stream with one message a line. `request` is the id of the request that the stream answers. */
  open(request?: number): MessageReader {
    const reader = new MessageReader({
      ...this.#options,
      counters: this.counters,
      outgoing: this.#outgoing,
      health: this.#health,
      isClosed: () => this.isClosed,
      take: (message, at) => this.#take(message, at, request),
    });
    this.#readers.add(reader);
    return reader;
  }

  /** Ends a stream, and drops its unfinished message. */
  end(reader: MessageReader): void {
    reader.end();
    this.#readers.delete(reader);
  }

  isPending(id: number): boolean {
    return this.#outgoing.isPending(id);
  }

  /** Headers of the client's HTTP request that go to the server with a request. */
  passedHeaders(id: number): RequestHandler['passedHeaders'] {
    return this.#outgoing.handlerOf(id)?.passedHeaders;
  }

  /** Fails a request that cannot be answered anymore. `sent` is whether the server may have seen it. */
  fail(id: number, reason: RequestFailure, sent: boolean, because?: EndedBecause): void {
    this.#outgoing.fail(id, reason, sent, because);
  }

  /** Sends a client's request under an id of the bridge's own. */
  send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined {
    if (this.#closed !== undefined) return this.#refuse(handler, this.#closed);
    if (!this.#held.areNeeded) return this.#send(request, edits, timeouts, handler);
    const { start, end } = request.whole ?? request.params ?? NO_SPAN;
    return this.#hold(end - start, timeouts, handler, () => this.#send(request, edits, timeouts, handler));
  }

  #send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): PendingRequest {
    const pending = this.#outgoing.add(timeouts, handler, true, this.#output.sentBytes);
    const message = request.message(this.#numbers.write(pending.id), edits);
    handler.sent?.(message);
    const { lease } = handler;
    // Only large requests have a lease; a copy for each request would cost more than the check.
    this.#write(lease === undefined ? message : { ...message, lease });
    return pending;
  }

  negotiated(revision: string): void {
    this.#output.negotiated?.(revision);
  }

  receive(receiver: ChannelReceiver): void {
    this.#receiver = receiver;
  }

  /** Sends a request of the gateway's own. It is cancelled when it times out, except for `initialize`. */
  request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome> {
    return new Promise((settle) => {
      const handler = { settle };
      const send = () => {
        const isCancellable = method !== METHODS.initialize;
        const pending = this.#outgoing.add(timeouts, handler, isCancellable, this.#output.sentBytes);
        this.#write(requestMessage(pending.id, method, params));
        return pending;
      };
      if (this.#closed !== undefined) this.#refuse(handler, this.#closed);
      else if (this.#held.areNeeded) this.#hold(0, timeouts, handler, send);
      else send();
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
    for (const reader of this.#readers) reader.end();
    this.#held.close();
    this.#outgoing.close(reason, this.#output.close(reason, because), because);
    this.#receiver.closed?.(reason, because);
  }

  #write(message: SplicedMessage): void {
    const { feed } = this.#options;
    if (feed?.messages.isObserved === true) feed.messages.passed('g>s', message, feed.connection);
    this.#output.send(message);
  }

  #refuse(handler: RequestHandler, reason: RequestFailure): undefined {
    handler.settle({ kind: 'failed', reason, sent: false });
  }

  /** Lets a request wait until the server has read more of the earlier messages. Its timeouts begin when it is sent. */
  #hold(
    byteLength: number,
    { firstMs, idleMs }: RequestTimeouts,
    handler: RequestHandler,
    send: () => PendingRequest,
  ): SentRequest | undefined {
    const now = this.#options.clock.now();
    let sent: PendingRequest | undefined;
    const fail = (reason: RequestFailure) => {
      this.#heldRequests -= 1;
      handler.lease?.release();
      this.#refuse(handler, reason);
    };
    const message: HeldMessage = {
      byteLength,
      until: now + (firstMs ?? idleMs),
      send: () => {
        this.#heldRequests -= 1;
        sent = send();
      },
      giveUp: () => fail(this.#closed ?? 'overloaded'),
    };
    if (!this.#held.add(message)) return this.#refuse(handler, 'overloaded');
    this.#heldRequests += 1;
    return {
      get sentAt() {
        return sent?.sentAt ?? now;
      },
      cancel: (...notice) => {
        if (this.#held.delete(message)) fail('cancelled');
        else sent?.cancel(...notice);
      },
      keepProgress: () => sent?.keepProgress() ?? (() => {}),
    };
  }

  /** Takes a message from the stream that answers `request`. Returns whether the message answers a request. */
  #take(message: Envelope, at: number, request: number | undefined): boolean {
    switch (message.kind) {
      case 'response':
        if (message.error !== undefined && this.#options.holdsBack?.(message, request) === true) return true;
        return this.#outgoing.answered(message, at, request);
      case 'notification':
        this.#notification(message);
        return false;
      case 'request':
        this.#receiver.request(this.#toServerRequest(message, request));
        return false;
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

  /** Wraps a request of the server with the functions that answer it. */
  #toServerRequest(request: RequestEnvelope, cause: number | undefined): ServerRequest {
    const { bytes, tokens } = request;
    if (request.method !== METHODS.ping) this.#unanswered.add(readText(bytes, request.id));
    const id = () => rawId(request);
    return {
      request,
      cause: cause === undefined ? undefined : this.#outgoing.handlerOf(cause),
      answer: (response, edits) => {
        const own: Edit = { span: response.id, text: id() };
        this.#reply(request, () => ({ bytes: response.bytes, span: response.span, edits: [own, ...edits] }));
      },
      succeed: (result) => this.#reply(request, () => resultMessage(id(), result)),
      fail: (error) => this.#reply(request, () => rpcErrorMessage(id(), error)),
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
    const giveUp = () => {
      this.counters.unsentReplies += 1;
    };
    if (this.#closed !== undefined) giveUp();
    else if (!this.#held.areNeeded) this.#write(message());
    else {
      const reply = message();
      const send = () => this.#write(reply);
      if (!this.#held.add({ byteLength: splicedLength(reply), until: Number.POSITIVE_INFINITY, send, giveUp }))
        giveUp();
    }
  }

  #timedOut({ id, isCancellable }: PendingRequest): void {
    if (isCancellable) this.sendNotification(METHODS.cancelled, { requestId: id, reason: 'timed out' });
    // A server that reports progress is busy. It need not answer anything else meanwhile.
    if (!this.#outgoing.isProgressing) this.#health.timedOut();
  }
}

const NO_SPAN = { start: 0, end: 0 };

/** Notifications of progress are missing among the messages, because the bridge delivers them itself. */
export interface BridgeEvents extends HealthEvents, ServerMessages {
  /** The server wrote a line that cannot be used. It belongs in the server's log only. */
  junk(line: Uint8Array, reason: JunkReason): void;
  /** A handler threw an error, which affects only its message. Without this listener, the error is thrown again. */
  readonly fault?: OnInternalError;
}

export interface BridgeOptions extends ReadingOptions {
  readonly output: TrackedSink;
  readonly events: BridgeEvents;
  /** Messages wait while the server has more unread bytes than this. Requests fail as `overloaded` if it takes no byte for 5 s. */
  readonly maxUnwrittenBytes: number;
  /** Whether the transport holds an error back, because it may have another meaning. `request` is as in `open`. */
  readonly holdsBack?: (error: ResponseEnvelope, request: number | undefined) => boolean;
  /** Holds the total time for which a flooding server was not read. */
  readonly flood?: { readonly pausedMs: number };
}

/** A message that waits until the server has read more of the messages before it. */
interface HeldMessage {
  readonly byteLength: number;
  /** End of the wait, in milliseconds on the clock. */
  readonly until: number;
  readonly send: () => void;
  /** The server takes nothing, the wait is over, or the connection is closed. */
  readonly giveUp: () => void;
}

interface HeldMessagesOptions {
  readonly clock: Clock;
  readonly output: TrackedSink;
  /** Messages wait while the server has more unread bytes than this. */
  readonly maxUnwrittenBytes: number;
}

/** Limits of the messages that wait for one server, because a server that reads nothing could still send requests without end. */
const MAX_HELD = 1_000;
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** Time after which a server that has taken no byte is considered stuck, in milliseconds. */
const STUCK_MS = 5_000;
const CHECK_EVERY_MS = 20;

/** Messages that wait for a server that reads more slowly than its clients send, in their order. */
class HeldMessages {
  readonly #options: HeldMessagesOptions;
  readonly #messages = new Set<HeldMessage>();
  #bytes = 0;
  #takenBytes = 0;
  #takenAt = 0;
  #cancel: Cancel | undefined;

  constructor(options: HeldMessagesOptions) {
    this.#options = options;
  }

  get areNeeded(): boolean {
    const { output, maxUnwrittenBytes } = this.#options;
    return this.#messages.size > 0 || output.unwrittenBytes > maxUnwrittenBytes;
  }

  /** Returns `false` if too much waits already. */
  add(message: HeldMessage): boolean {
    if (this.#messages.size >= MAX_HELD || this.#bytes + message.byteLength > MAX_HELD_BYTES) return false;
    if (this.#messages.size === 0) this.#takenAt = this.#options.clock.now();
    this.#messages.add(message);
    this.#bytes += message.byteLength;
    this.#cancel ??= this.#options.clock.schedule(CHECK_EVERY_MS, () => this.#check());
    return true;
  }

  /** Removes a message that must not be sent anymore. Returns whether it waited. */
  delete(message: HeldMessage): boolean {
    if (!this.#messages.delete(message)) return false;
    this.#bytes -= message.byteLength;
    return true;
  }

  close(): void {
    this.#cancel?.();
    for (const message of this.#messages) if (this.delete(message)) message.giveUp();
  }

  #check(): void {
    const { clock, output, maxUnwrittenBytes } = this.#options;
    const now = clock.now();
    const taken = output.sentBytes - output.unwrittenBytes;
    if (taken !== this.#takenBytes) this.#takenAt = now;
    for (const message of this.#messages) {
      if (output.unwrittenBytes > maxUnwrittenBytes) break;
      if (this.delete(message)) message.send();
    }
    this.#takenBytes = output.sentBytes - output.unwrittenBytes;
    const isStuck = now - this.#takenAt >= STUCK_MS;
    for (const message of this.#messages)
      if ((isStuck || now >= message.until) && this.delete(message)) message.giveUp();
    this.#cancel = this.#messages.size === 0 ? undefined : clock.schedule(CHECK_EVERY_MS, () => this.#check());
  }
}
