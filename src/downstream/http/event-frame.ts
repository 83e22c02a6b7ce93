import { onOneLine } from '../../json/one-line.js';
import { type SplicedMessage, visitPieces } from '../../json/splice.js';

/** A cursor: which stream of a session, and how far along it. */
export interface EventId {
  readonly stream: number;
  readonly seq: number;
}

/** One event as it goes over the wire, in pieces to be written one after the other. */
export type Frame = readonly Uint8Array[];

const END = Buffer.from('\n\n');

/** Ignored by clients; keeps the connection from looking dead. */
export const KEEP_ALIVE: Frame = [Buffer.from(': keep-alive\n\n')];

/** Frames are kept for a while, and must not keep what the message stands in: it is copied. */
export function messageFrame(id: EventId, message: SplicedMessage): Frame {
  const pieces: Uint8Array[] = [Buffer.from(`id: ${id.stream}:${id.seq}\ndata: `)];
  visitPieces(message, (piece) => pieces.push(onOneLine(piece)));
  pieces.push(END);
  return [Buffer.concat(pieces)];
}

/** How soon a client should come back after a connection has broken, in milliseconds. */
const RETRY_MS = 1_000;

/** No message, only an id to resume from should the connection break before the first message, and when to do so. */
export function primingFrame(id: EventId): Frame {
  return [Buffer.from(`id: ${id.stream}:${id.seq}\nretry: ${RETRY_MS}\ndata: \n\n`)];
}

export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq] = /^(\d{1,15}):(\d{1,15})$/.exec(text) ?? [];
  return stream === undefined || seq === undefined ? undefined : { stream: Number(stream), seq: Number(seq) };
}
