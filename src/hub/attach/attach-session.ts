import type { Code } from '../../errors/codes.js';
import type { ByteReader } from '../../io/byte-reader.js';
import { readText, valuesAt } from '../../json/json-text.js';
import { isRecord, parseJson } from '../../json/json-value.js';
import { FRAME, FrameReader, lineAfter } from '../wire.js';

export interface AttachSessionOptions {
  /** Writes to the client. The bytes may be overwritten after the function returns, unless it calls `lend`. */
  readonly toClient: (bytes: Uint8Array, lend: () => void) => void;
  readonly toHub: (bytes: Uint8Array) => void;
  /** Another hub serves from now on, and this hub has no request in flight. The receiver must call `detached` at once. */
  readonly onMoved: () => void;
  /** The hub has closed the session; `because` is a `Closing`. */
  readonly onClosed: (because: string) => void;
}

/**
 * One client's session, which continues when its hub dies. The next hub gets the lines again that make up the state of the
 * session, and each line that was in flight is sent again, answered or dropped.
 */
export class AttachSession implements ByteReader {
  readonly #options: AttachSessionOptions;
  readonly #lines: ClientLines;
  #frames: FrameReader;
  /** Lines that were sent to this hub and that the hub has not settled, by number. */
  readonly #unsettled = new Map<number, ClientLine>();
  #lastLine = 0;
  /** Lines that restore the session at the next hub: handshake, log level, subscriptions. By slot, in order of the first line. */
  readonly #kept = new Map<string, ClientLine>();
  #waiting: ClientLine[] = [];
  #isAttached = false;
  #isMoving = false;
  /** The line that is answered by the latest message for the client. */
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

  /** Number of lines of the client that no hub has settled. */
  get inFlight(): number {
    return this.#unsettled.size + this.#waiting.length;
  }

  /** Takes the next bytes of the client. Stores views of `bytes`. */
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

  /** A hub serves this client from now on. Sends it the lines that restore the session, and the lines that wait. */
  attached(): void {
    this.#isAttached = true;
    const lines = [...this.#kept.values(), ...this.#waiting.filter((line) => !this.#isKept(line))];
    this.#waiting = [];
    for (const line of lines) this.#send(line);
    for (const piece of this.#lines.unfinished) this.#options.toHub(piece);
  }

  /** The hub is gone. Answers the lines that must not be sent to another hub, because they may have taken effect. */
  detached(): void {
    const lost = [...this.#unsettled.values()].filter(({ isReplay }) => !isReplay);
    if (this.#frames.isWithinMessage) {
      // Ends the unfinished line. The client skips it, because it is no message.
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
      // `set` does not move a slot, so the handshake stays first, also if this hub dies while the lines are sent again.
      if (line === undefined) this.#kept.delete(payload);
      else this.#kept.set(payload, line);
    } else if (kind === FRAME.moved) {
      this.#isMoving = true;
    } else if (kind === FRAME.closed) {
      this.#options.onClosed(payload);
    }
  }
}

/** `lend` for bytes that are never overwritten. */
const KEPT = () => {};
const NEWLINE = Buffer.from('\n');

const [TAB, LF, CARRIAGE_RETURN, SPACE] = [0x09, 0x0a, 0x0d, 0x20];
/** The longest line that a hub takes. The beginning of a longer line is enough, because the line is not sent again. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** Length of the stored beginning of a line that is too long. */
const HEAD_BYTES = 1024;

/** A line of the client, without its newline, in the pieces in which it was read. */
export interface ClientLine {
  readonly pieces: readonly Uint8Array[];
  /** Whether the line was longer than `MAX_LINE_BYTES`. Then `pieces` has only its beginning. */
  readonly isCut: boolean;
  /** Whether an earlier hub has settled the line. The client must not get the answer again. */
  readonly isReplay: boolean;
}

/**
 * Cuts the bytes of a client into lines, without copying the bytes. Leaves out lines of white space, because the hub does
 * not number them either.
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

  /** The bytes of the line that has not ended. */
  get unfinished(): readonly Uint8Array[] {
    return this.#pieces;
  }

  /** Takes the next bytes of the client. Stores views of `bytes`. */
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
  /** The line is sent to the next hub. It may be served twice, because it changes nothing. */
  | { readonly kind: 'again' }
  | { readonly kind: 'answered'; readonly answer: string }
  /** The line needs no answer. */
  | { readonly kind: 'dropped' };

/** Requests that may be served twice, because they only read or set the same value again. */
const REPEATABLE = new Set([
  ...['initialize', 'ping', 'tools/list', 'prompts/list', 'prompts/get', 'completion/complete', 'logging/setLevel'],
  ...['resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe', 'resources/unsubscribe'],
  ...['tasks/get', 'tasks/list', 'server/discover', 'subscriptions/listen'],
]);

const AGAIN: Fate = { kind: 'again' };
const DROPPED: Fate = { kind: 'dropped' };

/** Decides the fate of a line. Each request in the line gets exactly one answer, from this process or from the next hub. */
export function fateOf({ pieces, isCut }: ClientLine): Fate {
  if (isCut) return answered(errorText('null'));
  const bytes = Buffer.concat(pieces);
  const message = parseJson(bytes.toString());
  // The next hub answers with the error.
  if (message === undefined) return AGAIN;
  if (!Array.isArray(message)) return fateOfMessage(message, bytes);
  const requests = message.filter(isRequest);
  if (requests.length === 0) return DROPPED;
  if (requests.every(({ method }) => REPEATABLE.has(method))) return AGAIN;
  return answered(`[${requests.map((request) => failureText(request, JSON.stringify(request.id))).join()}]`);
}

function fateOfMessage(message: unknown, bytes: Uint8Array): Fate {
  // Answers and cancellations of the client are for requests that ended with the hub.
  if (!isRequest(message)) return isHandshakeEnd(message) ? AGAIN : DROPPED;
  if (REPEATABLE.has(message.method)) return AGAIN;
  // Take the text of the id, because a parser changes large numbers.
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

/** Member of `_meta` in every request of a revision without a handshake. */
const ERA = 'io.modelcontextprotocol/protocolVersion';

const TEXT =
  'The hub ended unexpectedly while this call was in flight. Whether the call took effect is unknown: check before repeating it.';
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
  // Only revisions without a handshake know `resultType`, and they require it.
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
