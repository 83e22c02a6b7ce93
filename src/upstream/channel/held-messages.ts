import type { TrackedSink } from '../../wire/jsonrpc/message.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';

/** A message that waits until the server has read more of what was sent before. */
export interface HeldMessage {
  readonly byteLength: number;
  /** End of the wait, in milliseconds on the clock. */
  readonly until: number;
  readonly send: () => void;
  /** The server takes nothing, or the wait is over. */
  readonly giveUp: () => void;
}

export interface HeldMessagesOptions {
  readonly clock: Clock;
  readonly output: Pick<TrackedSink, 'sentBytes' | 'unwrittenBytes'>;
  /** Messages wait while the server has more unread bytes than this. */
  readonly maxUnwrittenBytes: number;
}

/** The most that waits for one server. A server that reads nothing could ask for answers without end. */
const MAX_HELD = 1_000;
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** Time without a byte taken after which a server counts as one that does not read, in milliseconds. */
const STUCK_MS = 5_000;
const CHECK_EVERY_MS = 20;

/** Messages that wait for a server that reads more slowly than its clients send, in their order. */
export class HeldMessages {
  readonly #options: HeldMessagesOptions;
  readonly #messages = new Set<HeldMessage>();
  #bytes = 0;
  #takenBytes = 0;
  #takenAt = 0;
  #cancel: Cancel | undefined;

  constructor(options: HeldMessagesOptions) {
    this.#options = options;
  }

  /** Whether a message has to wait. */
  get areNeeded(): boolean {
    const { output, maxUnwrittenBytes } = this.#options;
    return this.#messages.size > 0 || output.unwrittenBytes > maxUnwrittenBytes;
  }

  /** Returns `false` if too much waits already. */
  add(message: HeldMessage): boolean {
    if (this.#messages.size >= MAX_HELD || this.#bytes + message.byteLength > MAX_HELD_BYTES) return false;
    if (this.#messages.size === 0) this.#takenAt = this.#options.clock.now();
    this.#messages.add(message);
    this.#bytes += message.byteLength;
    this.#cancel ??= this.#options.clock.schedule(CHECK_EVERY_MS, () => this.#check());
    return true;
  }

  /** Removes a message that must not be sent anymore. Returns whether it waited. */
  delete(message: HeldMessage): boolean {
    if (!this.#messages.delete(message)) return false;
    this.#bytes -= message.byteLength;
    return true;
  }

  /** Gives up all messages. */
  close(): void {
    this.#cancel?.();
    for (const message of this.#messages) if (this.delete(message)) message.giveUp();
  }

  #check(): void {
    const { clock, output, maxUnwrittenBytes } = this.#options;
    const now = clock.now();
    const taken = output.sentBytes - output.unwrittenBytes;
    if (taken !== this.#takenBytes) this.#takenAt = now;
    for (const message of this.#messages) {
      if (output.unwrittenBytes > maxUnwrittenBytes) break;
      if (this.delete(message)) message.send();
    }
    this.#takenBytes = output.sentBytes - output.unwrittenBytes;
    const isStuck = now - this.#takenAt >= STUCK_MS;
    for (const message of this.#messages)
      if ((isStuck || now >= message.until) && this.delete(message)) message.giveUp();
    this.#cancel = this.#messages.size === 0 ? undefined : clock.schedule(CHECK_EVERY_MS, () => this.#check());
  }
}
