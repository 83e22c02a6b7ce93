import type { Backpressure, ClientBackpressure } from '../../io/streams/backpressure.js';
import type { SplicedMessage } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';
import { type Envelope, type Rejection, rejectionReply, type ScanEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { EraSessions } from '../era-sessions.js';
import type { ChooseEra, ReplyChannel, TransportSession } from '../transport.js';
import { onOneLine } from './event-frame.js';
import { type HttpClientSession, type HttpSessionPort, type Received, viewAt } from './http-session.js';
import { UnsolicitedBuffer } from './unsolicited-buffer.js';

export interface HttpClientsOptions {
  readonly scan: ScanEnvelope;
  readonly chooseEra: ChooseEra;
  readonly backpressure: Backpressure;
  readonly hasServer: (key: string) => boolean;
  readonly hasView: (name: string) => boolean;
  /** Whether the first start of every server has ended. */
  readonly isReady: () => boolean;
}

/** Opens the sessions behind the HTTP endpoints: `/mcp` serves all servers, `/mcp/<key>` one, `/mcp/v/<name>` a view. */
export function createHttpClients(options: HttpClientsOptions): HttpSessionPort {
  const { scan, chooseEra, backpressure, hasServer, hasView, isReady } = options;
  return {
    isReady,
    beginsSession: (message) => chooseEra(message).beginsSession(message),
    refusalWithoutSession: (request) => chooseEra(request).refusalWithoutSession(request.method),
    openSession: (endpoint, principal, onGone) => {
      const view = viewAt(endpoint);
      const server = view === undefined ? endpoint : undefined;
      if ((view !== undefined && !hasView(view)) || (server !== undefined && !hasServer(server))) return undefined;
      return new HttpClient({ scan, chooseEra, backpressure, server, view, principal, onGone });
    },
  };
}

interface HttpClientOptions extends Pick<HttpClientsOptions, 'scan' | 'chooseEra' | 'backpressure'> {
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
  }

  get revision(): string | undefined {
    return this.#sessions.revision;
  }

  get isListening(): boolean {
    return this.#stream !== undefined;
  }

  receive(body: Uint8Array, reply: ReplyChannel): Received {
    const message = this.#scan(body);
    if (message.kind !== 'rejected') {
      // A client without a GET stream gets the server requests of its tasks when it waits for a task's result.
      if (message.kind === 'request' && message.method === METHODS.taskResult) this.#unsolicited.flushTo(reply);
      return { answers: this.#sessions.of(message).receive(message, reply) ? 1 : 0 };
    }
    if (message.reason !== 'batch') return { refused: rejectionReply(message) };
    return this.#sessions.of(message).receiveBatch(message, () => reply);
  }

  attach(stream: MessageSink | undefined): void {
    this.#stream = stream;
    if (stream !== undefined) this.#unsolicited.flushTo(stream);
  }

  send(message: SplicedMessage): void {
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

  /** Servers read one message a line, so a body with line breaks is written on one line before it is relayed. */
  #scan(body: Uint8Array): Envelope | Rejection {
    const { scan } = this.#options;
    const scanned = scan(body);
    if (scanned.kind === 'rejected' && scanned.reason !== 'batch') return scanned;
    const line = onOneLine(body);
    return line === body ? scanned : scan(line);
  }
}
