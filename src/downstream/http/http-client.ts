import type { FeedConnection, MessageFeed } from '../../io/message-feed.js';
import type { Backpressure, ClientBackpressure } from '../../io/streams/backpressure.js';
import type { SplicedMessage } from '../../json/splice.js';
import { type MessageSink, whole } from '../../jsonrpc/message.js';
import {
  type Envelope,
  type Rejection,
  type RequestEnvelope,
  rejectionReply,
  type ScanEnvelope,
} from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { EraSessions } from '../era-sessions.js';
import type { MirroredParam } from '../port.js';
import type { ChooseEra, ReplyChannel, TransportSession } from '../transport.js';
import { type HttpClientSession, type HttpSessionPort, type Received, viewAt } from './http-session.js';
import { UnsolicitedBuffer } from './unsolicited-buffer.js';

export interface HttpClientsOptions {
  readonly scan: ScanEnvelope;
  readonly chooseEra: ChooseEra;
  readonly backpressure: Backpressure;
  /** Shows the messages to recordings. */
  readonly messages: MessageFeed;
  readonly hasServer: (key: string) => boolean;
  readonly hasView: (name: string) => boolean;
  /** Whether the first start of every server has ended. */
  readonly isReady: () => boolean;
}

/** Opens the sessions behind the HTTP endpoints: `/mcp` serves all servers, `/mcp/<key>` one, `/mcp/v/<name>` a view. */
export function createHttpClients(options: HttpClientsOptions): HttpSessionPort {
  const { scan, chooseEra, backpressure, messages, hasServer, hasView, isReady } = options;
  return {
    isReady,
    beginsSession: (message) => chooseEra(message, () => false).beginsSession(message),
    isSessionless: (message) => !chooseEra(message, () => false).needsSession,
    refusalWithoutSession: (request) => chooseEra(request, () => false).refusalWithoutSession(request),
    openSession: (endpoint, principal, onGone) => {
      const view = viewAt(endpoint);
      const server = view === undefined ? endpoint : undefined;
      if ((view !== undefined && !hasView(view)) || (server !== undefined && !hasServer(server))) return undefined;
      return new HttpClient({ scan, chooseEra, backpressure, messages, server, view, principal, onGone });
    },
  };
}

interface HttpClientOptions extends Pick<HttpClientsOptions, 'scan' | 'chooseEra' | 'backpressure' | 'messages'> {
  readonly server: string | undefined;
  readonly view: string | undefined;
  readonly principal: string;
  readonly onGone: () => void;
}

/** One client's HTTP session. Unsolicited messages wait in a buffer while the client has no GET stream open. */
class HttpClient implements HttpClientSession, TransportSession {
  readonly principal: string;
  readonly server: string | undefined;
  readonly view: string | undefined;
  readonly #options: HttpClientOptions;
  readonly #sessions: EraSessions;
  readonly #connection: FeedConnection;
  readonly #unsolicited: UnsolicitedBuffer;
  /** Never pauses, because the streams of a client that does not read are cut. It keeps other clients from pausing. */
  readonly #backpressure: ClientBackpressure;
  #stream: MessageSink | undefined;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.principal = options.principal;
    this.server = options.server;
    this.view = options.view;
    this.#unsolicited = new UnsolicitedBuffer(options.scan);
    this.#backpressure = options.backpressure.client();
    this.#sessions = new EraSessions(options.chooseEra, this);
    const client = () => this.#sessions.profile?.clientInfo;
    this.#connection = { number: options.messages.nextConnection(), server: options.server, client };
  }

  get revision(): string | undefined {
    return this.#sessions.revision;
  }

  get isListening(): boolean {
    return this.#stream !== undefined;
  }

  receive(message: Envelope | Rejection, channel: ReplyChannel): Received {
    const { messages } = this.#options;
    const reply = messages.isObserved ? new ObservedReply(channel, messages, this.#connection) : channel;
    if (messages.isObserved) messages.passed('c>g', whole(message.bytes), this.#connection);
    if (message.kind !== 'rejected') {
      // A client without a GET stream gets the server requests of its tasks when it waits for a task's result.
      if (message.kind === 'request' && message.method === METHODS.taskResult) this.#unsolicited.flushTo(reply);
      return { answers: this.#sessions.of(message).receive(message, reply) ? 1 : 0 };
    }
    if (message.reason !== 'batch') return { refused: rejectionReply(message) };
    return this.#sessions.of(message).receiveBatch(message, () => reply);
  }

  mirroredParams(call: RequestEnvelope): readonly MirroredParam[] {
    return this.#sessions.of(call).mirroredParams?.(call) ?? [];
  }

  attach(stream: MessageSink | undefined): void {
    this.#stream = stream;
    if (stream !== undefined) this.#unsolicited.flushTo(stream);
  }

  send(message: SplicedMessage): void {
    const { messages } = this.#options;
    if (messages.isObserved) messages.passed('g>c', message, this.#connection);
    if (this.#stream === undefined) this.#unsolicited.add(message);
    else this.#stream.send(message);
  }

  gone(): void {
    this.#options.onGone();
  }

  close(): void {
    this.#sessions.close();
    this.#backpressure.close();
  }
}

/** Shows what is sent on a channel. There is one for each POST, while somebody observes. */
class ObservedReply implements ReplyChannel {
  readonly isShared: boolean;
  readonly #reply: ReplyChannel;
  readonly #messages: MessageFeed;
  readonly #connection: FeedConnection;

  constructor(reply: ReplyChannel, messages: MessageFeed, connection: FeedConnection) {
    this.isShared = reply.isShared;
    this.#reply = reply;
    this.#messages = messages;
    this.#connection = connection;
  }

  get isUnheard(): boolean {
    return this.#reply.isUnheard;
  }

  get unwrittenBytes(): number {
    return this.#reply.unwrittenBytes;
  }

  send(message: SplicedMessage, source?: string): void {
    this.#messages.passed('g>c', message, this.#connection);
    this.#reply.send(message, source);
  }

  answer(message: SplicedMessage, source?: string): void {
    this.#messages.passed('g>c', message, this.#connection);
    this.#reply.answer(message, source);
  }

  withdraw(): void {
    this.#reply.withdraw();
  }

  onAbandoned(listener: () => void): void {
    this.#reply.onAbandoned(listener);
  }
}
