import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { type ByteReader, copyInto } from '../byte-reader.js';

/**
 * Passes all bytes of a stream to `reader`. Returns the stream to pause, to resume and to listen to for the end. Where possible,
 * this is a new socket that reads into the reader's own memory.
 *
 * By default, Node allocates a block of memory for each read and leaves it to the garbage collector. Node accepts
 * memory to read into (`onread`) only when a socket is made, and makes the sockets of child processes itself. So the
 * handle of such a socket moves to a new one. Nothing may have been read from the stream yet.
 *
 * With `isWritable`, the stream is a connection, such as one of a server with `pauseOnConnect`, and the returned stream is
 * the one to write to as well.
 */
export function readInto<Stream extends Readable>(
  stream: Stream,
  reader: ByteReader,
  isWritable = false,
): Stream | Socket {
  const handle = takeHandle(stream);
  if (handle === undefined) {
    stream.on('data', (chunk: Uint8Array) => copyInto(reader, chunk));
    return stream;
  }
  // The handle stays open.
  leave(stream);
  const onread: OnReadOpts = {
    buffer: () => reader.freeSpace,
    callback: (byteLength) => {
      try {
        reader.filled(byteLength);
      } catch (error) {
        // After the error, Node does not ask for the next free space, and would read into this one again.
        socket.destroy();
        throw error;
      }
      return true;
    },
  };
  // A half-closed connection can still be written to.
  const socket = socketOn(handle, { readable: true, writable: isWritable, allowHalfOpen: isWritable, onread });
  // Node reads the next bytes into the memory that it was given last, so it has to learn that the free space is elsewhere now.
  reader.whenMoved?.(() => {
    if (!socket.destroyed) handle.useUserBuffer(reader.freeSpace);
  });
  reading.add(socket);
  socket.once('close', () => reading.delete(socket));
  socket.resume();
  return socket;
}

/** Ends the old stream, whose handle was taken, because code may wait for its `end` and `close`. */
function leave(stream: Readable): void {
  stream.once('end', () => stream.destroy());
  stream.push(null);
  stream.resume();
}

const reading = new Set<Socket>();

/**
 * Stops all reading. Call it first after an uncaught error, because Node may not have requested the next free space, and would
 * read into memory that has another use by now.
 */
export function stopReading(): void {
  for (const socket of reading) socket.destroy();
}

/**
 * The part of a socket's handle that is used here. Not documented, but unchanged in Node for a decade; a stream without
 * it is read as usual.
 */
interface Handle {
  readonly useUserBuffer: (memory: Uint8Array) => void;
}

interface SocketOptions extends SocketConstructorOpts {
  readonly onread?: OnReadOpts;
  /** Not documented, like `handle`. */
  readonly pauseOnCreate?: boolean;
}

function socketOn(handle: Handle, options: SocketOptions): Socket {
  return new Socket({ ...options, handle } as SocketOptions);
}

/** Takes the handle out of the socket of a pipe, for a new socket. Returns `undefined` for other streams. */
function takeHandle(stream: Readable | Writable): Handle | undefined {
  if (!(stream instanceof Socket) || 'isTTY' in stream) return undefined;
  const holder = stream as unknown as { _handle: Partial<Handle> | null };
  const handle = holder._handle;
  if (typeof handle?.useUserBuffer !== 'function') return undefined;
  holder._handle = null;
  return handle as Handle;
}

/**
 * Returns a stream that writes to the same pipe and fails as soon as the pipe has no reader, even if nothing is
 * written. Nothing may have been written to the given stream yet.
 *
 * The stdin of a child process is a pair of sockets, and Node only writes to its own socket. So Node notices a closed reader
 * with the next write. The new socket also reads, and sees an end when the other side closes its socket or only ends its
 * writing. An empty write tells the two apart, because the system refuses a write to a pipe without a reader.
 *
 * On Windows, where pipes differ, the given stream is returned, and fails with the next write.
 */
export function watchReader(stream: Writable): Writable {
  const handle = process.platform === 'win32' ? undefined : takeHandle(stream);
  if (handle === undefined) return stream;
  stream.destroy();
  // `allowHalfOpen`, because the end of reading must not end the writing.
  const socket = socketOn(handle, { readable: true, writable: true, allowHalfOpen: true });
  socket.once('end', () => socket.writable && socket.write(NOTHING));
  // Once the writing has ended, nothing is left to watch, and a reader may wait until the pipe is closed both ways.
  socket.once('finish', () => socket.destroy());
  socket.resume();
  return socket;
}

const NOTHING = new Uint8Array(0);

/**
 * On Windows, makes the stream write in the background. Returns the stream. By default, Node writes synchronously there to its own stdout
 * and stderr if they are pipes, so a client that does not read would stop the whole process. `platform` is as in `process.platform`.
 */
export function withoutBlocking<S extends Writable>(stream: S, platform: string = process.platform): S {
  const { _handle: handle } = stream as { _handle?: { setBlocking?: (isBlocking: boolean) => unknown } | null };
  if (platform === 'win32') handle?.setBlocking?.(false);
  return stream;
}
