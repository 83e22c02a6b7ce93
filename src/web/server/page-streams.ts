import type { Cancel, Clock } from '../../wire/timing/clock.js';
import type { Frame } from './contract.js';
import type { PageSource } from './page-source.js';

export const STREAM_LIMITS = {
  /** Shortest time between two frames of a stream. */
  frameMs: 100,
  /** Limit on the calls in a frame, and on the latest calls that a page gets first if the hub is followed already. */
  calls: 200,
  /**
   * Time between two heartbeats. At each, the stream of a session that has ended is closed, and any other stream gets a comment
   * of Server-Sent Events, if it takes more.
   */
  heartbeatMs: 15_000,
  /** Heartbeats for which a page may read nothing before its stream is closed. */
  silentBeats: 4,
  streams: 16,
  /** Time for which the hub is still followed after the last page has gone, because a reload ends the old page first. */
  reloadMs: 5_000,
};

export interface StreamSink {
  /** Returns whether the connection takes more at once. If not, `drained` of the stream is called later. */
  write(text: string): boolean;
  /** Whether the session of the page goes on. Counts as a use of the session. */
  isAlive(): boolean;
  end(): void;
}

type Calls = Extract<Frame, { readonly kind: 'calls' }>;

/**
 * The frames of one page. If the page reads slowly, one frame of each kind waits here: the newest one, or for calls, one with
 * the latest calls and the counts of the calls before them.
 */
export class PageStream {
  readonly #sink: StreamSink;
  readonly #clock: Clock;
  /** Frames to send, in this order. */
  readonly #waiting = new Map<Frame['kind'], Frame>();
  #nextAt = 0;
  #isFull = false;
  #silentBeats = 0;
  #cancelSend: Cancel | undefined;
  #cancelBeat: Cancel;

  constructor(sink: StreamSink, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
    this.#cancelBeat = clock.schedule(STREAM_LIMITS.heartbeatMs, this.#beat);
  }

  /** Sends the frame, at once or later. It replaces or joins a waiting frame of its kind. */
  offer(frame: Frame): void {
    // A `hello` begins another configuration. Frames of the one before must not follow it.
    if (frame.kind === 'hello') this.#waiting.clear();
    const before = this.#waiting.get(frame.kind) as Calls | undefined;
    this.#waiting.set(frame.kind, frame.kind === 'calls' ? withCalls(before, frame) : frame);
    this.#send();
  }

  /** Call this when the connection takes more again. */
  drained(): void {
    this.#isFull = false;
    this.#silentBeats = 0;
    this.#send();
  }

  close(): void {
    this.#cancelBeat();
    this.#cancelSend?.();
    this.#waiting.clear();
  }

  readonly #send = (): void => {
    const [first] = this.#waiting;
    if (first === undefined || this.#isFull || this.#cancelSend !== undefined) return;
    const waitMs = this.#nextAt - this.#clock.now();
    if (waitMs > 0) {
      this.#cancelSend = this.#clock.schedule(waitMs, () => {
        this.#cancelSend = undefined;
        this.#send();
      });
      return;
    }
    const [kind, frame] = first;
    this.#waiting.delete(kind);
    this.#nextAt = this.#clock.now() + STREAM_LIMITS.frameMs;
    this.#isFull = !this.#sink.write(`data: ${JSON.stringify(frame)}\n\n`);
    this.#send();
  };

  readonly #beat = (): void => {
    this.#cancelBeat = this.#clock.schedule(STREAM_LIMITS.heartbeatMs, this.#beat);
    if (this.#isFull) this.#silentBeats += 1;
    if (this.#silentBeats >= STREAM_LIMITS.silentBeats || !this.#sink.isAlive()) this.#sink.end();
    else if (!this.#isFull) this.#isFull = !this.#sink.write(': \n\n');
  };
}

/** Joins a waiting frame with the next one. The result has the latest calls, and the counts of the others by outcome. */
function withCalls(before: Calls | undefined, next: Calls): Calls {
  const all = [...(before?.calls ?? []), ...next.calls];
  const left: Record<string, number> = { ...before?.left };
  const count = (outcome: string, more: number) => {
    left[outcome] = (left[outcome] ?? 0) + more;
  };
  for (const [outcome, more] of Object.entries(next.left)) count(outcome, more);
  for (const { outcome } of all.slice(0, -STREAM_LIMITS.calls)) count(outcome, 1);
  return { ...before, ...next, calls: all.slice(-STREAM_LIMITS.calls), left };
}

/** All open pages. The hub is followed once for all of them, until some time after the last of them has gone. */
export class PageStreams {
  readonly #source: PageSource;
  readonly #clock: Clock;
  readonly #streams = new Set<PageStream>();
  /** The newest frame of each kind, and the latest calls, with which further pages begin. */
  readonly #latest = new Map<Frame['kind'], Frame>();
  #end: (() => void) | undefined;
  #cancelEnd: Cancel | undefined;

  constructor(source: PageSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  add(stream: PageStream): void {
    this.#cancelEnd?.();
    this.#streams.add(stream);
    for (const frame of this.#latest.values()) stream.offer(frame);
    this.#end ??= this.#source.follow((frame) => this.#took(frame));
  }

  remove(stream: PageStream): void {
    stream.close();
    if (!this.#streams.delete(stream) || this.#streams.size > 0 || this.#end === undefined) return;
    this.#cancelEnd = this.#clock.schedule(STREAM_LIMITS.reloadMs, () => this.close());
  }

  close(): void {
    this.#cancelEnd?.();
    this.#end?.();
    this.#end = undefined;
    this.#latest.clear();
  }

  #took(frame: Frame): void {
    if (frame.kind === 'hello') this.#latest.clear();
    this.#latest.set(frame.kind, frame.kind === 'calls' ? this.#latestCalls(frame) : frame);
    for (const stream of this.#streams) stream.offer(frame);
  }

  /** The latest calls of this hub. `since` is the time from which on the list has every call. */
  #latestCalls(frame: Calls): Calls {
    const before = frame.since === undefined ? (this.#latest.get('calls') as Calls | undefined) : undefined;
    const all = [...(before?.calls ?? []), ...frame.calls];
    const calls = all.slice(-STREAM_LIMITS.calls);
    const isCut = calls.length < all.length;
    // Calls of which only the number is known are missing, too.
    const isCounted = Object.keys(frame.left).length > 0;
    const begins = [before?.since, frame.since, isCut ? calls[0]?.at : 0, isCounted ? calls.at(-1)?.at : 0];
    return { kind: 'calls', calls, left: {}, since: Math.max(...begins.map((at = 0) => at)) };
  }
}
