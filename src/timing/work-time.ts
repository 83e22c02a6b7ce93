import type { Clock } from './clock.js';

/** What the event loop does. While it does one piece of work, everything else waits. */
export type WorkKind = keyof typeof PHRASES;

/** Learns how long pieces of work take. A piece is a whole read or a whole list, never one message. */
export interface WorkTime {
  /**
   * A piece of work has just ended that held the event loop for `ms` milliseconds. `instance` names the instance of the
   * server that it was for; `undefined` if it was for no server.
   */
  measure(kind: WorkKind, instance: string | undefined, ms: number): void;
}

/** For parts that run without anybody who wants to know, such as most tests. */
export const NO_WORK_TIME: WorkTime = { measure: () => {} };

interface Timing {
  readonly clock: Pick<Clock, 'now'>;
  readonly workTime: WorkTime;
}

/** Does a piece of work and measures it. */
export function timed<T>({ clock, workTime }: Timing, kind: WorkKind, instance: string | undefined, work: () => T): T {
  const startedAt = clock.now();
  try {
    return work();
  } finally {
    workTime.measure(kind, instance, clock.now() - startedAt);
  }
}

/** Takes the bytes of a stream: `ByteReader` in `src/io/byte-reader.ts`. */
interface Reader {
  readonly freeSpace: Uint8Array;
  filled(byteLength: number): void;
  whenMoved?(listener: () => void): void;
}

/** Fewer bytes are a few small messages. The work on them takes microseconds, and reading the clock would add to each call. */
const MIN_BYTES = 1024;

/** The reader, with the work on each read of at least 1 KiB measured. */
export function timedReader(
  reader: Reader,
  { clock, workTime }: Timing,
  kind: WorkKind,
  instance: string | undefined,
): Reader {
  return {
    get freeSpace() {
      return reader.freeSpace;
    },
    whenMoved: (listener) => reader.whenMoved?.(listener),
    // Inline: a closure for each read costs more than the two readings of the clock.
    filled: (byteLength) => {
      if (byteLength < MIN_BYTES) {
        reader.filled(byteLength);
        return;
      }
      const startedAt = clock.now();
      reader.filled(byteLength);
      workTime.measure(kind, instance, clock.now() - startedAt);
    },
  };
}

/** The clock, with each of its tasks measured. */
export function timedClock(clock: Clock, workTime: WorkTime): Clock {
  return {
    now: () => clock.now(),
    schedule: (delayMs, task) => clock.schedule(delayMs, () => timed({ clock, workTime }, 'timer', undefined, task)),
  };
}

/** Names a piece of work, such as `parsing a list of github`. */
export function describeWork(kind: WorkKind, instance: string | undefined): string {
  return instance === undefined ? PHRASES[kind] : `${PHRASES[kind]} of ${instance}`;
}

const PHRASES = {
  output: 'reading the output',
  stderr: 'reading stderr',
  list: 'parsing a list',
  merge: 'merging the lists',
  client: 'reading messages of a client',
  configuration: 'applying the configuration',
  start: 'starting the process',
  timer: 'the task of a timer',
} as const;
