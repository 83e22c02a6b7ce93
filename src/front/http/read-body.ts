import type { IncomingMessage } from 'node:http';

/**
 * The whole body, or why there is none.
 *
 * A body over the limit is read to its end and thrown away: a connection closed while the client still writes would
 * be reset, and the answer lost with it. The time limit for receiving a request ends those that never end.
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | 'too-large' | 'aborted'> {
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) {
        chunks.push(chunk);
      } else {
        chunks = [];
        resolve('too-large');
      }
    });
    request.once('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.once('error', () => resolve('aborted'));
    request.once('close', () => resolve('aborted'));
  });
}
