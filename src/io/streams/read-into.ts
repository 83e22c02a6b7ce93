import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import type { Readable } from 'node:stream';
import { type ByteReader, copyInto } from '../byte-reader.js';

/**
 * Lets `reader` have all that comes through a stream, and returns the stream to be paused, resumed and listened to for
 * the end: where that is possible another one, which reads into the reader's own room.
 *
 * Otherwise Node makes a block of memory for each read, which is cut to what came and left to the garbage collector. It
 * lets one say where to read to when a socket is made, but not for the sockets that it makes for child processes: there
 * the handle has to change hands. Nothing may have been read from the stream yet.
 */
export function readInto(stream: Readable, reader: ByteReader): Readable {
  const handle = takeHandle(stream);
  if (handle === undefined) {
    stream.on('data', (chunk: Uint8Array) => copyInto(reader, chunk));
    return stream;
  }
  const options: SocketConstructorOpts & { readonly handle: object; readonly onread: OnReadOpts } = {
    handle,
    readable: true,
    writable: false,
    onread: {
      buffer: () => reader.freeSpace,
      callback: (byteLength) => {
        try {
          reader.filled(byteLength);
        } catch (error) {
          // Node would not ask for the next room, and read into this one.
          socket.destroy();
          throw error;
        }
        return true;
      },
    },
  };
  const socket = new Socket(options);
  reading.add(socket);
  socket.once('close', () => reading.delete(socket));
  socket.resume();
  return socket;
}

const reading = new Set<Socket>();

/**
 * Reads nothing any more. To be called first after an error that nobody caught: Node may not have learnt which room is
 * next, and would read into one that is somebody else's by now.
 */
export function stopReading(): void {
  for (const socket of reading) socket.destroy();
}

/** Not documented, but the same in all versions of Node for a decade. Whoever has no such handle keeps what it has. */
interface Handle {
  readonly useUserBuffer: () => void;
}

function takeHandle(stream: Readable): Handle | undefined {
  if (!(stream instanceof Socket) || 'isTTY' in stream) return undefined;
  const holder = stream as unknown as { _handle: Partial<Handle> | null };
  const handle = holder._handle;
  if (typeof handle?.useUserBuffer !== 'function') return undefined;
  // It ends as if the other side had closed it, which others may wait for, and leaves the handle open.
  holder._handle = null;
  stream.once('end', () => stream.destroy());
  stream.push(null);
  stream.resume();
  return handle as Handle;
}
