import { describe, expect, it } from 'vitest';
import { type Hold, WorkMeter } from '../../src/timing/work-meter.js';
import { timed, timedClock, timedReader } from '../../src/timing/work-time.js';
import { FakeClock } from '../support/fake-clock.js';

function meter() {
  const clock = new FakeClock();
  const told: (Hold & { readonly skipped: number })[] = [];
  const workTime = new WorkMeter({ clock, onHeld: (hold) => told.push(hold) });
  /** Work that takes so long, and may have work within it. */
  const work = (ms: number, kind: Parameters<WorkMeter['measure']>[0], instance?: string, within = () => {}) =>
    timed({ clock, workTime }, kind, instance, () => {
      within();
      clock.advance(ms);
    });
  return { clock, workTime, told, work };
}

describe('what holds the event loop', () => {
  it('is named: the longest piece of work', () => {
    const { workTime, work } = meter();
    work(19, 'merge');
    expect(workTime.longest).toBeUndefined();
    work(30, 'list', 'github');
    work(200, 'stderr', 'noisy');
    work(30, 'client');
    expect(workTime.longest).toEqual({ work: 'reading stderr of noisy', ms: 200, endedAt: 249 });
    expect(workTime.holds).toBe(0);
  });

  it('is reported when it takes more than 500 ms, once a minute, with the number of those that were not reported', () => {
    const { clock, told, workTime, work } = meter();
    work(500, 'merge');
    expect(told).toEqual([]);
    work(501, 'list', 'github');
    work(700, 'output', 'noisy');
    work(800, 'output', 'noisy');
    expect(told).toEqual([{ work: 'parsing a list of github', ms: 501, endedAt: 1001, skipped: 0 }]);
    clock.advance(60_000);
    work(600, 'configuration');
    expect(told.slice(1)).toMatchObject([{ work: 'applying the configuration', skipped: 2 }]);
    expect(workTime.holds).toBe(4);
  });

  it('has the name of the work within it that took most of the time, and counts once', () => {
    const { told, workTime, work } = meter();
    work(50, 'timer', undefined, () => work(600, 'list', 'github'));
    expect(workTime.longest).toMatchObject({ work: 'parsing a list of github', ms: 650 });
    expect([workTime.holds, told.length]).toEqual([1, 1]);
    work(900, 'timer', undefined, () => work(100, 'list', 'github'));
    expect(workTime.longest).toMatchObject({ work: 'the task of a timer', ms: 1000 });
  });

  it('is not the work that ended before it', () => {
    const { workTime, work } = meter();
    work(600, 'list', 'github');
    work(650, 'merge');
    expect(workTime.longest).toMatchObject({ work: 'merging the lists' });
    expect(workTime.holds).toBe(2);
  });
});

describe('how long the pieces of work take', () => {
  it('is known as a share of them', () => {
    const { workTime, work } = meter();
    expect(workTime.quantile(0.99)).toBeUndefined();
    for (let each = 0; each < 98; each += 1) work(0.3, 'output', 'a');
    work(5, 'output', 'a');
    work(300, 'output', 'a');
    expect([0.5, 0.98, 0.99, 1].map((share) => workTime.quantile(share))).toEqual([1, 1, 8, 300]);
  });

  it('forgets in time what was long ago', () => {
    const { workTime, work } = meter();
    for (let each = 0; each < 1_000; each += 1) workTime.measure('output', 'a', 10);
    for (let each = 0; each < 1_000_000; each += 1) workTime.measure('output', 'a', 0.1);
    expect(workTime.quantile(0.9999)).toBe(1);
    work(0, 'merge');
  });
});

describe('work is measured', () => {
  it('for each read of a stream that has at least 1 KiB', () => {
    const { clock, workTime } = meter();
    const read: number[] = [];
    const reader = timedReader(
      {
        freeSpace: new Uint8Array(8),
        filled: (byteLength) => {
          read.push(byteLength);
          clock.advance(40);
        },
      },
      { clock, workTime },
      'output',
      'a',
    );
    expect(reader.freeSpace).toHaveLength(8);
    reader.filled(1_023);
    expect(workTime.longest).toBeUndefined();
    reader.filled(1_024);
    expect(read).toEqual([1_023, 1_024]);
    expect(workTime.longest).toMatchObject({ work: 'reading the output of a', ms: 40 });
  });

  it('for each task of a clock, also one that throws', () => {
    const { clock, workTime } = meter();
    const measured = timedClock(clock, workTime);
    measured.schedule(10, () => {
      clock.advance(25);
      throw new Error('of the task');
    });
    const cancel = measured.schedule(5, () => expect.unreachable());
    cancel();
    expect(() => clock.advance(10)).toThrow('of the task');
    expect(measured.now()).toBe(35);
    expect(workTime.longest).toMatchObject({ work: 'the task of a timer', ms: 25 });
    expect(clock.pending).toBe(0);
  });
});
