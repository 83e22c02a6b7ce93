import { ExchangeDecorator } from '../../downstream/exchange-decorator.js';
import type { Failure } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { Edit } from '../../json/splice.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import type { Backend } from '../registry/backend.js';

/** A request of which nobody can tell whose it is: servers are asked one after the other until one knows it. */
export interface Inquiry {
  readonly candidates: readonly Backend[];
  /** Whether the answer says that the server knows nothing of it, so that nothing has happened there. */
  readonly isUnknown: (response: ResponseEnvelope) => boolean;
  /** This server knew it. */
  readonly onFound: (backend: Backend) => void;
  /** The answer when no server knows it. */
  readonly notFound: RpcError;
}

/** Asks the servers of an inquiry; `send` brings the request to one of them. */
export function askInOrder(
  exchange: Exchange,
  inquiry: Inquiry,
  send: (asked: Exchange, backend: Backend) => void,
): void {
  new Asking(exchange, inquiry, send).next();
}

/**
 * The request while servers are asked for it. Where one of them cannot answer, what is wrong with it is the answer when
 * no other knows the request: it might have.
 */
class Asking extends ExchangeDecorator {
  readonly #inquiry: Inquiry;
  readonly #send: (asked: Exchange, backend: Backend) => void;
  readonly #left: Backend[];
  #asked: Backend | undefined;
  #failure: RpcError | Failure | undefined;

  constructor(exchange: Exchange, inquiry: Inquiry, send: (asked: Exchange, backend: Backend) => void) {
    super(exchange);
    this.#inquiry = inquiry;
    this.#send = send;
    this.#left = [...inquiry.candidates];
  }

  /** The next server's turn. */
  next(): void {
    if (this.isSettled) return;
    this.#asked = this.#left.shift();
    if (this.#asked === undefined) super.fail(this.#failure ?? this.#inquiry.notFound);
    else this.#send(this, this.#asked);
  }

  override answer(response: ResponseEnvelope, edits?: readonly Edit[]): void {
    if (this.#inquiry.isUnknown(response)) {
      this.next();
      return;
    }
    if (this.#asked !== undefined) this.#inquiry.onFound(this.#asked);
    super.answer(response, edits);
  }

  override fail(reason: RpcError | Failure): void {
    this.#failure ??= reason;
    this.next();
  }
}
