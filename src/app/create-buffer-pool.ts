import type { MessagePort } from 'node:worker_threads';
import { BufferPool } from '../io/buffer-pool.js';
import type { Clock } from '../timing/clock.js';

const KIB = 1024;
const MIB = 1024 * KIB;
/**
 * Sizes for small results, for results of about 1 MiB, and for nearly everything else. Of the largest buffer, only the
 * used part takes memory. From 32 MiB on the C library maps memory separately and returns it as a whole; smaller buffers
 * come from its heap, which hardly ever shrinks.
 */
const SIZES = [64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB];
/** Three large buffers and some small ones. */
const MAX_IDLE_BYTES = 112 * MIB;
/** Idle buffers are freed this long after the last large message. */
const IDLE_MS = 3_000;

/** Memory for server output. Large buffers are reused while messages keep coming, and freed soon afterwards. */
export function createBufferPool(clock: Clock): BufferPool {
  let cancel = () => {};
  let port: MessagePort | undefined;
  const bufferPool = new BufferPool({
    sizes: SIZES,
    maxIdleBytes: MAX_IDLE_BYTES,
    // The old content is never read: the pool hands out a buffer to be written first.
    allocate: (byteLength) => Buffer.allocUnsafeSlow(byteLength),
    // Transferring a buffer to a closed port frees it at once; the garbage collector would free it at an unknown time.
    free: ({ buffer }) => {
      port ??= portWithoutReceiver();
      port.postMessage(undefined, [buffer as ArrayBuffer]);
    },
    later: setImmediate,
    onIdle: () => {
      cancel();
      cancel = clock.schedule(IDLE_MS, () => bufferPool.clear());
    },
  });
  return bufferPool;
}

function portWithoutReceiver(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  return port1;
}
