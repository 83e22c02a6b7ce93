import type { IncomingMessage } from 'node:http';

export interface ReadEvent {
  /** The stream and the number of the event, such as `1.0`. */
  readonly id?: string;
  /** The whole id, for `Last-Event-ID`. */
  readonly lastEventId?: string;
  readonly data?: string;
  /** Present for a comment, which is no event. */
  readonly comment?: string;
  /** The delay before the next connection, in milliseconds. */
  readonly retry?: string;
}

/** Reads a stream of events as a client would, one block at a time. */
export class EventReader {
  readonly response: IncomingMessage;
  readonly #events: ReadEvent[] = [];
  #rest = '';
  #isEnded = false;
  #wake: () => void = () => {};

  constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#push(text));
    response.on('close', () => {
      this.#isEnded = true;
      this.#wake();
    });
    // Some tests wait for a cut connection, which looks like the end of the stream.
    response.on('error', () => {});
  }

  /** The next block; `undefined` once the stream has ended. */
  async next(): Promise<ReadEvent | undefined> {
    while (this.#events.length === 0 && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#events.shift();
  }

  /** Returns all events until the stream ends. */
  async rest(): Promise<ReadEvent[]> {
    const events: ReadEvent[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) events.push(event);
    return events;
  }

  #push(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    this.#events.push(...blocks.map(parseBlock));
    this.#wake();
  }
}

function parseBlock(block: string): ReadEvent {
  let event: ReadEvent = {};
  // According to the standard, a lone CR ends a line too.
  for (const line of block.split(/\r\n|\r|\n/)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === '') event = { ...event, comment: value ?? '' };
    else if (field === 'id')
      event = { ...event, id: /^\d+\.\d+/.exec(value ?? '')?.[0] ?? '', lastEventId: value ?? '' };
    else if (field === 'retry' && value === '500') event = { ...event, retry: value };
    else if (field === 'data')
      event = { ...event, data: event.data === undefined ? (value ?? '') : `${event.data}\n${value}` };
  }
  return event;
}
