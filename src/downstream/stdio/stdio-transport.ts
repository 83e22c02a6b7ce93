import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { type OnInternalError, reportInternalError } from '../../host/errors/internal-error.js';
import type { BufferPool } from '../../wire/io/buffer-pool.js';
import type { ByteReader } from '../../wire/io/byte-reader.js';
import { type DroppedLineSink, LineDecoder } from '../../wire/io/line-decoder.js';
import type { FeedConnection, MessageFeed } from '../../wire/io/message-feed.js';
import type { FairMemory } from '../../wire/io/shared-limit.js';
import type { Backpressure } from '../../wire/io/streams/backpressure.js';
import { FairWriter } from '../../wire/io/streams/fair-writer.js';
import { inMicrotask } from '../../wire/io/streams/line-writer.js';
import { clientPace, TurnReader } from '../../wire/io/streams/turn-reader.js';
import { type SplicedMessage, splice, splicedLength } from '../../wire/json/splice.js';
import {
  batchMessage,
  type MessageSink,
  NULL_ID,
  RPC_CODES,
  RpcError,
  rpcErrorMessage,
} from '../../wire/jsonrpc/message.js';
import { type MessageEnds, readMessageEnds } from '../../wire/jsonrpc/message-ends.js';
import type { Envelope, Rejection, ScanEnvelope } from '../../wire/mcp/envelope.js';
import type { ClientProfile } from '../../wire/mcp/handshake.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { ClientOrigin } from '../port.js';
import {
  type ChooseEra,
  EraSessions,
  type ReplyChannel,
  type TransportClient,
  type TransportSession,
} from '../transport.js';

export interface StdioTransportOptions extends StdioService {
  /** Begins to pass all bytes of the client to the reader. Returns the stream of these bytes. */
  readonly read: (reader: ByteReader) => Readable;
  readonly output: Writable;
  /** Wraps the sink of the client, if lines are numbered. */
  readonly framing?: ((sink: MessageSink) => Framing) | undefined;
  /** The client closed stdin. It may still wait for answers. Called at most once, before `onEnd`. */
  readonly onInputEnd?: () => void;
  /** The client closed stdin and has all answers, or stdout broke, or the transport was closed. Called once. */
  readonly onEnd: () => void;
  /** Reports that the session of a client that does not read was closed. Its pipes stay open. Called once. */
  readonly onUnread?: (unwrittenBytes: number) => void;
}

export interface StdioService extends PipeEnd {
  /** Pauses the servers while the client does not read, unless another client still reads. */
  readonly backpressure: Backpressure;
  readonly maxLineBytes: number;
  /** Limit of the unfinished lines of all servers and clients together. */
  readonly unfinishedLines?: FairMemory;
  readonly bufferPool?: BufferPool;
  readonly clock: Clock;
  /** Runs a task in the next turn of the event loop. Present if other clients wait while this one is read. */
  readonly nextTurn?: (task: () => void) => void;
  /** The client's first message was received. Called once. */
  readonly onFirstMessage?: () => void;
}

/** Form of the messages for a client that must know which of its lines a message answers. */
export interface Framing {
  readonly openReply: ClientPipeOptions['openReply'];
  readonly firstRequestId: number | undefined;
  readonly sink: MessageSink;
  /** Writes bytes that the other side skips. */
  readonly probe: () => void;
}

export interface StdioTransport {
  readonly inFlight: number;
  /** Whether the client has sent something after it could read an answer. A list of messages from a file never does. */
  readonly isLive: boolean;
  /** Name, version and capabilities of the client; `undefined` before the client stated them. */
  readonly profile: ClientProfile | undefined;
  /** The client's revision; `undefined` before the client stated it. */
  readonly revision: string | undefined;
  /**
   * Finds out whether the client still reads stdout, which only a write to the pipe shows. Writes a space, which JSON
   * allows before a message, unless a message is being written. If the client has left, `onEnd` follows.
   */
  probe(): void;
  /** Cancels the requests that were not answered. Calling it again does nothing. */
  close(): void;
  /** Calls back once all messages are written, or cannot be written any more. */
  whenAllWritten(onAllWritten: () => void): void;
}

/** Serves the one client at the other end of stdin and stdout. */
export function openStdioTransport(options: StdioTransportOptions): StdioTransport {
  const { output, maxLineBytes, unfinishedLines, bufferPool, onEnd, onInputEnd } = options;
  const { scan, chooseEra, principal, onInternalError, origin, view, messages } = options;
  const backpressure = options.backpressure.client();
  const onUnread = (unwrittenBytes: number) => {
    client.close();
    options.onUnread?.(unwrittenBytes);
  };
  const sink = new FairWriter(output, backpressure, {
    onUnread,
    input: { pause: () => flow.pause(), resume: () => flow.resume() },
  });
  const framing = options.framing?.(sink);
  const { openReply, firstRequestId } = framing ?? {};
  const client = new ClientPipe({
    scan,
    chooseEra,
    principal,
    onInternalError,
    origin,
    view,
    messages,
    sink: framing?.sink ?? sink,
    openReply,
    firstRequestId,
  });
  let hasEnded = false;
  const end = () => {
    if (hasEnded) return;
    hasEnded = true;
    decoder.end();
    client.close();
    backpressure.close();
    onEnd();
  };
  const inputEnded = () => {
    if (hasEnded) return;
    decoder.end();
    onInputEnd?.();
    client.whenAllAnswered(() => sink.whenAllWritten(end));
  };
  let { onFirstMessage } = options;
  const line = (bytes: Uint8Array, start: number, end: number) => {
    client.receive(bytes, start, end);
    onFirstMessage?.();
    onFirstMessage = undefined;
  };
  const dropped: DroppedLineSink = {
    oversized: (line) => {
      if (!line.isEvicted) client.refuseLine(line, tooLarge(maxLineBytes));
      // The line was answered when it was dropped, but without its id if only the end of the line shows the id.
      else if (!hasId(beginningOf(line.head)) && hasId(line)) client.refuseLine(line, WHY_EVICTED);
      client.lineDropped();
    },
    evicted: (head) => client.refuseLine(beginningOf(head), WHY_EVICTED),
  };
  const decoder = new LineDecoder({ sink: { line }, dropped, maxLineBytes, unfinishedLines, bufferPool });
  const { clock, nextTurn } = options;
  const turns = nextTurn && new TurnReader(decoder, { stream: () => input, clock, pace: clientPace(nextTurn) });
  const input = options.read(turns ?? decoder);
  const flow = turns ?? input;
  input.once('end', inputEnded);
  input.once('error', inputEnded);
  // EPIPE means that the client has left, which is not an error of the gateway.
  output.on('error', end);
  // A terminal does not go away, and a file has no reader.
  const isPipe = output instanceof Socket && !('isTTY' in output);
  return {
    get inFlight() {
      return client.inFlight;
    },
    get isLive() {
      return client.isLive;
    },
    get profile() {
      return client.profile;
    },
    get revision() {
      return client.revision;
    },
    probe: () => {
      if (hasEnded || sink.unwrittenBytes > 0) return;
      if (framing !== undefined) framing.probe();
      else if (isPipe) output.write(' ');
    },
    close: end,
    whenAllWritten: (onAllWritten) => sink.whenAllWritten(onAllWritten),
  };
}

function beginningOf(head: Uint8Array): MessageEnds {
  return { head, tail: new Uint8Array(0) };
}

function hasId(ends: MessageEnds): boolean {
  return readMessageEnds(ends).id !== undefined;
}

function tooLarge(maxLineBytes: number): string {
  return `The message was not read and had no effect: it is larger than the limit of ${maxLineBytes} bytes. Send less at once`;
}

const WHY_EVICTED =
  'The message was dropped before its end: it was the largest of the unfinished messages, whose limit gateway.maxPartial is reached. Send it again';

/** A client on a pipe, and the parts that serve it. */
interface PipeEnd extends TransportClient {
  readonly scan: ScanEnvelope;
  readonly chooseEra: ChooseEra;
  readonly messages?: MessageFeed | undefined;
  /** Reports internal errors, each of which fails one message. Without this function, errors are thrown to the caller. */
  readonly onInternalError?: OnInternalError | undefined;
}

export interface ClientPipeOptions extends PipeEnd {
  readonly sink: MessageSink;
  /**
   * Opens the channel for the messages that a line of the client causes. The channel must pass them on to `pipe`, which
   * is also the channel without this option. `message` is absent for a dropped line.
   */
  readonly openReply?: ((pipe: PipeReply, message?: Envelope | Rejection) => ReplyChannel) | undefined;
  /** Called when the session has nothing left to serve. */
  readonly onGone?: (() => void) | undefined;
}

/** The channel of every line of a client. */
export interface PipeReply extends ReplyChannel {
  /** Shows the recordings a message that goes to the client in another way than `send` and `answer`. */
  passing(message: SplicedMessage): void;
}

/** One client on a duplex byte stream, such as stdin and stdout. Each line in either direction is one message. */
export class ClientPipe implements TransportSession, PipeReply {
  readonly isShared = true;
  readonly isDisconnected = false;
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
  /** Whether an answer was sent before the line that is being read arrived. */
  #isAnswered = false;
  #isLive = false;

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

  get profile(): ClientProfile | undefined {
    return this.#sessions.profile;
  }

  get inFlight(): number {
    return this.#sessions.inFlight;
  }

  get isLive(): boolean {
    return this.#isLive;
  }

  /** Takes one line from the client: all of the bytes, or those from `start` to `end`. */
  receive(bytes: Uint8Array, start = 0, end = bytes.length): void {
    if (this.#sessions.isClosed) return;
    if (this.#isAnswered) this.#isLive = true;
    // Catches errors in place, because a function for each message would cost more than the check.
    try {
      if (this.#messages?.isObserved)
        this.#messages.passed('c>g', { bytes, span: { start, end }, edits: [] }, this.#connection);
      const message = this.#options.scan(bytes, start, end);
      const line = this.#openReply?.(this, message) ?? this;
      if (message.kind === 'rejected' && message.reason === 'blank') {
        line.withdraw();
        return;
      }
      const openReply = (answers: number, isBatch: boolean) => (isBatch ? new BatchReply(line, answers) : line);
      const refusal = this.#sessions.receive(message, openReply);
      if (refusal !== undefined) line.answer(refusal);
    } catch (error) {
      reportInternalError(error, this.#options.onInternalError);
    }
  }

  /**
   * Answers the request in a dropped line, if the ends of the line show its id. If the ends show that the line is the
   * client's answer to a server request, that server request fails instead. `message` is the text of the error.
   */
  refuseLine(ends: MessageEnds, message: string): void {
    const { kind, id } = readMessageEnds(ends);
    const refused = kind === 'request' ? id : undefined;
    this.send(rpcErrorMessage(refused ?? NULL_ID, new RpcError(RPC_CODES.invalidRequest, message)));
    if (kind !== 'response' || id === undefined) return;
    const lost = new RpcError(RPC_CODES.internalError, `The client's answer is lost. ${message}`);
    const answer = this.#options.scan(splice(rpcErrorMessage(id, lost)));
    if (answer.kind === 'response') this.#sessions.of(answer).receive(answer, this);
  }

  /** Reports the end of a dropped line. Called once, after `refuseLine` if the line was refused. */
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

  close(): void {
    this.#onAllAnswered = undefined;
    this.#sessions.close();
  }

  #settled(): void {
    // The lines of one read are taken in one turn.
    if (!this.#isAnswered)
      inMicrotask(() => {
        this.#isAnswered = true;
      });
    const onAllAnswered = this.#onAllAnswered;
    if (onAllAnswered === undefined || this.inFlight > 0) return;
    this.#onAllAnswered = undefined;
    onAllAnswered();
  }
}

/** Limit of the collected answers in bytes. Beyond it, they are sent as an array of their own. */
const MAX_COLLECTED_BYTES = 16 * 1024 * 1024;

/** Collects the answers to a batch and sends them as one array after the last one. Other messages are sent at once. */
export class BatchReply implements ReplyChannel {
  readonly isShared = true;
  readonly isDisconnected = false;
  readonly #reply: ReplyChannel;
  #missing: number;
  #collected: SplicedMessage[] = [];
  #collectedBytes = 0;

  /** `answers` includes answers that are withdrawn later. */
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
