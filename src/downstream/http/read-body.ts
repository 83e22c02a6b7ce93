import type { IncomingMessage } from 'node:http';
import type { SharedLimit } from '../../io/shared-limit.js';

export interface BodyLimits {
  readonly maxBytes: number;
  /** Bounds the incomplete bodies of all connections together. */
  readonly partialFrames?: SharedLimit | undefined;
}

/**
 * Reads the whole body, or returns why it was not read.
 *
 * A body over the limit is read to its end and discarded. Closing the connection while the client still writes would
 * reset it and lose the answer. The request timeout ends bodies that never end.
 */
export function readBody(
  request: IncomingMessage,
  { maxBytes, partialFrames }: BodyLimits,
): Promise<Uint8Array | 'too-large' | 'buffers-full' | 'aborted'> {
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let length = 0;
    let taken = 0;
    const settle = (outcome: Uint8Array | 'too-large' | 'buffers-full' | 'aborted') => {
      chunks = [];
      partialFrames?.release(taken);
      taken = 0;
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
      } else if (partialFrames?.tryAcquire(chunk.length) === false) {
        refuse('buffers-full');
      } else {
        taken += chunk.length;
        chunks.push(chunk);
      }
    });
    request.once('end', () => settle(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.once('error', () => settle('aborted'));
    request.once('close', () => settle('aborted'));
  });
}
