import { editMembers } from '../../json/edit-members.js';
import type { Edit } from '../../json/splice.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import type { InputRequest, WithdrawInput } from '../port.js';
import { type AnswerForm, WireExchange, type WireExchangeOptions } from '../wire-exchange.js';

/** Removes what only the revisions without a handshake define. */
const LEGACY_FORM: AnswerForm = {
  edits: (response) => (response.tokens.resultType === undefined ? NO_EDITS : withoutModernMembers(response)),
  result: (result) => result,
};

const NO_EDITS: readonly Edit[] = [];
const MODERN_MEMBERS: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope']);

function withoutModernMembers({ bytes, result }: ResponseEnvelope): readonly Edit[] {
  return result === undefined ? NO_EDITS : editMembers(bytes, result, { removes: (name) => MODERN_MEMBERS.has(name) });
}

export interface LegacyExchangeOptions extends WireExchangeOptions {
  /** Asks the client for input because of this exchange. */
  readonly requireInput: (input: InputRequest, exchange: LegacyExchange) => WithdrawInput;
}

/** A request of a client that speaks a revision with a handshake. */
export class LegacyExchange extends WireExchange {
  readonly logLevel = undefined;
  readonly takesInputRequests = false;
  protected readonly form: AnswerForm = LEGACY_FORM;
  readonly #requireInput: LegacyExchangeOptions['requireInput'];

  constructor(options: LegacyExchangeOptions) {
    super(options);
    this.#requireInput = options.requireInput;
  }

  requireInput(input: InputRequest): WithdrawInput {
    return this.#requireInput(input, this);
  }
}
