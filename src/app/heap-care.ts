import { PerformanceObserver, performance } from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const MIB = 1024 * 1024;
/** Both halves of it. V8 would take four times as much under load, for hardly less processor time. */
const MAX_YOUNG_BYTES = 8 * MIB;
/** The share of its time that an event loop with nothing to do may be at work. */
const IDLE_SHARE = 0.01;
/** How much more than after the last time makes it worth while to collect garbage. */
const WORTH_WHILE_BYTES = 2 * MIB;
/** V8 makes the space for young objects smaller by the second collection, when it has seen how little was new since. */
const COLLECTIONS = 2;

export interface HeapCareTimes {
  /** For how long after the start the space for young objects is held. Longer than servers take to start, mostly. */
  readonly heldMs: number;
  /** How often it is looked whether there was nothing to do. V8 judges by the last five seconds. */
  readonly lookMs: number;
}

const TIMES: HeapCareTimes = { heldMs: 5_000, lookMs: 6_000 };

/**
 * Keeps the heap as small as what is done needs.
 *
 * V8 enlarges its space for young objects when many of them stay, which is so while we start, and keeps what it has when
 * there is nothing more to do, since it collects garbage only as new memory is taken. So the space is held while we
 * start, grows up to a bound under load, and garbage is collected when the event loop had nothing to do for a while.
 */
export function careForHeap({ heldMs, lookMs }: HeapCareTimes = TIMES): void {
  const youngSpace = new YoungSpace();
  youngSpace.hold();
  setTimeout(() => {
    youngSpace.release();
    collectWhenIdle(youngSpace, lookMs);
  }, heldMs).unref();
}

function collectWhenIdle(youngSpace: YoungSpace, lookMs: number): void {
  let seen = performance.eventLoopUtilization();
  let bytesLeft = 0;
  let collections = 0;
  const look = () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, seen);
    seen = now;
    if (utilization > IDLE_SHARE) {
      collections = 0;
      return;
    }
    const isWorthWhile = collections > 0 || heapBytes() >= bytesLeft + WORTH_WHILE_BYTES;
    if (!isWorthWhile || collections === COLLECTIONS) return;
    collections += 1;
    collectGarbage();
    bytesLeft = heapBytes();
    youngSpace.release();
  };
  setInterval(look, lookMs).unref();
}

/** What V8 has for young objects. */
class YoungSpace {
  #growth: PerformanceObserver | undefined;

  /** It does not grow from now on. */
  hold(): void {
    growBy(1);
    this.#growth?.disconnect();
    this.#growth = undefined;
  }

  /** It may grow, until it has reached its bound. */
  release(): void {
    if (this.#growth !== undefined || isGrown()) return;
    growBy(2);
    this.#growth = new PerformanceObserver(() => {
      if (isGrown()) this.hold();
    });
    this.#growth.observe({ type: 'gc' });
  }
}

function growBy(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`);
}

function isGrown(): boolean {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  return space === undefined || space.space_size >= MAX_YOUNG_BYTES;
}

function heapBytes(): number {
  return getHeapStatistics().total_heap_size;
}

/** Takes some milliseconds to some dozens of them, in which nothing else is done. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('globalThis.gc') as (() => void) | undefined;
  gc?.();
  setFlagsFromString('--no-expose-gc');
}
