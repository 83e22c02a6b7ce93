import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import type { BufferPool } from '../../io/buffer-pool.js';
import type { ByteReader } from '../../io/byte-reader.js';
import type { FairMemory } from '../../io/fair-memory.js';
import { type DroppedLineSink, LineDecoder } from '../../io/line-decoder.js';
import type { Backpressure } from '../../io/streams/backpressure.js';
import { FairWriter } from '../../io/streams/fair-writer.js';
import { clientPace, TurnReader } from '../../io/streams/turn-reader.js';
import type { MessageSink } from '../../jsonrpc/message.js';
import { type MessageEnds, readMessageEnds } from '../../jsonrpc/message-ends.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { Clock } from '../../timing/clock.js';
import { ClientPipe, type ClientPipeOptions } from './client-pipe.js';

export interface StdioTransportOptions
  extends Pick<
    ClientPipeOptions,
    'scan' | 'chooseEra' | 'principal' | 'onInternalError' | 'origin' | 'view' | 'messages'
  > {
  /** Begins to read: passes all bytes of the client to the reader, and returns the stream that they are from. */
  readonly read: (reader: ByteReader) => Readable;
  readonly output: Writable;
  /** Wraps the sink of the client, if lines are numbered. */
  readonly framing?: ((sink: MessageSink) => Framing) | undefined;
  /** Pauses the servers while the client does not read, unless another client still reads. */
  readonly backpressure: Backpressure;
  readonly maxLineBytes: number;
  /** Bounds the unfinished lines of all servers and clients together. */
  readonly unfinishedLines?: FairMemory;
  /** Provides the memory that the client's messages are read into. */
  readonly bufferPool?: BufferPool;
  readonly clock: Pick<Clock, 'now'>;
  /** Runs a task in the next turn of the event loop. Present if other clients wait while this one is read. */
  readonly nextTurn?: (task: () => void) => void;
  /** The client's first message was received. Called once. */
  readonly onFirstMessage?: () => void;
  /** The client closed stdin. It may still wait for answers. Called at most once, before `onEnd`. */
  readonly onInputEnd?: () => void;
  /** The client closed stdin and has all answers, or stdout broke, or the transport was closed. Called once. */
  readonly onEnd: () => void;
  /** Reports that the session of a client that does not read was closed. Its pipes stay open. Called once. */
  readonly onUnread?: (unwrittenBytes: number) => void;
}

/** Form of the messages for a client that must know which of its lines each of them settles. */
export interface Framing extends Required<Pick<ClientPipeOptions, 'openReply' | 'firstRequestId'>> {
  readonly sink: MessageSink;
  /** Writes something that the other side skips. */
  readonly probe: () => void;
}

/** The open pipes of the client. */
export interface StdioTransport {
  /** Requests that were not answered yet. */
  readonly inFlight: number;
  /** Name, version and capabilities of the client; `undefined` before the client stated them. */
  readonly profile: ClientProfile | undefined;
  /** The revision that the client opened with; `undefined` before it did. */
  readonly revision: string | undefined;
  /**
   * Finds out whether the client still reads stdout, which only a write to the pipe shows. Writes a space, which JSON allows
   * before a message, unless a message is being written. `onEnd` follows if the client has left.
   */
  probe(): void;
  /** Cancels the requests that were not answered. Calling it again does nothing. */
  close(): void;
  /** Calls back once everything sent until now is written, or cannot be written any more. */
  whenAllWritten(onAllWritten: () => void): void;
}

/** Serves the one client at the other end of stdin and stdout. */
export function openStdioTransport(options: StdioTransportOptions): StdioTransport {
  const { output, maxLineBytes, unfinishedLines, bufferPool, onEnd, onInputEnd } = options;
  const { scan, chooseEra, principal, onInternalError, origin, view, messages } = options;
  const backpressure = options.backpressure.client();
  const onUnread = (unwrittenBytes: number) => {
    client.close();
    options.onUnread?.(unwrittenBytes);
  };
  const sink = new FairWriter(output, backpressure, {
    onUnread,
    input: { pause: () => flow.pause(), resume: () => flow.resume() },
  });
  const framing = options.framing?.(sink);
  const { openReply, firstRequestId } = framing ?? {};
  const clientSink = framing?.sink ?? sink;
  const client = new ClientPipe({
    ...{ scan, chooseEra, principal, onInternalError, origin, view, messages },
    ...{ sink: clientSink, openReply, firstRequestId },
  });
  let hasEnded = false;
  const end = () => {
    if (hasEnded) return;
    hasEnded = true;
    decoder.end();
    client.close();
    backpressure.close();
    onEnd();
  };
  const inputEnded = () => {
    if (hasEnded) return;
    decoder.end();
    onInputEnd?.();
    client.whenAllAnswered(() => sink.whenAllWritten(end));
  };
  let { onFirstMessage } = options;
  const lines = {
    line: (bytes: Uint8Array, start: number, end: number) => {
      client.receive(bytes, start, end);
      if (onFirstMessage === undefined) return;
      onFirstMessage();
      onFirstMessage = undefined;
    },
  };
  const dropped: DroppedLineSink = {
    oversized: (line) => {
      if (!line.isEvicted) client.refuseLine(line, tooLarge(maxLineBytes));
      // It was answered when it was dropped, but perhaps without the id, which only its end shows.
      else if (!hasId(beginningOf(line.head)) && hasId(line)) client.refuseLine(line, WHY_EVICTED);
      client.lineDropped();
    },
    evicted: (head) => client.refuseLine(beginningOf(head), WHY_EVICTED),
  };
  const decoder = new LineDecoder({
    sink: lines,
    dropped,
    maxLineBytes,
    unfinishedLines,
    bufferPool,
  });
  const { clock, nextTurn } = options;
  const turns = nextTurn && new TurnReader(decoder, { stream: () => input, clock, pace: clientPace(nextTurn) });
  const input = options.read(turns ?? decoder);
  const flow = turns ?? input;
  input.once('end', inputEnded);
  input.once('error', inputEnded);
  // EPIPE means that the client has left, which is not an error of the gateway.
  output.on('error', end);
  // A terminal stays, and a file has no reader.
  const isPipe = output instanceof Socket && !('isTTY' in output);
  return {
    get inFlight() {
      return client.inFlight;
    },
    get profile() {
      return client.profile;
    },
    get revision() {
      return client.revision;
    },
    probe: () => {
      if (hasEnded || sink.unwrittenBytes > 0) return;
      if (framing !== undefined) framing.probe();
      else if (isPipe) output.write(' ');
    },
    close: end,
    whenAllWritten: (onAllWritten) => sink.whenAllWritten(onAllWritten),
  };
}

function beginningOf(head: Uint8Array): MessageEnds {
  return { head, tail: new Uint8Array(0) };
}

function hasId(ends: MessageEnds): boolean {
  return readMessageEnds(ends).id !== undefined;
}

function tooLarge(maxLineBytes: number): string {
  return `The message was not read and had no effect: it is larger than the limit of ${maxLineBytes} bytes. Send less at once`;
}

const WHY_EVICTED =
  'The message was dropped before its end: it was the largest of the unfinished messages, whose limit gateway.maxPartial is reached. Send it again';
