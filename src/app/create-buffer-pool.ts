import type { MessagePort } from 'node:worker_threads';
import { BufferPool } from '../io/buffer-pool.js';
import type { Clock } from '../timing/clock.js';

const KIB = 1024;
const MIB = 1024 * KIB;
/**
 * Small ones, one for results of about 1 MiB, and one that nearly everything fits into: only what was used of it takes
 * memory. From 32 MiB on the C library maps memory apart and gives it back whole; what is smaller comes from its heap,
 * which hardly ever shrinks.
 */
const SIZES = [64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB];
/** Three large ones and some small ones. */
const MAX_IDLE_BYTES = 112 * MIB;
/** After the last large message. */
const KEPT_MS = 3_000;

/** Memory for what children say. What is large is used again while more comes, and given back soon after. */
export function createBufferPool(clock: Clock): BufferPool {
  let cancel = () => {};
  let nobody: MessagePort | undefined;
  const bufferPool = new BufferPool({
    sizes: SIZES,
    maxIdleBytes: MAX_IDLE_BYTES,
    // What is in it is written over before it is looked at.
    allocate: (byteLength) => Buffer.allocUnsafeSlow(byteLength),
    // Given away to nobody, it is freed at once: when the garbage collector comes for it cannot be told.
    free: ({ buffer }) => {
      nobody ??= portToNobody();
      nobody.postMessage(undefined, [buffer as ArrayBuffer]);
    },
    later: setImmediate,
    onIdle: () => {
      cancel();
      cancel = clock.schedule(KEPT_MS, () => bufferPool.clear());
    },
  });
  return bufferPool;
}

function portToNobody(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  return port1;
}
