import type { SplicedMessage } from '../json/splice.js';

/** Direction of a message: between a client and the gateway (`c`, `g`), or between the gateway and a server (`s`). */
export type Direction = 'c>g' | 'g>c' | 'g>s' | 's>g';

export interface FeedConnection {
  /** Tells the connections of one process apart. */
  readonly number: number;
  /** The server at the other end, or the only server that the client at the other end sees. */
  readonly server?: string | undefined;
  readonly generation?: number;
  /** The client's description of itself; `undefined` before its handshake, and for servers. */
  readonly client?: () => { readonly name?: unknown; readonly version?: unknown } | undefined;
}

/** One message at an edge of the gateway, exactly as it was read or as it is written. */
export interface PassingMessage {
  /** Milliseconds on the clock. */
  readonly at: number;
  readonly direction: Direction;
  /** The bytes are valid only while the observer runs, because their memory is reused afterwards. */
  readonly message: SplicedMessage;
  readonly connection: FeedConnection;
}

export type MessageObserver = (passing: PassingMessage) => void;

/** The most messages that `hold` stores for the first observer. A client that waits for answers sends fewer. */
const MAX_HELD = 64;
const MAX_HELD_BYTES = 256 * 1024;

/**
 * Shows every message at the edges of the gateway to its observers. Without observers, a message costs one comparison,
 * because an edge calls `passed` only if `isObserved`.
 */
export class MessageFeed {
  readonly #now: () => number;
  readonly #observers = new Set<MessageObserver>();
  #observer: MessageObserver | undefined;
  /** Only the feed changes this field. It is no getter, because every message reads it. */
  isObserved = false;
  #held: PassingMessage[] | undefined;
  #heldBytes = 0;
  #connections = 0;

  /** `now` are milliseconds on the monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  nextConnection(): number {
    this.#connections += 1;
    return this.#connections;
  }

  passed(direction: Direction, message: SplicedMessage, connection: FeedConnection): void {
    this.#observer?.({ at: this.#now(), direction, message, connection });
  }

  /**
   * Copies the first messages for the first observer, because a client's handshake comes before the configuration says
   * whether to record. `letGo` drops them.
   */
  hold(): void {
    this.#held ??= [];
    this.#update();
  }

  letGo(): void {
    this.#held = undefined;
    this.#update();
  }

  /** Shows the held messages and all further ones to an observer. Returns the function that ends this. */
  observe(observer: MessageObserver): () => void {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#observers.add(observer);
    this.#update();
    for (const passing of held) observer(passing);
    return () => {
      this.#observers.delete(observer);
      this.#update();
    };
  }

  #update(): void {
    const [only, ...others] = this.#observers;
    if (others.length > 0) this.#observer = (passing) => this.#toAll(passing);
    else this.#observer = only ?? (this.#held && ((passing) => this.#keep(passing)));
    this.isObserved = this.#observer !== undefined;
  }

  #toAll(passing: PassingMessage): void {
    for (const observer of this.#observers) observer(passing);
  }

  #keep(passing: PassingMessage): void {
    const { message } = passing;
    const { start, end } = message.span;
    this.#heldBytes += end - start;
    if (this.#held === undefined || this.#held.length >= MAX_HELD || this.#heldBytes > MAX_HELD_BYTES) return;
    const edits = message.edits.map(({ span: { start: from, end: to }, text, part }) => ({
      span: { start: from - start, end: to - start },
      text: copyOf(part === undefined ? text : text.subarray(part.start, part.end)),
    }));
    const bytes = copyOf(message.bytes.subarray(start, end));
    this.#held.push({ ...passing, message: { bytes, span: { start: 0, end: bytes.length }, edits } });
  }
}

/** Copies the bytes, which `slice` of Node's own buffers does not. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}
