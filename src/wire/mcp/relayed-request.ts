import { isObject, type Span, stringAt, toBytes, valuesAt } from '../json/json-text.js';
import type { Edit, NumberWriter, SplicedMessage, TokenText } from '../json/splice.js';
import { join, notificationMessage, RpcError, requestMessage } from '../jsonrpc/message.js';
import {
  type NotificationEnvelope,
  type ParamName,
  type RequestEnvelope,
  type ResponseEnvelope,
  scanOwn,
} from './envelope.js';
import { INPUT_METHODS, METHODS } from './methods.js';

/** The members of `params`. Absent ones are `undefined`. */
export type ParamTokens = Pick<RequestEnvelope['tokens'], ParamName>;

export interface RequestParams extends RequestTokens {
  readonly params: Span | undefined;
}

/** The tokens that routing reads from the `params` of a request. */
export interface RequestTokens {
  /** The bytes that the positions point into. */
  readonly bytes: Uint8Array;
  readonly tokens: ParamTokens;
}

/**
 * A request on its way through the gateway: its content without its envelope.
 *
 * The id, the progress token and the extent of the whole message belong to the protocol era that read the request.
 */
export interface RelayedRequest extends RequestParams {
  readonly method: string;
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
  /** Whether Trunkline itself asks, and no server. */
  readonly isOwn?: boolean;
  /** Replacements in the request before the client gets it. */
  readonly edits: readonly Edit[];
  /** Passes on the client's response. `keepProgress` relays progress after it, until the returned function is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): void;
  /** Reports that the client cannot or will not answer. */
  fail(error: RpcError): void;
  progress(notification: NotificationEnvelope): void;
}

/**
 * Makes the notification that cancels the request with this id at its receiver. Uses `notice`, the sender's own cancellation, if
 * there is one.
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

// Messages that the gateway makes itself, instead of relaying one of a server or a client. Their ids are placeholders.

/** Makes a request, with `params` as in `requestMessage`. */
export function ownRequest(method: string, params?: unknown): EnvelopeRequest {
  return new EnvelopeRequest(ownEnvelope(method, params));
}

export function ownEnvelope(method: string, params?: unknown): RequestEnvelope {
  const envelope = scanOwn(requestMessage(0, method, params).bytes);
  if (envelope.kind !== 'request') throw new Error(`Not a request: ${method}`);
  return envelope;
}

/** Makes a request of `params` that a server has written as JSON; `undefined` if no client could read it. */
export function requestWith(method: string, params: Uint8Array | undefined): EnvelopeRequest | undefined {
  const envelope = scanOwn(requestMessage(0, method, params).bytes);
  return envelope.kind === 'request' ? new EnvelopeRequest(envelope) : undefined;
}

/** Makes a notification, or returns `undefined` if no client could read it. `params` are as in `requestMessage`. */
export function ownNotification(method: string, params?: unknown): NotificationEnvelope | undefined {
  const envelope = scanOwn(notificationMessage(method, params).bytes);
  return envelope.kind === 'notification' ? envelope : undefined;
}

export function ownResponse(
  content: Uint8Array | RpcError,
  member: 'result' | 'error' = content instanceof RpcError ? 'error' : 'result',
): ResponseEnvelope {
  const value = content instanceof RpcError ? toBytes(JSON.stringify(content)) : content;
  return asResponse(join([toBytes(`{"jsonrpc":"2.0","id":0,"${member}":`), value, toBytes('}')]));
}

/** Reads a response that the gateway has made. Throws if the bytes are none. */
export function asResponse(bytes: Uint8Array): ResponseEnvelope {
  const envelope = scanOwn(bytes);
  if (envelope.kind !== 'response') throw new Error('The message that was made is no response');
  return envelope;
}

/** The result of a call whose tool has failed with this text. */
export function toolError(text: string): Uint8Array {
  return toBytes(JSON.stringify({ content: [{ type: 'text', text }], isError: true }));
}

/** A request for input that a server has put into a result. */
export interface AskedInput {
  readonly method: string;
  /** `undefined` if a result may not carry the request, or no client could read it. */
  readonly request: EnvelopeRequest | undefined;
  /** The page of an elicitation in mode `url`. */
  readonly url?: string | undefined;
  /** The id that the gateway gave to such an elicitation, because modern revisions have none. */
  readonly elicitationId?: string | undefined;
}

/** Reads an entry of `inputRequests`. Copies it, because the memory of a response is soon used again. */
export function readAsked(bytes: Uint8Array, entry: Span, mintId: () => string): AskedInput {
  const textAt = (...path: readonly string[]) => stringAt(bytes, valuesAt(bytes, entry, path)[0]);
  const method = textAt('method') ?? '';
  const [params] = valuesAt(bytes, entry, ['params']);
  const isSound = params === undefined || isObject(bytes, params);
  if (!INPUT_METHODS.has(method) || !isSound) return { method, request: undefined };
  const own = params && bytes.slice(params.start, params.end);
  if (own === undefined || method !== METHODS.elicit || textAt('params', 'mode') !== 'url')
    return { method, request: requestWith(method, own) };
  const url = textAt('params', 'url');
  if (valuesAt(bytes, entry, ['params', 'elicitationId']).length > 0)
    return { method, request: requestWith(method, own), url };
  const elicitationId = mintId();
  const named = join([own.subarray(0, -1), toBytes(`,"elicitationId":${JSON.stringify(elicitationId)}}`)]);
  return { method, request: requestWith(method, named), url, elicitationId };
}
