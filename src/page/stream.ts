import { signal } from '@preact/signals';
import type { Frame } from '../web/contract.js';

/** Reads the framing of Server-Sent Events. Comments, which only show that the other end lives, have no data. */
export class EventParser {
  #rest = '';
  #data: string[] = [];

  /** Returns the data of the events that end in this piece of text. */
  push(text: string): string[] {
    const lines = (this.#rest + text).split(/\r?\n/);
    this.#rest = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) {
      if (line === '' && this.#data.length > 0) {
        events.push(this.#data.join('\n'));
        this.#data = [];
      } else if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
    return events;
  }
}

/** Link to `trunkline web`. `asleep` while the page is hidden. */
export const link = signal<'connecting' | 'live' | 'lost' | 'asleep'>('connecting');

const HIDDEN_MS = 60_000;
/** The other end sends a comment every 15 seconds. */
const SILENT_MS = 40_000;
const UPDATE_MS = 100;
const SLOWEST_UPDATE_MS = 1_000;
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [500, 10_000];

/** Tells a tab that joins that calls are watched from now on. */
const NO_CALLS: Frame = { kind: 'calls', calls: [], left: {} };

/** Message between tabs that show the same, which is what their streams ask for. */
type Told = { readonly query: string } /** A tab wants the frames of the stream that another one reads. */ & (
  | { readonly kind: 'join'; readonly by: string }
  /** Frames for all tabs, or for one that has joined. */
  | { readonly kind: 'frames'; readonly to: string; readonly frames: readonly Frame[] }
  | { readonly kind: 'opens' | 'lost' }
);

/**
 * Keeps one stream of frames open while the page is seen. Tabs that show the same share one stream, because a browser has six
 * connections to a host, and streams of six tabs would leave none for anything else.
 */
export class Stream {
  readonly #onFrames: (frames: readonly Frame[]) => void;
  readonly #headers: () => HeadersInit;
  readonly #onRefused: () => void;
  readonly #tabs = new BroadcastChannel('trunkline-stream');
  readonly #id = crypto.randomUUID();
  #query: string | undefined;
  #connection: AbortController | undefined;
  #connected = '';
  /** Streams of the parts that the page showed before. They stay until the next one has sent frames, because the hub forgets calls without a page. */
  readonly #older = new Map<string, AbortController>();
  /** Whether this tab reads the stream, and the newest state that it has read. */
  #isReader = false;
  readonly #latest = new Map<Frame['kind'], Frame>();
  #hidden: ReturnType<typeof setTimeout> | undefined;
  #wait = FIRST_WAIT_MS;
  #frames: Frame[] = [];
  #update: ReturnType<typeof setTimeout> | undefined;
  #updatedAt = 0;
  #pause = UPDATE_MS;

  constructor(onFrames: (frames: readonly Frame[]) => void, headers: () => HeadersInit, onRefused: () => void) {
    this.#onFrames = onFrames;
    this.#headers = headers;
    this.#onRefused = onRefused;
    document.addEventListener('visibilitychange', () => this.#seen());
    this.#tabs.onmessage = ({ data }) => this.#told(data as Told);
  }

  /** Opens the stream, or another one if the page shows something else. */
  open(query: string): void {
    if (this.#connection !== undefined && query === this.#query) return;
    this.#query = query;
    if (document.visibilityState === 'hidden') this.#sleep();
    else this.#connect(query);
  }

  close(): void {
    this.#closeOlder();
    this.#connection?.abort();
    this.#connection = undefined;
    this.#isReader = false;
  }

  #sleep(): void {
    this.close();
    link.value = 'asleep';
  }

  #seen(): void {
    clearTimeout(this.#hidden);
    if (document.visibilityState === 'hidden') this.#hidden = setTimeout(() => this.#sleep(), HIDDEN_MS);
    else if (link.value === 'asleep' && this.#query !== undefined) this.#connect(this.#query);
  }

  #connect(query: string): void {
    if (this.#connection !== undefined) this.#older.set(this.#connected, this.#connection);
    // One tab at a time reads a stream, so the same one has to be closed first.
    this.#older.get(query)?.abort();
    this.#isReader = false;
    const connection = new AbortController();
    const { signal } = connection;
    this.#connection = connection;
    this.#connected = query;
    if (link.value !== 'live') link.value = 'connecting';
    this.#tell({ kind: 'join', query, by: this.#id });
    // The browser gives the lock to one tab, and to another one when that tab closes its stream.
    navigator.locks.request(`stream${query}`, { signal }, () => this.#readAll(query, signal)).catch(() => {});
  }

  #closeOlder(): void {
    for (const stream of this.#older.values()) stream.abort();
    this.#older.clear();
  }

  /** Reads the stream for this tab and the others, and opens it again when it breaks. */
  async #readAll(query: string, signal: AbortSignal): Promise<void> {
    this.#latest.clear();
    this.#isReader = true;
    while (!signal.aborted) {
      this.#tell({ kind: 'opens', query });
      await this.#read(query, signal);
      if (!this.#isShown(signal)) break;
      link.value = 'lost';
      this.#tell({ kind: 'lost', query });
      await pause(this.#wait * (0.8 + Math.random() * 0.4), signal);
      this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
    }
  }

  async #read(query: string, signal: AbortSignal): Promise<void> {
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MS);
    };
    try {
      heard();
      const init = { headers: this.#headers(), signal: AbortSignal.any([signal, silence.signal]) };
      const response = await fetch(`/stream${query}`, { ...init, cache: 'no-store' });
      if (response.status === 401) return this.#onRefused();
      if (!response.ok || response.body === null) return;
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || signal.aborted) return;
        heard();
        const frames = parser.push(value).map((each) => JSON.parse(each) as Frame);
        if (frames.length === 0) continue;
        this.#tell({ kind: 'frames', query, to: '', frames });
        if (!this.#isShown(signal)) continue;
        for (const frame of frames) this.#latest.set(frame.kind, frame.kind === 'calls' ? NO_CALLS : frame);
        this.#receive(frames);
      }
    } catch {
      // The connection broke. The caller opens another one.
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whether this is the stream of the part that the page shows now. */
  #isShown(signal: AbortSignal): boolean {
    return !signal.aborted && signal === this.#connection?.signal;
  }

  #tell(told: Told): void {
    this.#tabs.postMessage(told);
  }

  #told(told: Told): void {
    const isSame = told.query === this.#query && this.#connection !== undefined;
    // A hidden tab leaves its connection to one that is seen.
    if (told.kind === 'opens' && document.visibilityState === 'hidden' && this.#connection !== undefined) this.#sleep();
    else if (told.kind === 'join' && isSame && this.#isReader) this.#joined(told.query, told.by);
    else if (told.kind === 'frames' && isSame && (told.to === '' || told.to === this.#id)) this.#receive(told.frames);
    else if (told.kind === 'lost' && isSame) link.value = 'lost';
  }

  #joined(query: string, to: string): void {
    // Lines of output that were sent before are sent again only at the begin of a stream.
    if (this.#latest.has('output')) this.#connect(query);
    else this.#tell({ kind: 'frames', query, to, frames: [...this.#latest.values()] });
  }

  /** Passes on what came since the last time, because a page that is drawn more often cannot be read. */
  #receive(frames: readonly Frame[]): void {
    if (frames.length === 0) return;
    this.#closeOlder();
    link.value = 'live';
    this.#wait = FIRST_WAIT_MS;
    this.#frames.push(...frames);
    this.#update ??= setTimeout(
      () => {
        this.#update = undefined;
        this.#updatedAt = performance.now();
        this.#onFrames(this.#frames.splice(0));
        requestAnimationFrame(() => setTimeout(() => this.#drawn(), 0));
      },
      Math.max(0, this.#updatedAt + this.#pause - performance.now()),
    );
  }

  /** Makes pauses four times as long as drawing takes, so that the page still reacts on a slow machine. */
  #drawn(): void {
    const cost = performance.now() - this.#updatedAt;
    this.#pause = Math.min(SLOWEST_UPDATE_MS, Math.max(UPDATE_MS, cost * 4));
  }
}

/** Resolves after this time, or when the signal ends it. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
