import { isString, readString } from '../../json/json-text.js';
import type { Edit, SplicedMessage, TokenText } from '../../json/splice.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import type { RequestMeta } from './request-meta.js';

/** A request as a modern server gets it. */
export class Leg implements RelayedRequest {
  readonly #request: RelayedRequest;
  readonly #meta: RequestMeta;
  readonly #more: Uint8Array | undefined;
  readonly #onId: ((id: TokenText) => void) | undefined;

  /** `more` are further members of `params`. `onId` gets the id under which the request is sent. */
  constructor(request: RelayedRequest, meta: RequestMeta, more?: Uint8Array, onId?: (id: TokenText) => void) {
    this.#request = request;
    this.#meta = meta;
    this.#more = more;
    this.#onId = onId;
  }

  get method(): string {
    return this.#request.method;
  }

  get bytes(): Uint8Array {
    return this.#request.bytes;
  }

  get params(): RelayedRequest['params'] {
    return this.#request.params;
  }

  get tokens(): RelayedRequest['tokens'] {
    return this.#request.tokens;
  }

  message(id: TokenText, edits: readonly Edit[]): SplicedMessage {
    this.#onId?.(id);
    return this.#meta.message(this.#request, id, edits, this.#more);
  }
}

/** A text in the params of a request as the server gets it; `undefined` if it is absent or no string. */
export function sentText(
  { bytes, tokens }: RelayedRequest,
  edits: readonly Edit[],
  name: 'uri' | 'level',
): string | undefined {
  const span = tokens[name];
  const edit = edits.find((each) => each.span === span);
  const { text, part = { start: 0, end: text.length } } = edit ?? { text: bytes, part: span };
  return span !== undefined && isString(text, part) ? readString(text, part) : undefined;
}
