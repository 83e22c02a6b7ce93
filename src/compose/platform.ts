import { isUtf8 } from 'node:buffer';
import { createScan, type ScanEnvelope } from '../mcp/envelope.js';
import { systemClock } from '../observe/system-clock.js';
import { Flow } from '../streams/flow.js';
import type { Clock } from '../timing/clock.js';

/** What a front and everything behind it share. Little enough to be there before anything else is loaded. */
export interface Platform {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** All that children write to stdout goes through here. */
  readonly flow: Flow;
}

export function createPlatform(): Platform {
  return { clock: systemClock, scan: createScan(isUtf8), flow: new Flow() };
}
