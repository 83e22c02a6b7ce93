import type { Edit } from '../../json/splice.js';
import type { InputRequest, WithdrawInput } from '../port.js';
import { type AnswerForm, WireExchange, type WireExchangeOptions } from '../wire-exchange.js';

/** Answers are what the server wrote. */
const LEGACY_FORM: AnswerForm = {
  edits: () => NO_EDITS,
  result: (result) => result,
};

const NO_EDITS: readonly Edit[] = [];

export interface LegacyExchangeOptions extends WireExchangeOptions {
  /** Asks the client for input because of this exchange. */
  readonly requireInput: (input: InputRequest, exchange: LegacyExchange) => WithdrawInput;
}

/** A request of a client that speaks a revision with a handshake. */
export class LegacyExchange extends WireExchange {
  readonly logLevel = undefined;
  readonly takesInputRequests = false;
  readonly isSuspended = false;
  protected readonly form: AnswerForm = LEGACY_FORM;
  readonly #requireInput: LegacyExchangeOptions['requireInput'];

  constructor(options: LegacyExchangeOptions) {
    super(options);
    this.#requireInput = options.requireInput;
  }

  get conversation(): object {
    return this.client;
  }

  requireInput(input: InputRequest): WithdrawInput {
    return this.#requireInput(input, this);
  }
}
