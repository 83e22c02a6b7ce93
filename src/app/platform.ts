import { isUtf8 } from 'node:buffer';
import { InternalErrorLog } from '../errors/internal-error-log.js';
import type { BufferPool } from '../io/buffer-pool.js';
import { SharedLimit } from '../io/shared-limit.js';
import { Backpressure } from '../io/streams/backpressure.js';
import { createScan, type ScanEnvelope } from '../mcp/envelope.js';
import { EventBus } from '../observe/events/event-bus.js';
import { systemClock } from '../observe/system-clock.js';
import type { Clock } from '../timing/clock.js';
import { WorkMeter } from '../timing/work-meter.js';
import { timedClock } from '../timing/work-time.js';
import { createBufferPool } from './create-buffer-pool.js';

/** What the transports and the gateway share. It is small, since it loads before the first transport opens. */
export interface Platform {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** Pauses and resumes reading from the servers. */
  readonly backpressure: Backpressure;
  /** Limits the bytes of incomplete messages, of all clients and servers together. */
  readonly partialFrames: SharedLimit;
  /** Buffers for server output. */
  readonly bufferPool: BufferPool;
  readonly events: EventBus;
  readonly internalErrors: InternalErrorLog;
  /** What holds the event loop, and for how long. */
  readonly workTime: WorkMeter;
}

/** Used until the configuration is read. */
const MAX_PARTIAL_BYTES = 256 * 1024 * 1024;

export function createPlatform(): Platform {
  const events = new EventBus();
  const workTime = new WorkMeter({
    clock: systemClock,
    onHeld: ({ work, ms, skipped }) => events.emit({ kind: 'loop.held', work, ms: Math.round(ms), skipped }),
  });
  return {
    clock: timedClock(systemClock, workTime),
    scan: createScan(isUtf8),
    backpressure: new Backpressure(),
    partialFrames: new SharedLimit(MAX_PARTIAL_BYTES),
    bufferPool: createBufferPool(systemClock),
    events,
    internalErrors: new InternalErrorLog(events),
    workTime,
  };
}
