import type { ByteReader } from '../../io/byte-reader.js';
import { FRAME, lineAfter } from '../wire.js';
import { type ClientLine, ClientLines, fateOf } from './client-lines.js';
import { FrameReader } from './frame-reader.js';

export interface AttachSessionOptions {
  /**
   * Writes to the client. The bytes may be overwritten after the call, unless it calls `lend`: then when what `lend` has
   * returned is called.
   */
  readonly toClient: (bytes: Uint8Array, lend: () => () => void) => void;
  /** Writes to the hub that is attached. */
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
  /** Lines for the next hub. */
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

  /** Memory for the next bytes of the hub. */
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

const NEWLINE = Buffer.from('\n');
/** Keeps bytes without copying them, because they are never overwritten. */
const KEPT = () => () => {};
const DROPPED = { kind: 'dropped' } as const;
