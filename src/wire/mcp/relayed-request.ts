import type { Span } from '../json/json-text.js';
import type { Edit, NumberWriter, SplicedMessage, TokenText } from '../json/splice.js';
import { notificationMessage, type RpcError } from '../jsonrpc/message.js';
import type { NotificationEnvelope, ParamName, RequestEnvelope, ResponseEnvelope } from './envelope.js';
import { METHODS } from './methods.js';

/** The members of `params`. Absent ones are `undefined`. */
export type ParamTokens = Pick<RequestEnvelope['tokens'], ParamName>;

/**
 * A request on its way through the gateway: its content without its envelope.
 *
 * The id, the progress token and the extent of the whole message belong to the protocol era that read the request.
 */
export interface RelayedRequest {
  readonly method: string;
  /** The bytes that `params` and `tokens` point into. */
  readonly bytes: Uint8Array;
  readonly params: Span | undefined;
  readonly tokens: ParamTokens;
  /** The whole message in `bytes`. Absent if `message` makes edits of its own, so that the bytes are not the request. */
  readonly whole?: Span | undefined;
  /**
   * The request as a JSON-RPC message under another id. The id also becomes the progress token if the sender requested
   * progress. Everything else stays byte for byte as it was received, except for the edits.
   */
  message(id: TokenText, edits: readonly Edit[]): SplicedMessage;
}

/** A request that was read from one JSON-RPC message. */
export class EnvelopeRequest implements RelayedRequest {
  readonly method: string;
  readonly bytes: Uint8Array;
  readonly params: Span | undefined;
  readonly tokens: ParamTokens;
  readonly #envelope: RequestEnvelope;

  constructor(envelope: RequestEnvelope) {
    this.method = envelope.method;
    this.bytes = envelope.bytes;
    this.params = envelope.params;
    this.tokens = envelope.tokens;
    this.#envelope = envelope;
  }

  get whole(): Span | undefined {
    return this.#envelope.span;
  }

  message({ text, part }: TokenText, edits: readonly Edit[]): SplicedMessage {
    const { bytes, span, id, tokens } = this.#envelope;
    const own: Edit = { span: id, text, part };
    const [first] = edits;
    // Most requests have one edit, the name. This check costs less than copying a list of one.
    const all = edits.length === 1 && first !== undefined ? [own, first] : [own, ...edits];
    const { requestProgressToken } = tokens;
    if (requestProgressToken !== undefined) all.push({ span: requestProgressToken, text, part });
    return { bytes, span, edits: all };
  }
}

/** A server request that a client has to answer: sampling, elicitation, roots, or a task of the client. */
export interface InputRequest {
  readonly request: RelayedRequest;
  /** Replacements in the request before the client gets it. */
  readonly edits: readonly Edit[];
  /** Passes on the client's response. `keepProgress` relays progress after it, until the returned function is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): void;
  /** Reports that the client cannot or will not answer. */
  fail(error: RpcError): void;
  progress(notification: NotificationEnvelope): void;
}

/**
 * Cancels the request that has this id at its receiver: with `notice`, the sender's own cancellation, or with one of the gateway
 * if there is none.
 */
export function cancellation(
  id: number,
  ids: NumberWriter,
  notice?: NotificationEnvelope,
  edits: readonly Edit[] = [],
): SplicedMessage {
  const requestId = notice?.tokens.requestId;
  if (notice === undefined || requestId === undefined) return notificationMessage(METHODS.cancelled, { requestId: id });
  return { bytes: notice.bytes, span: notice.span, edits: [{ span: requestId, ...ids.write(id) }, ...edits] };
}

/** Withdraws an input request. `notification` is the server's own cancellation; absent if the server is gone. */
export type WithdrawInput = (notification?: NotificationEnvelope, edits?: readonly Edit[]) => void;
