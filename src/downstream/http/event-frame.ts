import { type SplicedMessage, visitPieces } from '../../json/splice.js';

/** The position of an event: the stream of a session and the number of the event in the stream. */
export interface EventId {
  readonly stream: number;
  readonly seq: number;
}

/** One event as written on the wire, in pieces. */
export type Frame = readonly Uint8Array[];

const END = Buffer.from('\n\n');

/** A comment, which clients ignore. It keeps an idle connection open. */
export const KEEP_ALIVE: Frame = [Buffer.from(': keep-alive\n\n')];

/**
 * Copies the message, because frames stay in the replay ring and must not hold the buffer of the message. Without an id,
 * a client cannot resume from the event.
 */
export function messageFrame(id: EventId | undefined, message: SplicedMessage): Frame {
  const pieces: Uint8Array[] = [Buffer.from(id === undefined ? 'data: ' : `id: ${id.stream}:${id.seq}\ndata: `)];
  visitPieces(message, (piece) => pieces.push(onOneLine(piece)));
  pieces.push(END);
  return [Buffer.concat(pieces)];
}

/** How soon a client should reconnect after a connection broke, in milliseconds. */
const RETRY_MS = 1_000;

/** An event without a message: the id to resume from if the connection breaks before the first message, and the retry delay. */
export function primingFrame(id: EventId): Frame {
  return [Buffer.from(`id: ${id.stream}:${id.seq}\nretry: ${RETRY_MS}\ndata: \n\n`)];
}

export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq] = /^(\d{1,15}):(\d{1,15})$/.exec(text) ?? [];
  return stream === undefined || seq === undefined ? undefined : { stream: Number(stream), seq: Number(seq) };
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * Replaces line breaks in JSON by spaces, for transports on which a line break ends the message. Returns the same array
 * if there are none.
 *
 * The bytes must be valid JSON, or a part of it: there, a raw line break occurs only between tokens, where a space
 * means the same.
 */
export function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(LF) && !json.includes(CR)) return json;
  return json.map((byte) => (byte === CR || byte === LF ? SPACE : byte));
}
