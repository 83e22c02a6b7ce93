import type { Code } from '../../errors/codes.js';
import { readText, valuesAt } from '../../json/json-text.js';
import { isRecord, parseJson } from '../../json/json-value.js';

const NEWLINE = 0x0a;
const [TAB, CARRIAGE_RETURN, SPACE] = [0x09, 0x0d, 0x20];
/** No hub takes a longer line, so none is kept to be sent again. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** The beginning of a line that is too long, which shows its id. */
const HEAD_BYTES = 1024;

/** A line of the client, without its newline, in the pieces in which it was read. */
export interface ClientLine {
  readonly pieces: readonly Uint8Array[];
  /** The line was too long to be kept; `pieces` is its beginning. */
  readonly isCut: boolean;
  /** The line was sent to another hub before, and its answer is not for the client. */
  readonly isReplay: boolean;
}

/**
 * Cuts what a client writes into lines, and numbers them as the hub does: a line of nothing but white space has no number.
 * The bytes are not copied.
 */
export class ClientLines {
  readonly #onLine: (pieces: readonly Uint8Array[], isCut: boolean) => void;
  /** The unfinished line. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #isBlank = true;

  /** `onLine` gets every line that is not blank. */
  constructor(onLine: (pieces: readonly Uint8Array[], isCut: boolean) => void) {
    this.#onLine = onLine;
  }

  /** The beginning of the line that has not ended. */
  get unfinished(): readonly Uint8Array[] {
    return this.#pieces;
  }

  /** Takes what the client has written next. Keeps views of `bytes`. */
  add(bytes: Uint8Array): void {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      this.#continue(bytes.subarray(start, end));
      start = end + 1;
      const [pieces, bytesOfLine, isBlankLine] = [this.#pieces, this.#bytes, this.#isBlank];
      this.#pieces = [];
      this.#bytes = 0;
      this.#isBlank = true;
      if (!isBlankLine) this.#onLine(pieces, bytesOfLine > MAX_LINE_BYTES);
    }
    this.#continue(bytes.subarray(start));
  }

  #continue(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    this.#isBlank &&= piece.every(isWhiteSpace);
    if (this.#bytes <= MAX_LINE_BYTES) this.#pieces.push(piece);
    else this.#pieces = this.#pieces.slice(0, 1).map((first) => first.slice(0, HEAD_BYTES));
  }
}

function isWhiteSpace(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === CARRIAGE_RETURN;
}

/** Treatment of a line whose hub died before it settled the line. */
export type Fate =
  /** It is sent to the next hub: it changes nothing, so that it may be served twice. */
  | { readonly kind: 'again' }
  /** It is answered with this. */
  | { readonly kind: 'answered'; readonly answer: string }
  /** It needs no answer. */
  | { readonly kind: 'dropped' };

/** Requests that only read, or that set something to the same value again. */
const REPEATABLE = new Set([
  ...['initialize', 'ping', 'tools/list', 'prompts/list', 'prompts/get', 'completion/complete', 'logging/setLevel'],
  ...['resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe', 'resources/unsubscribe'],
  ...['tasks/get', 'tasks/list', 'server/discover', 'subscriptions/listen'],
]);

const AGAIN: Fate = { kind: 'again' };
const DROPPED: Fate = { kind: 'dropped' };

/** Decides what becomes of a line. Every request in it gets exactly one answer in the end, by us or by the next hub. */
export function fateOf({ pieces, isCut }: ClientLine): Fate {
  if (isCut) return answered(errorText('null'));
  const bytes = Buffer.concat(pieces);
  const message = parseJson(bytes.toString());
  // The next hub says what is wrong with it.
  if (message === undefined) return AGAIN;
  if (!Array.isArray(message)) return fateOfMessage(message, bytes);
  const requests = message.filter(isRequest);
  if (requests.length === 0) return DROPPED;
  if (requests.every(({ method }) => REPEATABLE.has(method))) return AGAIN;
  return answered(`[${requests.map((request) => failureText(request, JSON.stringify(request.id))).join()}]`);
}

function fateOfMessage(message: unknown, bytes: Uint8Array): Fate {
  // The requests that a client's answer is for, and those that it cancels, ended with the hub.
  if (!isRequest(message)) return isHandshakeEnd(message) ? AGAIN : DROPPED;
  if (REPEATABLE.has(message.method)) return AGAIN;
  // The text of the id, because a parser changes large numbers.
  const id = valuesAt(bytes, { start: 0, end: bytes.length }, ['id']).at(-1);
  return answered(failureText(message, id === undefined ? 'null' : readText(bytes, id)));
}

function isHandshakeEnd(message: unknown): boolean {
  return isRecord(message) && message.method === 'notifications/initialized';
}

interface Request {
  readonly id: unknown;
  readonly method: string;
  readonly params?: unknown;
}

function isRequest(message: unknown): message is Request {
  return isRecord(message) && typeof message.method === 'string' && Object.hasOwn(message, 'id');
}

/** In every request of a revision without a handshake. */
const ERA = 'io.modelcontextprotocol/protocolVersion';

const TEXT =
  'Trunkline was restarted while this call was in flight: its shared process ended unexpectedly. Whether the call took effect is unknown: check before repeating it.';
const FACTS = {
  reason: 'hub_exited',
  code: 'TL-CALL-HUB-EXITED' satisfies Code,
  sent: true,
  outcome: 'unknown',
};

/** `id` is JSON. */
function failureText({ method, params }: Request, id: string): string {
  const isTask = isRecord(params) && params.task !== undefined;
  if (method !== 'tools/call' || isTask) return errorText(id);
  const content = [{ type: 'text', text: TEXT }];
  // Revisions without a handshake require the type of a result. Others do not know it.
  const type = isRecord(params) && isRecord(params._meta) && ERA in params._meta ? { resultType: 'complete' } : {};
  const result = { ...type, content, isError: true, _meta: { 'trunkline/failure': FACTS } };
  return `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`;
}

function errorText(id: string): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code: -32603, message: TEXT, data: FACTS })}}`;
}

function answered(answer: string): Fate {
  return { kind: 'answered', answer };
}
