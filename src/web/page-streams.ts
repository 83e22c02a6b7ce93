import type { Cancel, Clock } from '../timing/clock.js';
import type { CallRow, Frame, OutputLine } from './contract.js';
import type { Following, PageSource } from './page-source.js';

export const STREAM_LIMITS = {
  /** Time between two frames of a stream. */
  frameMs: 100,
  /** Calls or lines of output in a frame, and calls that wait for one. */
  rows: 200,
  /** Lines of output that wait for a frame, and those of a followed output that a further page gets first. */
  lines: 500,
  /** Time between two comments on a stream, which also find out that its session has ended. */
  heartbeatMs: 15_000,
  /** Heartbeats for which a page may read nothing before its stream is closed. */
  silentBeats: 4,
  streams: 16,
};

/** The facts that one page shows. */
interface Shown {
  readonly calls: boolean;
  readonly output: string | undefined;
}

/** The connection of one page. */
export interface StreamSink {
  /** Returns whether the connection takes more at once. If not, `drained` of the stream is called later. */
  write(text: string): boolean;
  /** Whether the session of the page lasts. */
  isAlive(): boolean;
  end(): void;
}

type Of<Kind extends Frame['kind']> = Extract<Frame, { readonly kind: Kind }>;

/**
 * The frames of one page. Frames that wait are merged, so that a page that reads slowly holds one frame of each kind: the newest
 * state, and calls and lines up to a limit, beyond which they are counted.
 */
export class PageStream {
  readonly shown: Shown;
  readonly #sink: StreamSink;
  readonly #clock: Clock;
  /** In the order in which they are sent. */
  readonly #waiting = new Map<Frame['kind'], Frame>();
  #sent = 0;
  #nextAt = 0;
  #isFull = false;
  #silentBeats = 0;
  #cancelSend: Cancel | undefined;
  #cancelBeat: Cancel;

  constructor(shown: Shown, sink: StreamSink, clock: Clock) {
    this.shown = shown;
    this.#sink = sink;
    this.#clock = clock;
    this.#cancelBeat = clock.schedule(STREAM_LIMITS.heartbeatMs, this.#beat);
  }

  offer(frame: Frame): void {
    if (frame.kind === 'calls' && !this.shown.calls) return;
    if (frame.kind === 'output' && frame.server !== this.shown.output) return;
    this.#waiting.set(frame.kind, merged(this.#waiting.get(frame.kind), frame));
    this.#send();
  }

  /** The connection takes more. */
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
    const [kind, whole] = first;
    const [frame, rest] = cut(whole);
    this.#waiting.delete(kind);
    if (rest !== undefined) this.#waiting.set(kind, rest);
    this.#sent += 1;
    this.#nextAt = this.#clock.now() + STREAM_LIMITS.frameMs;
    this.#isFull = !this.#sink.write(`id: ${this.#sent}\ndata: ${JSON.stringify(frame)}\n\n`);
    this.#send();
  };

  readonly #beat = (): void => {
    this.#cancelBeat = this.#clock.schedule(STREAM_LIMITS.heartbeatMs, this.#beat);
    if (this.#isFull) this.#silentBeats += 1;
    if (this.#silentBeats >= STREAM_LIMITS.silentBeats || !this.#sink.isAlive()) this.#sink.end();
    else if (!this.#isFull) this.#isFull = !this.#sink.write(': \n\n');
  };
}

/** A frame in place of one that waits and the next of its kind. */
function merged(before: Frame | undefined, next: Frame): Frame {
  if (next.kind === 'calls') return withCalls(before as Of<'calls'> | undefined, next);
  if (next.kind === 'output') return withLines(before as Of<'output'> | undefined, next);
  return next;
}

/** The first calls are kept, because the page has room for as many as it can show, and the counts of all others. */
function withCalls(before: Of<'calls'> | undefined, next: Of<'calls'>): Of<'calls'> {
  const calls: CallRow[] = [...(before?.calls ?? [])];
  const left: Record<string, number> = { ...before?.left };
  for (const [outcome, count] of Object.entries(next.left)) left[outcome] = (left[outcome] ?? 0) + count;
  for (const call of next.calls) {
    if (calls.length < STREAM_LIMITS.rows) calls.push(call);
    else left[call.outcome] = (left[call.outcome] ?? 0) + 1;
  }
  return { ...before, ...next, calls, left };
}

/** The last lines are kept. */
function withLines(waiting: Of<'output'> | undefined, next: Of<'output'>): Of<'output'> {
  const before = next.isFirst ? undefined : waiting;
  const lines = [...(before?.lines ?? []), ...next.lines];
  const excess = Math.max(lines.length - STREAM_LIMITS.lines, 0);
  const left = (before?.left ?? 0) + next.left + excess;
  return { ...next, isFirst: next.isFirst || before?.isFirst === true, lines: lines.slice(excess), left };
}

/** The part of a frame that may be sent now, and the rest. */
function cut(frame: Frame): [Frame, Frame?] {
  if (frame.kind !== 'output' || frame.lines.length <= STREAM_LIMITS.rows) return [frame];
  const lines = frame.lines.slice(0, STREAM_LIMITS.rows);
  return [
    { ...frame, lines },
    { ...frame, lines: frame.lines.slice(STREAM_LIMITS.rows), isFirst: false, left: 0 },
  ];
}

/** All open pages. They share one following of the hub, which ends with the last of them. */
export class PageStreams {
  readonly #source: Pick<PageSource, 'follow'>;
  readonly #streams = new Set<PageStream>();
  /** The newest frame of each kind that describes a state. */
  readonly #latest = new Map<Frame['kind'], Frame>();
  readonly #outputs = new Map<string, readonly OutputLine[]>();
  #following: Following | undefined;

  constructor(source: Pick<PageSource, 'follow'>) {
    this.#source = source;
  }

  add(stream: PageStream): void {
    // The calls are followed already, so no first frame comes.
    if ([...this.#streams].some(({ shown }) => shown.calls)) stream.offer({ kind: 'calls', calls: [], left: {} });
    this.#streams.add(stream);
    for (const frame of this.#latest.values()) stream.offer(frame);
    const { output: server = '' } = stream.shown;
    const lines = this.#outputs.get(server);
    if (lines !== undefined) stream.offer({ kind: 'output', server, lines, isFirst: true, left: 0 });
    this.#following ??= this.#source.follow((frame) => this.#took(frame));
    this.#tell(this.#following);
  }

  remove(stream: PageStream): void {
    stream.close();
    if (!this.#streams.delete(stream) || this.#following === undefined) return;
    if (this.#streams.size > 0) {
      this.#tell(this.#following);
      return;
    }
    this.#following.close();
    this.#following = undefined;
    this.#latest.clear();
    this.#outputs.clear();
  }

  #tell(following: Following): void {
    const shown = [...this.#streams].map((stream) => stream.shown);
    const outputs = new Set(shown.flatMap(({ output }) => output ?? []));
    for (const server of this.#outputs.keys()) if (!outputs.has(server)) this.#outputs.delete(server);
    following.want({ calls: shown.some(({ calls }) => calls), outputs });
  }

  #took(frame: Frame): void {
    if (frame.kind === 'output') {
      const lines = [...(frame.isFirst ? [] : (this.#outputs.get(frame.server) ?? [])), ...frame.lines];
      this.#outputs.set(frame.server, lines.slice(-STREAM_LIMITS.lines));
    } else if (frame.kind !== 'calls') this.#latest.set(frame.kind, frame);
    for (const stream of this.#streams) stream.offer(frame);
  }
}
