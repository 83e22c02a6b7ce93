import { PerformanceObserver, performance } from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const MIB = 1024 * 1024;
/** Limit for both halves of the young generation. V8 takes four times as much under load, for hardly less processor time. */
const MAX_YOUNG_BYTES = 8 * MIB;
/** An event loop that is active for a smaller share of the time counts as idle. */
const IDLE_SHARE = 0.01;
/** The heap must have grown this much since the last collection for another one. */
const MIN_GROWTH_BYTES = 2 * MIB;
/** V8 shrinks the young generation at the second collection, after it has seen how few objects are new. */
const COLLECTIONS = 2;

export interface HeapCareTimes {
  /** How long the young generation must not grow after the start: longer than most servers take to start. */
  readonly startMs: number;
  /** How often the event loop is checked for being idle. V8 considers the last five seconds. */
  readonly checkMs: number;
}

const TIMES: HeapCareTimes = { startMs: 5_000, checkMs: 6_000 };

/**
 * Keeps the heap as small as the work needs.
 *
 * V8 grows the young generation when many objects survive, as they do during the start. An idle process keeps the memory,
 * since V8 collects garbage only when memory is allocated. So the young generation must not grow during the start, grows
 * up to a limit under load, and garbage is collected after the event loop was idle for a while.
 */
export function careForHeap({ startMs, checkMs }: HeapCareTimes = TIMES): void {
  const youngSpace = new YoungSpace();
  youngSpace.freeze();
  setTimeout(() => {
    youngSpace.release();
    collectWhenIdle(youngSpace, checkMs);
  }, startMs).unref();
}

function collectWhenIdle(youngSpace: YoungSpace, checkMs: number): void {
  let seen = performance.eventLoopUtilization();
  let bytesLeft = 0;
  let collections = 0;
  const check = () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, seen);
    seen = now;
    if (utilization > IDLE_SHARE) {
      collections = 0;
      return;
    }
    const hasGarbage = collections > 0 || heapBytes() >= bytesLeft + MIN_GROWTH_BYTES;
    if (!hasGarbage || collections === COLLECTIONS) return;
    collections += 1;
    collectGarbage();
    bytesLeft = heapBytes();
    youngSpace.release();
  };
  setInterval(check, checkMs).unref();
}

/** V8's space for young objects. */
class YoungSpace {
  #growth: PerformanceObserver | undefined;

  /** Stops the growth. */
  freeze(): void {
    growBy(1);
    this.#growth?.disconnect();
    this.#growth = undefined;
  }

  /** Allows growth up to the limit. */
  release(): void {
    if (this.#growth !== undefined || isGrown()) return;
    growBy(2);
    this.#growth = new PerformanceObserver(() => {
      if (isGrown()) this.freeze();
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

/** Blocks the event loop for some milliseconds to some dozens of milliseconds. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('globalThis.gc') as (() => void) | undefined;
  gc?.();
  setFlagsFromString('--no-expose-gc');
}
