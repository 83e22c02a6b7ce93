import {
  type Dialed,
  type Dialer,
  type DialTarget,
  newDropCounters,
  type RequestHandler,
  type RequestTimeouts,
  type SentRequest,
  type ServerRequest,
  type UpstreamConnection,
  type UpstreamListener,
} from '../../src/upstream/upstream-connection.js';
import type { Edit, SplicedMessage, TokenText } from '../../src/wire/json/splice.js';
import { notificationMessage, requestMessage, resultMessage, rpcErrorMessage } from '../../src/wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../src/wire/mcp/envelope.js';
import { declares } from '../../src/wire/mcp/handshake.js';
import type { CloseReason, Outcome } from '../../src/wire/mcp/outcome.js';
import type { RelayedRequest } from '../../src/wire/mcp/relayed-request.js';
import type { Cancel, Clock } from '../../src/wire/timing/clock.js';
import { type PeerScript, ScriptedPeer } from './scripted-peer.js';
import { bytesOf, lineOf, type Message, type RecordingSink, scan } from './wire.js';

/** A listener for tests that do not look at what the server sends by itself. */
export const SILENT_LISTENER: UpstreamListener = {
  handshakeStarted: () => {},
  request: () => {},
  notification: () => {},
  suspected: () => {},
  cleared: () => {},
  unfit: () => {},
  closed: () => {},
  lost: () => {},
};

export interface InMemoryOptions extends PeerScript {
  readonly clock: Clock;
}

/**
 * A scripted server in the test's own process, without a process or a pipe of its own. It implements the upstream port a
 * second time and shares no code with the stdio bridge, so a test that passes with it needs nothing but the port.
 */
export class InMemoryUpstream extends ScriptedPeer implements Dialer {
  readonly #clock: Clock;
  #open: { readonly connection: InMemoryConnection; readonly listener: UpstreamListener } | undefined;

  constructor({ clock, ...script }: InMemoryOptions) {
    super(script);
    this.#clock = clock;
  }

  dial({ generation, profile }: Pick<DialTarget, 'generation' | 'profile'>, listener: UpstreamListener): Dialed {
    const { received, initializeResult } = this;
    const facts = { clock: this.#clock, received, generation, initializeResult, listener };
    const connection = new InMemoryConnection(facts);
    this.#open = { connection, listener };
    return {
      pid: undefined,
      connection: profile.then(({ protocolVersion = '2025-11-25' }) => {
        connection.requestedRevision = protocolVersion;
        if (connection.isClosed) return { kind: 'failed', reason: 'closed before the handshake' };
        listener.handshakeStarted();
        return { kind: 'open', connection };
      }),
      end: async () => connection.close('stopped'),
    };
  }

  override async connect(generation = 1, listener: Partial<UpstreamListener> = {}): Promise<UpstreamConnection> {
    const profile = Promise.resolve({ clientInfo: {}, capabilities: {} });
    const outcome = await this.dial({ generation, profile }, { ...SILENT_LISTENER, ...listener }).connection;
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    return outcome.connection;
  }

  override get connection(): UpstreamConnection {
    return this.#opened.connection;
  }

  override say(...messages: (Message | string)[]): void {
    for (const message of messages) this.#opened.connection.receive(lineOf(message).subarray(0, -1));
  }

  /** The server ends by itself. */
  exit(code = 0): void {
    const { connection, listener } = this.#opened;
    connection.close('exited');
    listener.closed({ code, signal: null });
  }

  get #opened() {
    if (this.#open === undefined) throw new Error('Nobody has connected');
    return this.#open;
  }
}

interface InMemoryFacts {
  readonly clock: Clock;
  readonly received: RecordingSink;
  readonly generation: number;
  readonly initializeResult: Message;
  readonly listener: UpstreamListener;
}

/** Requests fail as overloaded while the server has more unread bytes than this. */
const MAX_UNREAD_BYTES = 1024 * 1024;

class InMemoryConnection implements UpstreamConnection {
  readonly generation: number;
  readonly revision: string;
  requestedRevision = '';
  readonly initializeResult: Uint8Array;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly instructions: string | undefined;
  readonly serverInfo: UpstreamConnection['serverInfo'];
  readonly counters = newDropCounters();
  readonly #clock: Clock;
  readonly #received: RecordingSink;
  readonly #listener: UpstreamListener;
  readonly #inFlight = new Map<number, InMemoryRequest>();
  /** Requests that were cancelled or timed out, whose answers are late. */
  readonly #abandoned = new Set<number>();
  /** Answered requests whose progress is still reported. */
  readonly #tasks = new Map<number, InMemoryRequest>();
  /** Ids of the server's own requests that nobody has answered. */
  readonly #unanswered = new Set<string>();
  #lastId = 0;
  #closed: CloseReason | undefined;

  constructor({ clock, received, generation, initializeResult, listener }: InMemoryFacts) {
    const { protocolVersion, capabilities, instructions, serverInfo } = initializeResult;
    this.generation = generation;
    this.revision = protocolVersion;
    this.initializeResult = bytesOf(JSON.stringify(initializeResult));
    this.capabilities = capabilities;
    this.instructions = instructions;
    this.serverInfo = { title: serverInfo?.title, description: serverInfo?.description };
    this.#clock = clock;
    this.#received = received;
    this.#listener = listener;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  readonly pausedMs = 0;

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  offers(capability: string): boolean {
    return declares(this.capabilities, capability);
  }

  send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined {
    return this.#send((id) => request.message(textOf(id), edits), timeouts, handler);
  }

  notify({ bytes, span }: NotificationEnvelope, edits: readonly Edit[] = []): void {
    this.#write({ bytes, span, edits });
  }

  request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome> {
    return new Promise((settle) => {
      this.#send((id) => requestMessage(id, method, params), timeouts, { settle });
    });
  }

  close(reason: CloseReason, because?: string): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    const reachedBytes = this.#received.close();
    for (const [id, { position }] of this.#inFlight)
      this.#end(id, { kind: 'failed', reason, sent: position < reachedBytes, because });
  }

  /** Takes one line of the server. */
  receive(line: Uint8Array): void {
    if (this.#closed !== undefined) return;
    const message = scan(line);
    if (message.kind === 'rejected') this.counters.junk += 1;
    else if (message.kind === 'response') this.#answered(message);
    else if (message.kind === 'request') this.#requested(message);
    else if (message.method === 'notifications/progress') this.#progressed(message);
    else this.#notified(message);
  }

  #send(
    message: (id: number) => SplicedMessage,
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined {
    const isOverloaded = this.#received.unwrittenBytes > MAX_UNREAD_BYTES;
    const refusal = this.#closed ?? (isOverloaded ? 'overloaded' : undefined);
    if (refusal !== undefined) {
      handler.settle({ kind: 'failed', reason: refusal, sent: false });
      return undefined;
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const request = new InMemoryRequest(this.#clock, timeouts, handler, () => this.#timedOut(id));
    request.position = this.#received.sentBytes;
    this.#inFlight.set(id, request);
    this.#write(message(id));
    handler.lease?.release();
    return {
      sentAt: request.sentAt,
      cancel: (notice, edits) => this.#cancel(id, notice, edits),
      keepProgress: () => {
        this.#tasks.set(id, request);
        return () => this.#tasks.delete(id);
      },
    };
  }

  #answered(response: ResponseEnvelope): void {
    const id = JSON.parse(tokenAt(response, response.id));
    const at = this.#clock.now();
    if (this.#inFlight.has(id)) this.#end(id, { kind: 'answered', response, at });
    else if (this.#abandoned.delete(id)) this.counters.late += 1;
    else if (Number.isInteger(id) && id > 0 && id <= this.#lastId) this.counters.duplicate += 1;
    else this.counters.unknown += 1;
  }

  #requested(request: RequestEnvelope): void {
    if (request.method !== 'ping') this.#unanswered.add(tokenAt(request, request.id));
    this.#listener.request(this.#serverRequest(request));
  }

  #serverRequest(request: RequestEnvelope): ServerRequest {
    const id = tokenAt(request, request.id);
    const answer = (message: SplicedMessage) => {
      this.#unanswered.delete(id);
      if (this.#closed !== undefined) this.counters.unsentReplies += 1;
      else this.#write(message);
    };
    return {
      request,
      answer: ({ bytes, span, id: place }, edits) =>
        answer({ bytes, span, edits: [{ span: place, text: bytesOf(id) }, ...edits] }),
      succeed: (result) => answer(resultMessage(bytesOf(id), result)),
      fail: (error) => answer(rpcErrorMessage(bytesOf(id), error)),
      progress: (notification, edits) => {
        const { requestProgressToken: token } = request.tokens;
        const span = notification.tokens.progressToken;
        if (token === undefined || span === undefined) return;
        this.notify(notification, [{ span, text: bytesOf(tokenAt(request, token)) }, ...edits]);
      },
    };
  }

  #progressed(notification: NotificationEnvelope): void {
    const { progressToken, progress } = notification.tokens;
    const id = progressToken === undefined ? undefined : JSON.parse(tokenAt(notification, progressToken));
    const request = this.#inFlight.get(id) ?? this.#tasks.get(id);
    const value = progress === undefined ? Number.NaN : Number(tokenAt(notification, progress));
    if (request?.progress(notification, value) !== true) this.counters.staleProgress += 1;
  }

  #notified(notification: NotificationEnvelope): void {
    const { requestId } = notification.tokens;
    const isCancel = notification.method === 'notifications/cancelled' && requestId !== undefined;
    if (isCancel) this.#unanswered.delete(tokenAt(notification, requestId));
    this.#listener.notification(notification);
  }

  #timedOut(id: number): void {
    const request = this.#inFlight.get(id);
    if (request === undefined) return;
    if (this.#unanswered.size > 0 && this.#clock.now() < request.endsAt) {
      request.prolong();
      return;
    }
    this.#abandon(id, 'timeout');
    this.#write(notificationMessage('notifications/cancelled', { requestId: id, reason: 'timed out' }));
  }

  #cancel(id: number, notice: NotificationEnvelope | undefined, edits: readonly Edit[] = []): void {
    if (!this.#inFlight.has(id)) return;
    this.#abandon(id, 'cancelled');
    const place = notice?.tokens.requestId;
    if (notice === undefined || place === undefined) {
      this.#write(notificationMessage('notifications/cancelled', { requestId: id }));
    } else {
      this.notify(notice, [{ span: place, text: bytesOf(String(id)) }, ...edits]);
    }
  }

  #abandon(id: number, reason: 'timeout' | 'cancelled'): void {
    this.#abandoned.add(id);
    this.#end(id, { kind: 'failed', reason, sent: true });
  }

  #end(id: number, outcome: Outcome): void {
    const request = this.#inFlight.get(id);
    this.#inFlight.delete(id);
    request?.settle(outcome);
  }

  #write(message: SplicedMessage): void {
    if (this.#closed === undefined) this.#received.send(message);
  }
}

/** A request that waits for its answer, with a timer of its own. */
class InMemoryRequest {
  /** Bytes that were sent to the server before it. */
  position = 0;
  readonly sentAt: number;
  readonly #clock: Clock;
  readonly #timeouts: RequestTimeouts;
  readonly #handler: RequestHandler;
  readonly #onTimeout: () => void;
  #lastProgress: number;
  #cancelTimer: Cancel;
  #isSettled = false;

  constructor(clock: Clock, timeouts: RequestTimeouts, handler: RequestHandler, onTimeout: () => void) {
    this.sentAt = clock.now();
    this.#clock = clock;
    this.#timeouts = timeouts;
    this.#handler = handler;
    this.#onTimeout = onTimeout;
    this.#lastProgress = handler.progressed ?? Number.NEGATIVE_INFINITY;
    this.#cancelTimer = this.#schedule(timeouts.firstMs ?? timeouts.idleMs);
  }

  get endsAt(): number {
    return this.sentAt + this.#timeouts.maxMs;
  }

  prolong(): void {
    this.#cancelTimer();
    if (!this.#isSettled) this.#cancelTimer = this.#schedule(this.#timeouts.idleMs);
  }

  progress(notification: NotificationEnvelope, value: number): boolean {
    this.prolong();
    if (!(value > this.#lastProgress)) return false;
    this.#lastProgress = value;
    this.#handler.progress?.(notification, value);
    return true;
  }

  settle(outcome: Outcome): void {
    this.#isSettled = true;
    this.#cancelTimer();
    this.#handler.settle(outcome);
  }

  #schedule(ms: number): Cancel {
    return this.#clock.schedule(Math.min(ms, this.endsAt - this.#clock.now()), this.#onTimeout);
  }
}

function textOf(id: number): TokenText {
  const text = bytesOf(String(id));
  return { text, part: { start: 0, end: text.length } };
}

function tokenAt({ bytes }: { readonly bytes: Uint8Array }, { start, end }: { start: number; end: number }): string {
  return Buffer.from(bytes.subarray(start, end)).toString();
}
