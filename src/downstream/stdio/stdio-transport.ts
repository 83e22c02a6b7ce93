import type { Readable, Writable } from 'node:stream';
import type { BufferPool } from '../../io/buffer-pool.js';
import { LineDecoder } from '../../io/line-decoder.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import type { Backpressure } from '../../io/streams/backpressure.js';
import { FairWriter } from '../../io/streams/fair-writer.js';
import { readInto } from '../../io/streams/read-into.js';
import type { MessageSink } from '../../jsonrpc/message.js';

/** A client's connection as a front sees it. */
export interface ClientSession {
  /** A line: all of the bytes, or those from `start` to `end`. */
  receive(bytes: Uint8Array, start?: number, end?: number): void;
  refuseOversized(maxBytes: number): void;
  close(): void;
}

export interface StdioTransportOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Pauses the servers while the client does not read, unless other clients do. */
  readonly backpressure: Backpressure;
  readonly maxLineBytes: number;
  /** What all connections together may hold of lines that are not complete. */
  readonly held?: SharedLimit;
  /** Where the memory is from that the client's messages are read into. */
  readonly bufferPool?: BufferPool;
  readonly openSession: (sink: MessageSink) => ClientSession;
  /** The client's first message was received. Called once. */
  readonly onFirstMessage?: () => void;
  /** The client closed its end, or its pipe broke. Called once. */
  readonly onEnd: () => void;
  /** The client does not read, so many bytes wait for it, and its session was closed. Its pipes stay open. Called once. */
  readonly onUnread?: (unwrittenBytes: number) => void;
}

/** Serves the one client at the other end of our stdin and stdout. */
export function openStdioTransport(options: StdioTransportOptions): void {
  const { output, maxLineBytes, held, bufferPool, openSession, onEnd } = options;
  const backpressure = options.backpressure.client();
  const onUnread = (unwrittenBytes: number) => {
    session.close();
    options.onUnread?.(unwrittenBytes);
  };
  const session = openSession(new FairWriter(output, backpressure, { onUnread }));
  let hasEnded = false;
  const end = () => {
    if (hasEnded) return;
    hasEnded = true;
    session.close();
    backpressure.close();
    onEnd();
  };
  let { onFirstMessage } = options;
  const sink = {
    line: (bytes: Uint8Array, start: number, end: number) => {
      session.receive(bytes, start, end);
      if (onFirstMessage === undefined) return;
      onFirstMessage();
      onFirstMessage = undefined;
    },
    oversized: () => session.refuseOversized(maxLineBytes),
  };
  const input = readInto(options.input, new LineDecoder({ sink, maxLineBytes, sharedLimit: held, bufferPool }));
  input.once('end', end);
  input.once('error', end);
  // EPIPE: the client is gone, which is no error of ours.
  output.on('error', end);
}
