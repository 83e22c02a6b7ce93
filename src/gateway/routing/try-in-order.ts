import { ExchangeDecorator } from '../../downstream/exchange-decorator.js';
import type { Failure } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { Edit } from '../../json/splice.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import type { Backend } from '../registry/backend.js';

/** Servers to try one after the other, for a request whose server is unknown. */
export interface Candidates {
  readonly candidates: readonly Backend[];
  /** Whether the response shows that nothing has happened at the server and that another one may have the answer. */
  readonly isUnknown: (response: ResponseEnvelope) => boolean;
  /** Called with the server that knew it. */
  readonly onFound: (backend: Backend) => void;
  /** The answer when no server knows it. */
  readonly notFound: RpcError;
}

/**
 * A request while servers are tried for it, in order until one knows it. If no server knows it and one of them failed, the
 * failure is the answer: that server might have known it.
 */
export class TriedExchange extends ExchangeDecorator {
  readonly #options: Candidates;
  readonly #send: (exchange: Exchange, backend: Backend) => void;
  readonly #left: Backend[];
  #current: Backend | undefined;
  #failure: RpcError | Failure | undefined;

  /** `send` sends the request to one of the candidates. */
  constructor(exchange: Exchange, options: Candidates, send: (exchange: Exchange, backend: Backend) => void) {
    super(exchange);
    this.#options = options;
    this.#send = send;
    this.#left = [...options.candidates];
  }

  /** Tries the next server. */
  next(): void {
    if (this.isSettled) return;
    this.#current = this.#left.shift();
    if (this.#current === undefined) super.fail(this.#failure ?? this.#options.notFound);
    else this.#send(this, this.#current);
  }

  override answer(response: ResponseEnvelope, edits?: readonly Edit[], server?: Uint8Array): void {
    if (this.#options.isUnknown(response)) {
      this.next();
      return;
    }
    if (this.#current !== undefined) this.#options.onFound(this.#current);
    super.answer(response, edits, server);
  }

  override fail(reason: RpcError | Failure): void {
    this.#failure ??= reason;
    this.next();
  }
}
