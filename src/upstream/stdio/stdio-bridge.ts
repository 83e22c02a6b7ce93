import type { ByteReader } from '../../wire/io/byte-reader.js';
import { Bridge, type BridgeOptions } from '../channel/bridge.js';
import type { MessageReader } from '../channel/message-reader.js';

/** Speaks JSON-RPC over stdin and stdout of one server process, for as long as the process lives. */
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

  /** Whether the latest bytes answered a request, or may be part of an answer. */
  get wasUseful(): boolean {
    return this.#stdout.wasUseful;
  }

  filled(byteLength: number): void {
    this.#stdout.filled(byteLength);
  }
}
