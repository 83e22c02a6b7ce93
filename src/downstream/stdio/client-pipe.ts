import { type OnInternalError, reportInternalError } from '../../errors/internal-error.js';
import type { FeedConnection, MessageFeed } from '../../io/message-feed.js';
import { type SplicedMessage, splice, splicedLength } from '../../json/splice.js';
import { batchMessage } from '../../jsonrpc/batch.js';
import { errorMessage, type MessageSink, NULL_ID } from '../../jsonrpc/message.js';
import { type MessageEnds, readMessageEnds } from '../../jsonrpc/message-ends.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { Envelope, Rejection, ScanEnvelope } from '../../mcp/envelope.js';
import type { ClientOrigin } from '../port.js';
import { type ChooseEra, EraSessions, type ReplyChannel, type TransportSession } from '../transport.js';

export interface ClientPipeOptions extends Omit<TransportSession, 'isListening' | 'send' | 'gone'> {
  readonly scan: ScanEnvelope;
  readonly chooseEra: ChooseEra;
  /** Writes to the client. */
  readonly sink: MessageSink;
  /**
   * Opens the channel for the messages that a line of the client causes. It must pass them on to `pipe`, which is the channel
   * of every line without this option. `message` is absent for a line that was dropped.
   */
  readonly openReply?: ((pipe: PipeReply, message?: Envelope | Rejection) => ReplyChannel) | undefined;
  /** Called when the session has nothing left to serve. */
  readonly onGone?: (() => void) | undefined;
  /** Shows the messages to recordings. */
  readonly messages?: MessageFeed | undefined;
  /** Reports internal errors, each of which fails one message. Without it they are thrown to the caller. */
  readonly onInternalError?: OnInternalError | undefined;
}

/** The channel of every line of a client. */
export interface PipeReply extends ReplyChannel {
  /** Shows recordings a message that goes to the client without `send` and `answer`. */
  passing(message: SplicedMessage): void;
}

/** One client on a duplex byte stream, such as stdin and stdout. Each line in either direction is one message. */
export class ClientPipe implements TransportSession, PipeReply {
  readonly isShared = true;
  readonly isUnheard = false;
  readonly isListening = true;
  readonly principal: string;
  readonly server: string | undefined;
  readonly view: string | undefined;
  readonly origin: ClientOrigin | undefined;
  readonly firstRequestId: number | undefined;
  readonly #options: ClientPipeOptions;
  readonly #sink: MessageSink;
  readonly #sessions: EraSessions;
  readonly #messages: MessageFeed | undefined;
  readonly #connection: FeedConnection;
  readonly #openReply: ClientPipeOptions['openReply'];
  #onAllAnswered: (() => void) | undefined;

  constructor(options: ClientPipeOptions) {
    this.#options = options;
    this.#sink = options.sink;
    this.principal = options.principal;
    this.server = options.server;
    this.view = options.view;
    this.firstRequestId = options.firstRequestId;
    this.#openReply = options.openReply;
    this.origin = options.origin;
    this.#sessions = new EraSessions(options.chooseEra, this);
    this.#messages = options.messages;
    const client = () => this.profile?.clientInfo;
    this.#connection = { number: options.messages?.nextConnection() ?? 0, server: options.server, client };
  }

  get revision(): string | undefined {
    return this.#sessions.revision;
  }

  /** Name, version and capabilities of the client; `undefined` before the client stated them. */
  get profile(): ClientProfile | undefined {
    return this.#sessions.profile;
  }

  /** Requests that were not answered yet. */
  get inFlight(): number {
    return this.#sessions.inFlight;
  }

  /** Takes one line from the client: all of the bytes, or those from `start` to `end`. */
  receive(bytes: Uint8Array, start = 0, end = bytes.length): void {
    if (this.#sessions.isClosed) return;
    // Errors are caught in place: a function for each message would cost more than the check.
    try {
      if (this.#messages?.isObserved)
        this.#messages.passed('c>g', { bytes, span: { start, end }, edits: [] }, this.#connection);
      const message = this.#options.scan(bytes, start, end);
      const line = this.#openReply?.(this, message) ?? this;
      if (message.kind === 'rejected' && message.reason === 'blank') return;
      const openReply = (answers: number, isBatch: boolean) => (isBatch ? new BatchReply(line, answers) : line);
      const refusal = this.#sessions.receive(message, openReply);
      if (refusal !== undefined) line.answer(refusal);
    } catch (error) {
      reportInternalError(error, this.#options.onInternalError);
    }
  }

  /**
   * Answers the request in a line that was dropped, if the ends of the line show its id. If they show that the line is the
   * client's answer to a server request, that server request fails instead. `message` is the text of the error.
   */
  refuseLine(ends: MessageEnds, message: string): void {
    const { kind, id } = readMessageEnds(ends);
    const refused = kind === 'request' ? id : undefined;
    this.send(errorMessage(refused ?? NULL_ID, new RpcError(RPC_CODES.invalidRequest, message)));
    if (kind !== 'response' || id === undefined) return;
    const lost = new RpcError(RPC_CODES.internalError, `The client's answer is lost. ${message}`);
    const answer = this.#options.scan(splice(errorMessage(id, lost)));
    if (answer.kind === 'response') this.#sessions.of(answer).receive(answer, this);
  }

  /** Reports the end of a line that was dropped. Called once, after `refuseLine` if the line was refused. */
  lineDropped(): void {
    this.#openReply?.(this).withdraw();
  }

  get unwrittenBytes(): number {
    return this.#sink.unwrittenBytes;
  }

  passing(message: SplicedMessage): void {
    if (this.#messages?.isObserved) this.#messages.passed('g>c', message, this.#connection);
  }

  send(message: SplicedMessage, source?: string): void {
    this.passing(message);
    this.#sink.send(message, source);
  }

  answer(message: SplicedMessage, source?: string): void {
    this.passing(message);
    this.#sink.send(message, source);
    this.#settled();
  }

  withdraw(): void {
    this.#settled();
  }

  onAbandoned(): void {}

  /** Calls back once no request waits for its answer. Only for a client that sends no further request. */
  whenAllAnswered(onAllAnswered: () => void): void {
    this.#onAllAnswered = onAllAnswered;
    this.#settled();
  }

  gone(): void {
    this.#options.onGone?.();
  }

  /** Cancels all requests, because the client has left. */
  close(): void {
    this.#onAllAnswered = undefined;
    this.#sessions.close();
  }

  #settled(): void {
    const onAllAnswered = this.#onAllAnswered;
    if (onAllAnswered === undefined || this.inFlight > 0) return;
    this.#onAllAnswered = undefined;
    onAllAnswered();
  }
}

/** Limit of the collected answers. Beyond it, they are sent as an array of their own. */
const MAX_COLLECTED_BYTES = 16 * 1024 * 1024;

/** Collects the answers to a batch and sends them as one array after the last one. Other messages are sent at once. */
export class BatchReply implements ReplyChannel {
  readonly isShared = true;
  readonly isUnheard = false;
  readonly #reply: ReplyChannel;
  #missing: number;
  #collected: SplicedMessage[] = [];
  #collectedBytes = 0;

  /** `answers` includes those that are withdrawn later. */
  constructor(reply: ReplyChannel, answers: number) {
    this.#reply = reply;
    this.#missing = answers;
  }

  get unwrittenBytes(): number {
    return this.#reply.unwrittenBytes;
  }

  send(message: SplicedMessage, source?: string): void {
    this.#reply.send(message, source);
  }

  answer(message: SplicedMessage): void {
    this.#collected.push(message);
    this.#collectedBytes += splicedLength(message);
    this.#settleOne();
  }

  withdraw(): void {
    this.#settleOne();
  }

  onAbandoned(): void {}

  #settleOne(): void {
    this.#missing -= 1;
    if (this.#missing > 0 && this.#collectedBytes <= MAX_COLLECTED_BYTES) return;
    const collected = this.#collected;
    this.#collected = [];
    this.#collectedBytes = 0;
    if (collected.length > 0) this.#reply.answer(batchMessage(collected));
    else if (this.#missing <= 0) this.#reply.withdraw();
  }
}
