import type { Edit, SplicedMessage, TokenText } from '../json/splice.js';
import type { RequestEnvelope } from './envelope.js';

/** A request whose text is known, ready to be sent under any id. */
export function toOutgoingRequest(request: RequestEnvelope): TextRequest {
  return new TextRequest(request);
}

class TextRequest {
  readonly #request: RequestEnvelope;

  constructor(request: RequestEnvelope) {
    this.#request = request;
  }

  get method(): string {
    return this.#request.method;
  }

  /** The text with the edits, and with `id` in the place of the request id and of the progress token, if there is one. */
  message({ text, part }: TokenText, edits: readonly Edit[]): SplicedMessage {
    const { bytes, span, id, tokens } = this.#request;
    const own: Edit = { span: id, text, part };
    const [first] = edits;
    // Most calls have one edit, the name. Spreading a list of one costs more than this check.
    const all = edits.length === 1 && first !== undefined ? [own, first] : [own, ...edits];
    const progressToken = tokens.requestProgressToken;
    if (progressToken !== undefined) all.push({ span: progressToken, text, part });
    return { bytes, span, edits: all };
  }
}
