import { signal } from '@preact/signals';
import type { Frame } from '../server/contract.js';

/** Link to `trunkline web`. `asleep` while the page is hidden for a minute or more. */
export const link = signal<'connecting' | 'live' | 'lost' | 'asleep'>('connecting');

const HIDDEN_MS = 60_000;
/** Silence after which a connection counts as broken. `trunkline web` sends a comment every 15 seconds. */
const SILENT_MS = 40_000;
const SLOWEST_UPDATE_MS = 1_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** Message to the other tabs: a request for the state (`JOIN`), the news that the stream has broken, or frames. */
type Told = typeof JOIN | 'lost' | readonly Frame[];
const JOIN = 'join';

/**
 * Keeps the stream of frames open while the page is seen. One tab reads it for all, because a browser has six connections to a host,
 * and streams of six tabs would leave none for anything else.
 */
export class Stream {
  readonly #onFrames: (frames: readonly Frame[]) => void;
  readonly #headers: () => HeadersInit;
  readonly #onRefused: () => void;
  readonly #tabs = new BroadcastChannel('trunkline-stream');
  /** Ends the stream, or the wait until this tab reads it. */
  #ending: AbortController | undefined;
  #connection: AbortController | undefined;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  #wait = FIRST_WAIT_MS;
  #frames: Frame[] = [];
  #isDrawing = false;

  constructor(onFrames: (frames: readonly Frame[]) => void, headers: () => HeadersInit, onRefused: () => void) {
    this.#onFrames = onFrames;
    this.#headers = headers;
    this.#onRefused = onRefused;
    document.addEventListener('visibilitychange', () => this.#seen());
    this.#tabs.onmessage = ({ data }) => this.#told(data as Told);
  }

  open(): void {
    if (this.#ending !== undefined) return;
    if (document.visibilityState === 'hidden') {
      link.value = 'asleep';
      return;
    }
    if (link.peek() !== 'live') link.value = 'connecting';
    this.#ending = new AbortController();
    const { signal } = this.#ending;
    this.#tell(JOIN);
    // The browser gives the lock to one tab, and to another one when that tab closes its stream.
    navigator.locks.request('stream', { signal }, () => this.#readAll(signal)).catch(() => {});
  }

  close(): void {
    this.#ending?.abort();
    this.#ending = undefined;
    link.value = 'connecting';
  }

  #seen(): void {
    clearTimeout(this.#hidden);
    if (document.visibilityState === 'visible' && link.value === 'asleep') this.open();
    if (document.visibilityState === 'hidden' && this.#ending !== undefined)
      this.#hidden = setTimeout(() => {
        this.close();
        link.value = 'asleep';
      }, HIDDEN_MS);
  }

  /** Reads the stream for all tabs, and opens it again when it breaks. */
  async #readAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const connection = new AbortController();
      this.#connection = connection;
      await this.#read(connection, AbortSignal.any([signal, connection.signal]));
      this.#connection = undefined;
      // A tab that joins gets the state at the start of another connection.
      if (signal.aborted || connection.signal.reason === JOIN) continue;
      link.value = 'lost';
      this.#tell('lost');
      await pause(this.#wait * (0.8 + Math.random() * 0.4), signal);
      this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
    }
  }

  async #read(connection: AbortController, signal: AbortSignal): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => connection.abort(), SILENT_MS);
    };
    try {
      heard();
      const response = await fetch('/stream', { headers: this.#headers(), signal, cache: 'no-store' });
      if (response.status === 401) return this.#onRefused();
      if (!response.ok || response.body === null) return;
      const framesIn = frameReader();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || signal.aborted) return;
        heard();
        const frames = framesIn(value);
        if (frames.length === 0) continue;
        this.#tell(frames);
        this.#receive(frames);
      }
    } catch {
      // The connection broke. The caller opens another one.
    } finally {
      clearTimeout(timer);
    }
  }

  #tell(told: Told): void {
    this.#tabs.postMessage(told);
  }

  #told(told: Told): void {
    if (this.#ending === undefined) return;
    if (told === JOIN) this.#connection?.abort(JOIN);
    else if (told === 'lost') link.value = 'lost';
    else this.#receive(told);
  }

  #receive(frames: readonly Frame[]): void {
    link.value = 'live';
    this.#wait = FIRST_WAIT_MS;
    this.#frames.push(...frames);
    if (!this.#isDrawing) void this.#draw();
  }

  /** Draws the received frames. Pauses four times as long as drawing takes, so that the page still reacts on a slow machine. */
  async #draw(): Promise<void> {
    this.#isDrawing = true;
    while (this.#frames.length > 0) {
      const begunAt = performance.now();
      this.#onFrames(this.#frames.splice(0));
      // Limits the wait, because a hidden page is never painted.
      await Promise.race([nextPaint(), pause(SLOWEST_UPDATE_MS)]);
      await pause(Math.min(SLOWEST_UPDATE_MS, 4 * (performance.now() - begunAt)));
    }
    this.#isDrawing = false;
  }
}

/** Returns a function that takes pieces of a stream of Server-Sent Events, and returns the frames that end in each. */
export function frameReader(): (text: string) => Frame[] {
  let rest = '';
  return (text) => {
    const events = (rest + text).split('\n\n');
    rest = events.pop() ?? '';
    // A comment, which only shows that the server lives, has no data.
    return events.filter((event) => event.startsWith('data: ')).map((event) => JSON.parse(event.slice(6)) as Frame);
  };
}

function nextPaint(): Promise<void> {
  return new Promise((resolve) => void requestAnimationFrame(() => setTimeout(resolve)));
}

/** Resolves after this time, or when the signal ends it. Leaves no listener on the signal, which lasts as long as the stream. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}
