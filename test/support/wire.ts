// Messages as bytes and envelopes, and `flush`, for unit tests in memory.
import { isUtf8 } from 'node:buffer';
import { Writable } from 'node:stream';
import { type SplicedMessage, splice } from '../../src/wire/json/splice.js';
import type { TrackedSink } from '../../src/wire/jsonrpc/message.js';
import {
  createScan,
  type Envelope,
  type NotificationEnvelope,
  type RequestEnvelope,
  type ResponseEnvelope,
  type ScanEnvelope,
} from '../../src/wire/mcp/envelope.js';

export const scan: ScanEnvelope = createScan(isUtf8);

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape.
export type Message = Record<string, any>;

/** Records the messages that are sent, as the other side would read them. */
export class RecordingSink implements TrackedSink {
  readonly lines: string[] = [];
  /** The source of each line. */
  readonly sources: (string | undefined)[] = [];
  /** The number of unwritten bytes that the test pretends. */
  unwrittenBytes = 0;
  sentBytes = 0;
  /** The number of the last bytes that the test pretends the other side can never read. */
  lostBytes = 0;
  /** Called with each line as it is sent. */
  onLine: (line: string) => void = () => {};

  send(message: SplicedMessage, source?: string): void {
    const line = Buffer.from(splice(message)).toString();
    this.sentBytes += line.length + 1;
    this.lines.push(line);
    this.sources.push(source);
    message.lease?.release();
    this.onLine(line);
  }

  close(): number {
    return this.sentBytes - this.lostBytes;
  }

  get messages(): Message[] {
    return this.lines.map((line) => JSON.parse(line));
  }

  get last(): Message {
    return JSON.parse(this.lines.at(-1) ?? 'null');
  }

  /** Messages that were sent since the last call. */
  take(): Message[] {
    this.sources.length = 0;
    return this.lines.splice(0).map((line) => JSON.parse(line));
  }
}

export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text);
}

/** The text as one line; objects as JSON. */
export function lineOf(message: Message | string): Uint8Array {
  return bytesOf(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
}

export function requestOf(message: Message | string): RequestEnvelope {
  return scanned(message, 'request') as RequestEnvelope;
}

export function notificationOf(message: Message | string): NotificationEnvelope {
  return scanned(message, 'notification') as NotificationEnvelope;
}

export function responseOf(message: Message | string): ResponseEnvelope {
  return scanned(message, 'response') as ResponseEnvelope;
}

function scanned(message: Message | string, kind: Envelope['kind']): Envelope {
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  const envelope = scan(bytesOf(text));
  if (envelope.kind !== kind) throw new Error(`Not a ${kind}: ${text}`);
  return envelope as Envelope;
}

/** A stream that passes all chunks of a write to `accept`, and goes on when `done` is called. */
export function writableTo(accept: (chunks: Buffer[], done: () => void) => void): Writable {
  return new Writable({
    write: (chunk, _, done) => accept([chunk], done),
    writev: (chunks, done) =>
      accept(
        chunks.map(({ chunk }) => chunk),
        done,
      ),
  });
}

/**
 * Runs every continuation of the promises that are settled, and of those that these settle: all microtasks end before
 * the next turn of the event loop. One call is enough where nothing waits for a timer or for I/O.
 */
export function flush(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
