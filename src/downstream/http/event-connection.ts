import type { ServerResponse } from 'node:http';
import type { Clock } from '../../timing/clock.js';
import type { Deadlines, Due } from '../../timing/deadlines.js';
import { type Frame, KEEP_ALIVE } from './event-frame.js';

/** Something with a deadline. */
export interface Timed extends Due {
  onDue(): void;
}

interface EventConnectionOptions {
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly keepAliveMs: number;
  readonly open: OpenConnections;
  readonly headers: Readonly<Record<string, string>>;
}

/** One HTTP response that carries an event stream. */
export class EventConnection implements Timed {
  dueAt: number;
  readonly #response: ServerResponse;
  readonly #options: EventConnectionOptions;
  #isOpen = true;

  constructor(response: ServerResponse, options: EventConnectionOptions) {
    this.#response = response;
    this.#options = options;
    this.dueAt = options.clock.now() + options.keepAliveMs;
    response.writeHead(200, {
      ...options.headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      // nginx would otherwise buffer events.
      'x-accel-buffering': 'no',
    });
    options.open.add(this);
    options.timers.watch(this);
    response.once('close', () => this.#closed());
  }

  /** Called once when nothing more can be written. */
  onClosed: () => void = () => {};

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get unwrittenBytes(): number {
    return this.#isOpen ? this.#response.writableLength : 0;
  }

  /** Sends the head of the response if nothing was written yet. */
  flush(): void {
    this.#response.flushHeaders();
  }

  write(frame: Frame): void {
    this.#options.open.makeRoom();
    if (!this.#isOpen) return;
    this.dueAt = this.#options.clock.now() + this.#options.keepAliveMs;
    const response = this.#response;
    response.cork();
    for (const piece of frame) response.write(piece);
    response.uncork();
  }

  onDue(): void {
    this.write(KEEP_ALIVE);
    if (this.#isOpen) this.#options.timers.watch(this);
  }

  /** Ends the response after everything that was written. */
  end(): void {
    if (!this.#isOpen) return;
    this.#response.end();
    this.#closed();
  }

  /** Destroys the connection and frees what the client has not read. */
  cut(): void {
    this.#response.destroy();
    this.#closed();
  }

  #closed(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#options.open.delete(this);
    this.#options.timers.unwatch(this);
    this.onClosed();
  }
}

/** A stream that a client may read slowly. */
interface Readable {
  readonly unwrittenBytes: number;
  cut(): void;
}

/**
 * The open streams of one client, with a limit for the bytes that the client has not read.
 *
 * The limit is checked before each write, so a single message may be as large as the frame limit allows; only what piles
 * up behind it counts. A stream that has its last message does not grow any more and is not tracked.
 */
export class OpenConnections {
  readonly #connections = new Set<Readable>();
  readonly #maxUnwrittenBytes: number;
  readonly #onCut: (unwrittenBytes: number) => void;

  constructor(maxUnwrittenBytes: number, onCut: (unwrittenBytes: number) => void) {
    this.#maxUnwrittenBytes = maxUnwrittenBytes;
    this.#onCut = onCut;
  }

  add(connection: Readable): void {
    this.#connections.add(connection);
  }

  delete(connection: Readable): void {
    this.#connections.delete(connection);
  }

  /** Cuts the stream with the most unread bytes when all streams together exceed the limit. */
  makeRoom(): void {
    let sum = 0;
    let most: Readable | undefined;
    for (const connection of this.#connections) {
      sum += connection.unwrittenBytes;
      if (most === undefined || connection.unwrittenBytes > most.unwrittenBytes) most = connection;
    }
    if (sum <= this.#maxUnwrittenBytes) return;
    most?.cut();
    this.#onCut(sum);
  }
}
