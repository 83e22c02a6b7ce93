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
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [500, 10_000];

/** Keeps one stream of frames open while the page is seen. */
export class Stream {
  readonly #onFrames: (frames: readonly Frame[]) => void;
  readonly #headers: () => HeadersInit;
  readonly #onRefused: () => void;
  #query = '';
  #connection: AbortController | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  #wait = FIRST_WAIT_MS;
  #frames: Frame[] = [];
  #update: ReturnType<typeof setTimeout> | undefined;
  #updatedAt = 0;

  constructor(onFrames: (frames: readonly Frame[]) => void, headers: () => HeadersInit, onRefused: () => void) {
    this.#onFrames = onFrames;
    this.#headers = headers;
    this.#onRefused = onRefused;
    document.addEventListener('visibilitychange', () => this.#seen());
  }

  /** Opens the stream, or another one if the page shows something else. */
  open(query: string): void {
    if (this.#connection !== undefined && query === this.#query) return;
    this.#query = query;
    void this.#connect();
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#connection?.abort();
    this.#connection = undefined;
  }

  #seen(): void {
    clearTimeout(this.#hidden);
    if (document.visibilityState === 'hidden') {
      this.#hidden = setTimeout(() => {
        this.close();
        link.value = 'asleep';
      }, HIDDEN_MS);
    } else if (link.value === 'asleep') void this.#connect();
  }

  async #connect(): Promise<void> {
    this.close();
    const connection = new AbortController();
    this.#connection = connection;
    if (link.value !== 'live') link.value = 'connecting';
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => connection.abort('silent'), SILENT_MS);
    };
    try {
      heard();
      const { signal } = connection;
      const response = await fetch(`/stream${this.#query}`, { headers: this.#headers(), signal, cache: 'no-store' });
      if (response.status === 401) return this.#onRefused();
      if (response.ok && response.body !== null) await this.#read(response.body.getReader(), connection, heard);
    } catch {
      // The connection broke. What follows tries again.
    } finally {
      clearTimeout(silence);
    }
    if (this.#connection !== connection) return;
    link.value = 'lost';
    this.#retry = setTimeout(() => void this.#connect(), this.#wait * (0.8 + Math.random() * 0.4));
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>, connection: AbortController, heard: () => void) {
    const parser = new EventParser();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.#connection !== connection) return;
      heard();
      const events = parser.push(decoder.decode(value, { stream: true }));
      if (events.length === 0) continue;
      link.value = 'live';
      this.#wait = FIRST_WAIT_MS;
      this.#frames.push(...events.map((each) => JSON.parse(each) as Frame));
      this.#update ??= setTimeout(() => this.#pass(), Math.max(0, this.#updatedAt + UPDATE_MS - performance.now()));
    }
  }

  /** Passes on what came since the last time, because a page that is drawn more often cannot be read. */
  #pass(): void {
    this.#update = undefined;
    this.#updatedAt = performance.now();
    this.#onFrames(this.#frames.splice(0));
  }
}
