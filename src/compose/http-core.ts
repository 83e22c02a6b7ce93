import type { HttpClientSession, HttpFrontPort, Received } from '../front/http/http-session.js';
import type { GatewayPort } from '../gateway/gateway-port.js';
import { acceptBatch } from '../gateway/session/batch.js';
import { LegacySession } from '../gateway/session/legacy-session.js';
import { refusalOf } from '../gateway/session/refusal.js';
import type { ReplyChannel } from '../gateway/session/reply-channel.js';
import type { MessageSink } from '../jsonrpc/message.js';
import { onOneLine } from '../jsonrpc/one-line.js';
import type { SplicedMessage } from '../jsonrpc/splice.js';
import type { Envelope, Rejection } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { IDENTITY } from '../version.js';
import { MissedMessages } from './missed-messages.js';
import type { Platform } from './platform.js';

export interface HttpCoreOptions {
  readonly platform: Platform;
  readonly gateway: GatewayPort;
  readonly hasServer: (key: string) => boolean;
  /** Whether every server's first start has ended. */
  readonly isReady: () => boolean;
}

/** What the HTTP front is the front of: each session gets the whole gateway, or one server as it is. */
export function createHttpCore({ platform, gateway, hasServer, isReady }: HttpCoreOptions): HttpFrontPort {
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
  #stream: MessageSink | undefined;
  readonly #missed: MissedMessages;

  constructor({ platform, gateway, ...who }: HttpClientOptions) {
    this.#platform = platform;
    this.#missed = new MissedMessages(platform.scan);
    const sink: MessageSink = { unwrittenBytes: 0, send: (message) => this.#send(message) };
    const { onFault } = platform.faults;
    this.#session = new LegacySession({ ...platform, onFault, gateway, sink, serverInfo: IDENTITY, ...who });
  }

  get revision(): string | undefined {
    return this.#session.revision;
  }

  receive(body: Uint8Array, reply: ReplyChannel): Received {
    const { scan } = this.#platform;
    const message = this.#scan(body);
    if (message.kind !== 'rejected') {
      // A client that does not listen gets the questions of its tasks when it waits for a result.
      if (message.kind === 'request' && message.method === METHODS.taskResult) this.#missed.catchUp(reply);
      return { answers: this.#session.accept(message, reply) ? 1 : 0 };
    }
    if (message.reason !== 'batch') return { refused: refusalOf(message) };
    return acceptBatch({ batch: message, scan, session: this.#session, replyFor: () => reply });
  }

  attach(stream: MessageSink | undefined): void {
    this.#stream = stream;
    if (stream !== undefined) this.#missed.catchUp(stream);
  }

  close(): void {
    this.#session.close();
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
    if (this.#stream === undefined) this.#missed.add(message);
    else this.#stream.send(message);
  }
}
