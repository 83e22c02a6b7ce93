import { Socket, type SocketConstructorOpts } from 'node:net';
import type { Writable } from 'node:stream';
import { takeHandle } from './read-into.js';

/**
 * Returns a stream that writes to the same pipe and fails as soon as nobody can read from the pipe, even if nothing is
 * written. Nothing may have been written to the given stream yet.
 *
 * The stdin of a child process is a pair of sockets, of which Node only writes to its own. So Node notices a closed
 * reader with the next write. The new socket also reads, and sees the end when the other socket is closed. The other side
 * may have ended only its own writing, though. An empty write tells: the system refuses it if nobody can read.
 *
 * On Windows, where pipes differ, the given stream is returned, and fails with the next write.
 */
export function watchReader(stream: Writable): Writable {
  const handle = process.platform === 'win32' ? undefined : takeHandle(stream);
  if (handle === undefined) return stream;
  stream.destroy();
  const options: SocketConstructorOpts & { readonly handle: object } = {
    handle,
    readable: true,
    writable: true,
    // The end of reading must not end the writing.
    allowHalfOpen: true,
  };
  const socket = new Socket(options);
  socket.once('end', () => socket.writable && socket.write(NOTHING));
  // Once the writing has ended, nothing is left to watch, and a reader may wait until the pipe is closed both ways.
  socket.once('finish', () => socket.destroy());
  socket.resume();
  return socket;
}

const NOTHING = new Uint8Array(0);
