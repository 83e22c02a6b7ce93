import type { ByteReader } from '../../io/byte-reader.js';
import { Bridge, type BridgeOptions } from '../channel/bridge.js';
import type { MessageReader } from '../channel/message-reader.js';

/** Speaks JSON-RPC over the two pipes of one server process, for as long as the process lives. Reads the bytes of stdout. */
export class StdioBridge extends Bridge implements ByteReader {
  readonly #stdout: MessageReader;

  constructor(options: BridgeOptions) {
    super(options);
    this.#stdout = this.open();
  }

  get freeSpace(): Uint8Array {
    return this.#stdout.freeSpace;
  }

  whenMoved(listener: () => void): void {
    this.#stdout.whenMoved(listener);
  }

  /** Whether the bytes that came last answered a request, or are the middle of an answer that a request waits for. */
  get wasUseful(): boolean {
    return this.#stdout.wasUseful;
  }

  filled(byteLength: number): void {
    this.#stdout.filled(byteLength);
  }
}
