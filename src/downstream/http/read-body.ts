import type { IncomingMessage } from 'node:http';
import type { SharedLimit } from '../../io/shared-limit.js';

export interface BodyLimits {
  readonly maxBytes: number;
  /** What all connections together may hold of bodies that are not complete. */
  readonly held?: SharedLimit | undefined;
}

/**
 * The whole body, or why there is none.
 *
 * A body over the limit is read to its end and thrown away: a connection closed while the client still writes would
 * be reset, and the answer lost with it. The time limit for receiving a request ends those that never end.
 */
export function readBody(
  request: IncomingMessage,
  { maxBytes, held }: BodyLimits,
): Promise<Uint8Array | 'too-large' | 'no-room' | 'aborted'> {
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let length = 0;
    let taken = 0;
    const settle = (outcome: Uint8Array | 'too-large' | 'no-room' | 'aborted') => {
      chunks = [];
      held?.release(taken);
      taken = 0;
      resolve(outcome);
    };
    let isRefused = false;
    const refuse = (why: 'too-large' | 'no-room') => {
      isRefused = true;
      settle(why);
    };
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (isRefused) return;
      if (length > maxBytes) {
        refuse('too-large');
      } else if (held?.tryAcquire(chunk.length) === false) {
        refuse('no-room');
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
