import type { HttpClientSession, HttpFrontPort, Received } from '../front/http/http-session.js';
import type { GatewayPort } from '../gateway/gateway-port.js';
import { LegacySession, refusalOf } from '../gateway/legacy-session.js';
import type { ReplyChannel } from '../gateway/reply-channel.js';
import { type MessageSink, whole } from '../jsonrpc/message.js';
import { type SplicedMessage, splice } from '../jsonrpc/splice.js';
import type { Envelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { IDENTITY } from '../version.js';
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
    openSession: (server, principal) =>
      server === undefined || hasServer(server) ? new HttpClient(platform, gateway, server, principal) : undefined,
  };
}

const UPDATE = 'notifications/resources/updated';
const CHANGE = /^notifications\/\w+\/list_changed$/;
/** Far more than anybody subscribes to; a client that missed them all has to read everything again anyway. */
const MAX_MISSED_UPDATES = 256;

/** One client's session, whose messages come in POSTs and whose unsolicited ones need a stream that may be missing. */
class HttpClient implements HttpClientSession {
  readonly #platform: Platform;
  readonly #session: LegacySession;
  #stream: MessageSink | undefined;
  /** What may not be lost while nobody listens, by its text, so that a change is told once. All else is lost then. */
  readonly #missed = new Map<string, SplicedMessage>();
  #missedUpdates = 0;

  constructor(platform: Platform, gateway: GatewayPort, server: string | undefined, principal: string) {
    this.#platform = platform;
    const sink: MessageSink = { unwrittenBytes: 0, send: (message) => this.#send(message) };
    this.#session = new LegacySession({ ...platform, gateway, sink, serverInfo: IDENTITY, server, principal });
  }

  get revision(): string | undefined {
    return this.#session.revision;
  }

  receive(body: Uint8Array, reply: ReplyChannel): Received {
    const message = this.#platform.scan(body);
    if (message.kind === 'rejected') return { refused: refusalOf(message) };
    // A client that does not listen gets the questions of its tasks when it waits for a result.
    if (message.kind === 'request' && message.method === METHODS.taskResult) this.#catchUp(reply);
    return { answers: this.#session.accept(message, reply) ? 1 : 0 };
  }

  attach(stream: MessageSink | undefined): void {
    this.#stream = stream;
    if (stream !== undefined) this.#catchUp(stream);
  }

  close(): void {
    this.#session.close();
  }

  #catchUp(stream: Pick<MessageSink, 'send'>): void {
    for (const message of this.#missed.values()) stream.send(message);
    this.#missed.clear();
    this.#missedUpdates = 0;
  }

  #send(message: SplicedMessage): void {
    if (this.#stream !== undefined) {
      this.#stream.send(message);
      return;
    }
    const bytes = splice(message);
    const scanned = this.#platform.scan(bytes);
    const text = new TextDecoder().decode(bytes);
    if (scanned.kind === 'rejected' || this.#missed.has(text)) return;
    const isUpdate = scanned.kind === 'notification' && scanned.method === UPDATE;
    if (isUpdate) this.#missedUpdates += 1;
    const isKept = isUpdate ? this.#missedUpdates <= MAX_MISSED_UPDATES : mustBeHeard(scanned);
    if (isKept) this.#missed.set(text, whole(bytes));
  }
}

/** Questions wait for an answer, and their end belongs to them; how many there are at once is bounded where they are asked. */
function mustBeHeard(message: Envelope): boolean {
  if (message.kind !== 'notification') return message.kind === 'request';
  return message.method === METHODS.cancelled || CHANGE.test(message.method);
}
