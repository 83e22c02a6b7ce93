import { readText, type Span } from '../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../json/splice.js';
import { errorMessage, resultMessage } from '../../jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { DropCounters, ServerRequest } from '../port.js';

export interface IncomingRequestsOptions {
  /** Counts the answers that could not be sent. */
  readonly counters: DropCounters;
  /** Whether the server can receive an answer now. Otherwise the answer is dropped. */
  readonly canReply: () => boolean;
  readonly reply: (message: SplicedMessage) => void;
  readonly notify: (notification: NotificationEnvelope, edits: readonly Edit[]) => void;
}

/** The requests that the server sends, until each is answered or the server cancels it. */
export class IncomingRequests {
  readonly #options: IncomingRequestsOptions;
  /** The ids of the requests that are not answered yet, except pings, as JSON tokens. */
  readonly #unanswered = new Set<string>();

  constructor(options: IncomingRequestsOptions) {
    this.#options = options;
  }

  /** How many requests of the server are not answered yet. No person has to answer a ping, so pings do not count. */
  get unanswered(): number {
    return this.#unanswered.size;
  }

  /** Adds a request, and returns it in the form in which the gateway answers it. */
  add(request: RequestEnvelope): ServerRequest {
    const { bytes, tokens } = request;
    if (request.method !== METHODS.ping) this.#unanswered.add(readText(bytes, request.id));
    const id = () => bytes.subarray(request.id.start, request.id.end);
    return {
      request,
      answer: (response, edits) => {
        const own: Edit = { span: response.id, text: id() };
        this.#reply(request, () => ({ bytes: response.bytes, span: response.span, edits: [own, ...edits] }));
      },
      succeed: (result) => this.#reply(request, () => resultMessage(id(), result)),
      fail: (error) => this.#reply(request, () => errorMessage(id(), error)),
      progress: (notification, edits) => {
        const { requestProgressToken: token } = tokens;
        const span = notification.tokens.progressToken;
        if (token !== undefined && span !== undefined)
          this.#options.notify(notification, [{ span, text: bytes, part: token }, ...edits]);
      },
    };
  }

  /** The server cancels its request with the id at `id`. */
  cancelled(bytes: Uint8Array, id: Span): void {
    this.#unanswered.delete(readText(bytes, id));
  }

  #reply({ bytes, id }: RequestEnvelope, message: () => SplicedMessage): void {
    this.#unanswered.delete(readText(bytes, id));
    const { counters, canReply, reply } = this.#options;
    if (canReply()) reply(message());
    else counters.unsentReplies += 1;
  }
}
