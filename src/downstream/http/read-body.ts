import type { IncomingMessage } from 'node:http';
import type { FairMemory, Holder } from '../../io/fair-memory.js';
import type { Envelope, Rejection, ScanEnvelope } from '../../mcp/envelope.js';
import { onOneLine } from './event-stream.js';

export interface BodyLimits {
  readonly maxBytes: number;
  /** Bounds the incomplete bodies of all requests together. A body that arrives in one piece takes nothing of it. */
  readonly memory: FairMemory;
  /** Whom an incomplete body belongs to: the token and the session. */
  readonly owners: () => readonly string[];
}

/**
 * Reads the whole body, or returns why it was not read.
 *
 * A body over the limit is read to its end and discarded. Closing the connection while the client still writes would
 * reset it and lose the answer. The request timeout ends bodies that never end.
 */
export function readBody(
  request: IncomingMessage,
  { maxBytes, memory, owners }: BodyLimits,
): Promise<Uint8Array | 'too-large' | 'buffers-full' | 'aborted'> {
  return new Promise((resolve) => {
    const wholeLength = Number(request.headers['content-length']);
    let chunks: Buffer[] = [];
    let length = 0;
    let holder: Holder | undefined;
    const settle = (outcome: Uint8Array | 'too-large' | 'buffers-full' | 'aborted') => {
      chunks = [];
      if (holder !== undefined) memory.leave(holder);
      resolve(outcome);
    };
    let isRefused = false;
    const refuse = (why: 'too-large' | 'buffers-full') => {
      isRefused = true;
      settle(why);
    };
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (isRefused) return;
      if (length > maxBytes) {
        refuse('too-large');
        return;
      }
      chunks.push(chunk);
      if (length === wholeLength) return;
      holder ??= memory.join({ owners: owners(), evict: () => refuse('buffers-full') });
      if (!memory.grow(holder, length)) refuse('buffers-full');
    });
    request.once('end', () => settle(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.once('error', () => settle('aborted'));
    request.once('close', () => settle('aborted'));
  });
}

/** Servers read one message a line, so a body with line breaks is written on one line before it is relayed. */
export function readMessage(body: Uint8Array, scan: ScanEnvelope): Envelope | Rejection {
  const scanned = scan(body);
  if (scanned.kind === 'rejected' && scanned.reason !== 'batch') return scanned;
  const line = onOneLine(body);
  return line === body ? scanned : scan(line);
}
