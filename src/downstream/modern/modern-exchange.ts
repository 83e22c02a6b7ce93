import type { Exchange, InputRequest, WithdrawInput } from '../port.js';
import { type AnswerForm, WireExchange, type WireExchangeOptions } from '../wire-exchange.js';

export interface ModernExchangeOptions extends WireExchangeOptions {
  readonly form: AnswerForm;
  readonly logLevel: Exchange['logLevel'];
  /** Asks the client for input because of this exchange. */
  readonly requireInput: (input: InputRequest, exchange: ModernExchange) => WithdrawInput;
}

/** A request of a client that speaks a revision without a handshake. */
export class ModernExchange extends WireExchange {
  readonly logLevel: Exchange['logLevel'];
  readonly takesInputRequests = true;
  protected readonly form: AnswerForm;
  readonly #requireInput: ModernExchangeOptions['requireInput'];

  constructor(options: ModernExchangeOptions) {
    super(options);
    this.form = options.form;
    this.logLevel = options.logLevel;
    this.#requireInput = options.requireInput;
  }

  requireInput(input: InputRequest): WithdrawInput {
    return this.#requireInput(input, this);
  }
}
