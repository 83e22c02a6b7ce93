import { isUtf8 } from 'node:buffer';
import { InternalErrorLog } from '../errors/internal-error-log.js';
import type { BufferPool } from '../io/buffer-pool.js';
import { SharedLimit } from '../io/shared-limit.js';
import { Backpressure } from '../io/streams/backpressure.js';
import { createScan, type ScanEnvelope } from '../mcp/envelope.js';
import { systemClock } from '../observe/system-clock.js';
import type { Clock } from '../timing/clock.js';
import { createBufferPool } from './create-buffer-pool.js';

/** What a front and everything behind it share. Little enough to be there before anything else is loaded. */
export interface Platform {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** All that children write to stdout goes through here. */
  readonly backpressure: Backpressure;
  /** What all clients and children together may hold of messages that are not complete, in bytes. */
  readonly partialFrames: SharedLimit;
  /** What children are read into. */
  readonly bufferPool: BufferPool;
  readonly internalErrors: InternalErrorLog;
}

/** Until the configuration is read, which may say otherwise. */
const MAX_PARTIAL_BYTES = 256 * 1024 * 1024;

export function createPlatform(): Platform {
  return {
    clock: systemClock,
    scan: createScan(isUtf8),
    backpressure: new Backpressure(),
    partialFrames: new SharedLimit(MAX_PARTIAL_BYTES),
    bufferPool: createBufferPool(systemClock),
    internalErrors: new InternalErrorLog(),
  };
}
