import { Duplex } from 'node:stream';

/** Two streams in this process: what is written to one is read from the other, as with the two ends of a socket. */
export function memoryPair(): [Duplex, Duplex] {
  const one = new MemoryEnd();
  const other = new MemoryEnd();
  one.peer = other;
  other.peer = one;
  return [one, other];
}

class MemoryEnd extends Duplex {
  peer: MemoryEnd | undefined;
  #onRead: (() => void) | undefined;

  constructor() {
    super({ allowHalfOpen: true });
  }

  override _read(): void {
    const onRead = this.#onRead;
    this.#onRead = undefined;
    onRead?.();
  }

  override _write(chunk: Uint8Array, _encoding: string, callback: () => void): void {
    if (this.peer === undefined || this.peer.destroyed || this.peer.#take(chunk)) callback();
    else this.peer.#onRead = callback;
  }

  override _final(callback: () => void): void {
    this.peer?.push(null);
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const { peer } = this;
    this.peer = undefined;
    // As a socket, which is closed at both ends.
    if (peer !== undefined && !peer.destroyed) queueMicrotask(() => peer.destroy());
    callback(error);
  }

  /** The reader may keep the bytes, and the writer may use their memory again. */
  #take(chunk: Uint8Array): boolean {
    return this.push(Buffer.from(chunk));
  }
}
