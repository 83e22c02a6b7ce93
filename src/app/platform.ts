import { isUtf8 } from 'node:buffer';
import { InternalErrorLog } from '../errors/internal-error.js';
import type { BufferPool } from '../io/buffer-pool.js';
import { FairMemory } from '../io/fair-memory.js';
import { createLineMemory } from '../io/line-decoder.js';
import { MessageFeed } from '../io/message-feed.js';
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
  /** Bounds the unfinished messages on the pipes of all servers and clients together. */
  readonly unfinishedLines: FairMemory;
  /** Bounds the incomplete bodies of all HTTP requests together. */
  readonly requestBodies: FairMemory;
  /** Buffers for server output. */
  readonly bufferPool: BufferPool;
  readonly events: EventBus;
  /** The messages at the edges, for recordings. */
  readonly messages: MessageFeed;
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
    unfinishedLines: createLineMemory(MAX_PARTIAL_BYTES),
    // The HTTP server sets the limit.
    requestBodies: new FairMemory(0),
    bufferPool: createBufferPool(systemClock),
    events,
    messages: new MessageFeed(() => systemClock.now()),
    internalErrors: new InternalErrorLog(events),
    workTime,
  };
}
