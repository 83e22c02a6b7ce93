import type { Code } from '../../host/errors/codes.js';
import type { ByteReader } from '../../wire/io/byte-reader.js';
import { type Fate, fateOfMessage, type Loss, lostAnswer } from '../../wire/mcp/lost-request.js';
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
      const fate = this.#isKept(line) ? ({ kind: 'dropped' } as const) : fateOf(line);
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

const TAB = 0x09;
const LF = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
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

  get unfinished(): readonly Uint8Array[] {
    return this.#pieces;
  }

  /** Takes the next bytes of the client. Stores views of `bytes`. */
  add(bytes: Uint8Array): void {
    let start = 0;
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
      this.#continue(bytes.subarray(start, end));
      start = end + 1;
      const pieces = this.#pieces;
      const bytesOfLine = this.#bytes;
      const isBlankLine = this.#isBlank;
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

const LOSS: Loss = {
  text: 'The hub ended unexpectedly while this call was in flight. Whether the call took effect is unknown: check before repeating it.',
  facts: { reason: 'hub_exited', code: 'TL-CALL-HUB-EXITED' satisfies Code, sent: true, outcome: 'unknown' },
};

/** Decides the fate of a line. Each request in the line gets exactly one answer, from this process or from the next hub. */
export function fateOf({ pieces, isCut }: ClientLine): Fate {
  if (isCut) return { kind: 'answered', answer: lostAnswer({ id: 'null', method: '' }, LOSS) };
  return fateOfMessage(Buffer.concat(pieces), LOSS);
}
