import type { Code } from '../../errors/codes.js';
import type { ByteReader } from '../../io/byte-reader.js';
import { readText, valuesAt } from '../../json/json-text.js';
import { isRecord, parseJson } from '../../json/json-value.js';
import { FRAME, FrameReader, lineAfter } from '../wire.js';

export interface AttachSessionOptions {
  /** Writes to the client. The bytes may be overwritten after the call, unless it calls `lend`. */
  readonly toClient: (bytes: Uint8Array, lend: () => void) => void;
  readonly toHub: (bytes: Uint8Array) => void;
  /** Another hub serves from now on, and nothing is in flight on this one: call `detached` at once. */
  readonly onMoved: () => void;
  /** The hub has ended the session for good. */
  readonly onClosed: (because: string) => void;
}

/**
 * One client's session, which goes on when a hub dies: the next hub gets the lines that make up the session's state again,
 * and every line that was in flight is either sent again or answered.
 */
export class AttachSession implements ByteReader {
  readonly #options: AttachSessionOptions;
  readonly #lines: ClientLines;
  #frames: FrameReader;
  /** Lines that were sent to this hub and that it has not settled, by their numbers. */
  readonly #unsettled = new Map<number, ClientLine>();
  #lastLine = 0;
  /** Lines that restore the session at the next hub: handshake, log level, subscriptions. By slot, in the order of first sending. */
  readonly #kept = new Map<string, ClientLine>();
  #waiting: ClientLine[] = [];
  #isAttached = false;
  #isMoving = false;
  /** The line that the last message for the client answers. */
  #answering: ClientLine | undefined;

  constructor(options: AttachSessionOptions) {
    this.#options = options;
    this.#frames = this.#openFrames();
    this.#lines = new ClientLines((pieces, isCut) => {
      const line = { pieces, isCut, isReplay: false };
      if (this.#isAttached) this.#sent(line);
      else this.#waiting.push(line);
    });
  }

  /** Lines of the client that no hub has settled. */
  get inFlight(): number {
    return this.#unsettled.size + this.#waiting.length;
  }

  /** Takes what the client has written next. Keeps views of `bytes`. */
  fromClient(bytes: Uint8Array): void {
    this.#lines.add(bytes);
    if (this.#isAttached) this.#options.toHub(bytes);
  }

  get freeSpace(): Uint8Array {
    return this.#frames.freeSpace;
  }

  /** Reads the bytes from the hub that were written to `freeSpace`. */
  filled(byteLength: number): void {
    this.#frames.filled(byteLength);
    if (!this.#isMoving || this.#unsettled.size > 0 || this.#frames.isWithinFrame) return;
    this.#isMoving = false;
    this.#options.onMoved();
  }

  /** A hub serves this client from now on. */
  attached(): void {
    this.#isAttached = true;
    const lines = [...this.#kept.values(), ...this.#waiting.filter((line) => !this.#isKept(line))];
    this.#waiting = [];
    for (const line of lines) this.#send(line);
    for (const piece of this.#lines.unfinished) this.#options.toHub(piece);
  }

  /** The hub is gone. Answers what may not be sent to another one. */
  detached(): void {
    const lost = [...this.#unsettled.values()].filter(({ isReplay }) => !isReplay);
    if (this.#frames.isWithinMessage) {
      // The client skips the line, which is no message.
      this.#options.toClient(NEWLINE, KEPT);
      if (this.#answering !== undefined) lost.unshift(this.#answering);
    }
    const unanswered = new Set(lost);
    for (const [slot, line] of this.#kept) this.#kept.set(slot, { ...line, isReplay: !unanswered.has(line) });
    const again: ClientLine[] = [];
    for (const line of lost) {
      const fate = this.#isKept(line) ? DROPPED : fateOf(line);
      if (fate.kind === 'again') again.push(line);
      if (fate.kind === 'answered') this.#options.toClient(Buffer.from(`${fate.answer}\n`), KEPT);
    }
    this.#waiting = [...again, ...this.#waiting];
    this.#unsettled.clear();
    this.#lastLine = 0;
    this.#frames = this.#openFrames();
    this.#answering = undefined;
    this.#isAttached = false;
    this.#isMoving = false;
  }

  #isKept(line: ClientLine): boolean {
    return [...this.#kept.values()].some(({ pieces }) => pieces === line.pieces);
  }

  #sent(line: ClientLine): void {
    this.#lastLine = lineAfter(this.#lastLine);
    this.#unsettled.set(this.#lastLine, line);
  }

  #send(line: ClientLine): void {
    this.#sent(line);
    for (const piece of line.pieces) this.#options.toHub(piece);
    this.#options.toHub(NEWLINE);
  }

  #openFrames(): FrameReader {
    const frames = new FrameReader({
      write: (bytes) => this.#options.toClient(bytes, lend),
      message: (number) => {
        const line = number === 0 ? undefined : this.#unsettled.get(number);
        this.#answering = line;
        if (line === undefined) return false;
        this.#unsettled.delete(number);
        return line.isReplay;
      },
      control: (kind, number, payload) => this.#control(kind, number, payload),
    });
    const lend = () => frames.lend();
    return frames;
  }

  #control(kind: number, number: number, payload: string): void {
    if (kind === FRAME.keep) {
      const line = this.#unsettled.get(number);
      // A slot keeps its place: if this hub dies within the replay, the next one still gets the handshake first.
      if (line === undefined) this.#kept.delete(payload);
      else this.#kept.set(payload, line);
    } else if (kind === FRAME.moved) {
      this.#isMoving = true;
    } else if (kind === FRAME.closed) {
      this.#options.onClosed(payload);
    }
  }
}

/** Lends bytes that are never overwritten. */
const KEPT = () => {};
const NEWLINE = Buffer.from('\n');

const [TAB, LF, CARRIAGE_RETURN, SPACE] = [0x09, 0x0a, 0x0d, 0x20];
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
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
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
