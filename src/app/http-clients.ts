import type { HttpClientSession, HttpFrontPort, Received } from '../downstream/http/http-session.js';
import { acceptBatch } from '../downstream/legacy/batch.js';
import { LegacySession } from '../downstream/legacy/legacy-session.js';
import { rejectionReply } from '../downstream/legacy/rejection-reply.js';
import type { ReplyChannel } from '../downstream/legacy/reply-channel.js';
import { UnsolicitedBuffer } from '../downstream/legacy/unsolicited-buffer.js';
import type { GatewayPort } from '../downstream/port.js';
import type { ClientBackpressure } from '../io/streams/backpressure.js';
import { onOneLine } from '../json/one-line.js';
import type { SplicedMessage } from '../json/splice.js';
import type { MessageSink } from '../jsonrpc/message.js';
import type { Envelope, Rejection } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { IDENTITY } from '../version.js';
import type { Platform } from './platform.js';

export interface HttpClientsOptions {
  readonly platform: Platform;
  readonly gateway: GatewayPort;
  readonly hasServer: (key: string) => boolean;
  /** Whether every server's first start has ended. */
  readonly isReady: () => boolean;
}

/** What the HTTP front is the front of: each session gets the whole gateway, or one server as it is. */
export function createHttpClients({ platform, gateway, hasServer, isReady }: HttpClientsOptions): HttpFrontPort {
  return {
    isReady,
    openSession: (server, principal, onGone) =>
      server === undefined || hasServer(server)
        ? new HttpClient({ platform, gateway, server, principal, onGone })
        : undefined,
  };
}

interface HttpClientOptions {
  readonly platform: Platform;
  readonly gateway: GatewayPort;
  readonly server: string | undefined;
  readonly principal: string;
  readonly onGone: () => void;
}

/** One client's session, whose messages come in POSTs and whose unsolicited ones need a stream that may be missing. */
class HttpClient implements HttpClientSession {
  readonly #platform: Platform;
  readonly #session: LegacySession;
  /** Never pauses, because the streams of a client that does not read are cut. It keeps other clients from pausing. */
  readonly #backpressure: ClientBackpressure;
  #stream: MessageSink | undefined;
  readonly #unsolicited: UnsolicitedBuffer;

  constructor({ platform, gateway, ...who }: HttpClientOptions) {
    this.#platform = platform;
    this.#backpressure = platform.backpressure.client();
    this.#unsolicited = new UnsolicitedBuffer(platform.scan);
    const sink: MessageSink = { unwrittenBytes: 0, send: (message) => this.#send(message) };
    const { onInternalError } = platform.internalErrors;
    this.#session = new LegacySession({ ...platform, onInternalError, gateway, sink, serverInfo: IDENTITY, ...who });
  }

  get revision(): string | undefined {
    return this.#session.revision;
  }

  receive(body: Uint8Array, reply: ReplyChannel): Received {
    const { scan } = this.#platform;
    const message = this.#scan(body);
    if (message.kind !== 'rejected') {
      // A client that does not listen gets the questions of its tasks when it waits for a result.
      if (message.kind === 'request' && message.method === METHODS.taskResult) this.#unsolicited.catchUp(reply);
      return { answers: this.#session.accept(message, reply) ? 1 : 0 };
    }
    if (message.reason !== 'batch') return { refused: rejectionReply(message) };
    return acceptBatch({ batch: message, scan, session: this.#session, replyFor: () => reply });
  }

  attach(stream: MessageSink | undefined): void {
    this.#stream = stream;
    if (stream !== undefined) this.#unsolicited.catchUp(stream);
  }

  close(): void {
    this.#session.close();
    this.#backpressure.close();
  }

  /** To the servers a message is a line: on several it would be several messages, of which none was looked at. */
  #scan(body: Uint8Array): Envelope | Rejection {
    const { scan } = this.#platform;
    const scanned = scan(body);
    if (scanned.kind === 'rejected' && scanned.reason !== 'batch') return scanned;
    const line = onOneLine(body);
    return line === body ? scanned : scan(line);
  }

  #send(message: SplicedMessage): void {
    if (this.#stream === undefined) this.#unsolicited.add(message);
    else this.#stream.send(message);
  }
}
