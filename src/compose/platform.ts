import { isUtf8 } from 'node:buffer';
import type { Rooms } from '../jsonrpc/rooms.js';
import { SharedLimit } from '../jsonrpc/shared-limit.js';
import { createScan, type ScanEnvelope } from '../mcp/envelope.js';
import { systemClock } from '../observe/system-clock.js';
import { Flow } from '../streams/flow.js';
import type { Clock } from '../timing/clock.js';
import { createRooms } from './create-rooms.js';
import { Faults } from './faults.js';

/** What a front and everything behind it share. Little enough to be there before anything else is loaded. */
export interface Platform {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** All that children write to stdout goes through here. */
  readonly flow: Flow;
  /** What all clients and children together may hold of messages that are not complete, in bytes. */
  readonly partialFrames: SharedLimit;
  /** What children are read into. */
  readonly rooms: Rooms;
  readonly faults: Faults;
}

/** Until the configuration is read, which may say otherwise. */
const MAX_PARTIAL_BYTES = 256 * 1024 * 1024;

export function createPlatform(): Platform {
  return {
    clock: systemClock,
    scan: createScan(isUtf8),
    flow: new Flow(),
    partialFrames: new SharedLimit(MAX_PARTIAL_BYTES),
    rooms: createRooms(systemClock),
    faults: new Faults(),
  };
}
