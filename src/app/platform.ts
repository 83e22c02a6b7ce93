import { isUtf8 } from 'node:buffer';
import type { MessagePort } from 'node:worker_threads';
import { legacyEra } from '../downstream/legacy/legacy-session.js';
import { modernEra } from '../downstream/modern/modern-session.js';
import type { GatewayPort } from '../downstream/port.js';
import { type ChooseEra, eraChooser } from '../downstream/transport.js';
import { InternalErrorLog } from '../host/errors/internal-error.js';
import { EventBus } from '../host/observe/events/events.js';
import { AwakeClock, systemClock } from '../host/observe/system-clock.js';
import { BufferPool } from '../wire/io/buffer-pool.js';
import { createLineMemory } from '../wire/io/line-decoder.js';
import { MessageFeed } from '../wire/io/message-feed.js';
import { FairMemory } from '../wire/io/shared-limit.js';
import { Backpressure } from '../wire/io/streams/backpressure.js';
import { createScan, type ScanEnvelope } from '../wire/mcp/envelope.js';
import type { Clock } from '../wire/timing/clock.js';

/** Objects that the transports and the gateway share. They are few, because they load before the first transport opens. */
export interface Platform {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** Pauses and resumes reading from the servers. */
  readonly backpressure: Backpressure;
  /** Limit on the unfinished messages of all servers and of the clients on pipes together. */
  readonly unfinishedLines: FairMemory;
  /** Limit on the incomplete bodies of all HTTP requests together. */
  readonly requestBodies: FairMemory;
  readonly bufferPool: BufferPool;
  readonly events: EventBus;
  /** The messages of all clients and servers, for recordings. */
  readonly messages: MessageFeed;
  readonly internalErrors: InternalErrorLog;
}

/** Principal of local clients: the operating-system user that started the gateway. */
export const LOCAL_USER = 'local';

/** Limit on unfinished messages until the configuration is read. */
const MAX_PARTIAL_BYTES = 256 * 1024 * 1024;

export function createPlatform(): Platform {
  const events = new EventBus();
  const clock = new AwakeClock(systemClock, (task, everyMs) => setInterval(task, everyMs).unref());
  return {
    clock,
    scan: createScan(isUtf8),
    backpressure: new Backpressure(),
    unfinishedLines: createLineMemory(MAX_PARTIAL_BYTES),
    // The HTTP server sets the limit.
    requestBodies: new FairMemory(0),
    bufferPool: createBufferPool(clock),
    events,
    messages: new MessageFeed(() => clock.now()),
    internalErrors: new InternalErrorLog(events),
  };
}

/** Connects the protocol eras to the gateway. */
export function createEraChooser(
  platform: Platform,
  gateway: GatewayPort,
  serverInfo: { readonly name: string; readonly title?: string; readonly version: string },
): ChooseEra {
  const { clock, scan, internalErrors } = platform;
  const { onInternalError } = internalErrors;
  const legacy = legacyEra({ clock, scan, onInternalError, gateway, serverInfo });
  const modern = modernEra({ clock, scan, onInternalError, gateway, serverInfo });
  return eraChooser({ legacy, modern });
}

const KIB = 1024;
const MIB = 1024 * KIB;
/**
 * Buffer sizes for small results, for results of about 1 MiB, and for nearly all others. The largest buffer takes memory only for its used
 * part. The C library maps 32 MiB or more separately and returns them as a whole; it takes smaller buffers from its heap, which hardly ever
 * shrinks.
 */
const SIZES = [64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB];
/** Limit on idle buffers: three large ones and some small ones. */
const MAX_IDLE_BYTES = 112 * MIB;
/** Time from the last large message until idle buffers are freed. */
const IDLE_MS = 3_000;

/** Memory for server output. Large buffers are reused while messages keep coming, and freed soon afterwards. */
export function createBufferPool(clock: Clock): BufferPool {
  let cancel = () => {};
  let port: MessagePort | undefined;
  const bufferPool = new BufferPool({
    sizes: SIZES,
    maxIdleBytes: MAX_IDLE_BYTES,
    // The memory is not cleared, because each lease is written before it is read.
    allocate: (byteLength) => Buffer.allocUnsafeSlow(byteLength),
    // Transferring a buffer to a closed port frees the memory at once. The garbage collector would free it later.
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
