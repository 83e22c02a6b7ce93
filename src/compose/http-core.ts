import type { HttpClientSession, HttpFrontPort, Received } from '../front/http/http-session.js';
import { acceptBatch } from '../gateway/batch.js';
import type { GatewayPort } from '../gateway/gateway-port.js';
import { LegacySession } from '../gateway/legacy-session.js';
import { refusalOf } from '../gateway/refusal.js';
import type { ReplyChannel } from '../gateway/reply-channel.js';
import { type MessageSink, whole } from '../jsonrpc/message.js';
import { type SplicedMessage, splice } from '../jsonrpc/splice.js';
import { IDENTITY } from '../version.js';
import type { Platform } from './platform.js';

export interface HttpCoreOptions {
  readonly platform: Platform;
  readonly gateway: GatewayPort;
  /** Whether every server's first start has ended. */
  readonly isReady: () => boolean;
}

/** What the HTTP front is the front of: each session gets the whole gateway. */
export function createHttpCore({ platform, gateway, isReady }: HttpCoreOptions): HttpFrontPort {
  return {
    isReady,
    openSession: (endpoint) => (endpoint === undefined ? new HttpClient(platform, gateway) : undefined),
  };
}

const CHANGE = /^notifications\/(?:\w+\/list_changed|resources\/updated)$/;
const MAX_MISSED = 256;

/** One client's session, whose messages come in POSTs and whose unsolicited ones need a stream that may be missing. */
class HttpClient implements HttpClientSession {
  readonly #platform: Platform;
  readonly #session: LegacySession;
  #stream: MessageSink | undefined;
  /** That something changed while nobody listened, once for each thing, by its text. Anything else is lost then. */
  readonly #missed = new Map<string, SplicedMessage>();

  constructor(platform: Platform, gateway: GatewayPort) {
    this.#platform = platform;
    const sink: MessageSink = { unwrittenBytes: 0, send: (message) => this.#send(message) };
    this.#session = new LegacySession({ ...platform, gateway, sink, serverInfo: IDENTITY });
  }

  get revision(): string | undefined {
    return this.#session.revision;
  }

  receive(body: Uint8Array, reply: ReplyChannel): Received {
    const { scan } = this.#platform;
    const message = scan(body);
    if (message.kind !== 'rejected') return { answers: this.#session.accept(message, reply) ? 1 : 0 };
    if (message.reason !== 'batch') return { refused: refusalOf(message) };
    return acceptBatch({ batch: message, scan, session: this.#session, replyFor: () => reply });
  }

  attach(stream: MessageSink | undefined): void {
    this.#stream = stream;
    if (stream === undefined) return;
    for (const message of this.#missed.values()) stream.send(message);
    this.#missed.clear();
  }

  close(): void {
    this.#session.close();
  }

  #send(message: SplicedMessage): void {
    if (this.#stream !== undefined) {
      this.#stream.send(message);
      return;
    }
    const bytes = splice(message);
    const scanned = this.#platform.scan(bytes);
    const isChange = scanned.kind === 'notification' && CHANGE.test(scanned.method);
    if (isChange && this.#missed.size < MAX_MISSED) this.#missed.set(new TextDecoder().decode(bytes), whole(bytes));
  }
}
