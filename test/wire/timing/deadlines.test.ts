import { describe, expect, it } from 'vitest';
import { Deadlines } from '../../../src/wire/timing/deadlines.js';
import { FakeClock } from '../../support/fake-clock.js';

function watching() {
  const clock = new FakeClock();
  const due: string[] = [];
  const deadlines = new Deadlines<{ name: string; dueAt: number }>(clock, ({ name }) =>
    due.push(`${name}@${clock.now()}`),
  );
  const watch = (name: string, dueAt: number) => {
    const item = { name, dueAt };
    deadlines.watch(item);
    return item;
  };
  return { clock, due, deadlines, watch };
}

describe('Deadlines', () => {
  it('calls for each thing at its time, with one timer for all', () => {
    const { clock, due, watch } = watching();
    watch('b', 20);
    watch('a', 10);
    watch('c', 20);
    expect(clock.pending).toBe(1);
    clock.advance(9);
    expect(due).toEqual([]);
    clock.advance(11);
    expect(due).toEqual(['a@10', 'b@20', 'c@20']);
    expect(clock.pending).toBe(0);
  });

  it('does not call for what was let go in time', () => {
    const { clock, due, deadlines, watch } = watching();
    const a = watch('a', 10);
    watch('b', 15);
    deadlines.unwatch(a);
    clock.advance(20);
    expect(due).toEqual(['b@15']);
    expect(clock.pending).toBe(0);
  });

  it('waits longer for what was given more time meanwhile', () => {
    const { clock, due, watch } = watching();
    const item = watch('a', 10);
    clock.advance(9);
    item.dueAt = 19;
    clock.advance(9);
    expect(due).toEqual([]);
    clock.advance(1);
    expect(due).toEqual(['a@19']);
  });

  it('takes in what is watched while it calls', () => {
    const { clock } = watching();
    const due: number[] = [];
    const deadlines: Deadlines<{ dueAt: number }> = new Deadlines(clock, () => {
      due.push(clock.now());
      if (due.length < 3) deadlines.watch({ dueAt: clock.now() + 5 });
    });
    deadlines.watch({ dueAt: 10 });
    clock.advance(100);
    expect(due).toEqual([10, 15, 20]);
    expect(clock.pending).toBe(0);
  });

  it('does not call for what an earlier call of the same moment let go, and later for what it gave more time', () => {
    const { clock } = watching();
    const due: string[] = [];
    const deadlines: Deadlines<{ name: string; dueAt: number }> = new Deadlines(clock, ({ name }) => {
      due.push(`${name}@${clock.now()}`);
      deadlines.unwatch(b);
      c.dueAt = 15;
    });
    const [b, c] = [
      { name: 'b', dueAt: 10 },
      { name: 'c', dueAt: 10 },
    ];
    for (const each of [{ name: 'a', dueAt: 10 }, b, c]) deadlines.watch(each);
    clock.advance(100);
    expect(due).toEqual(['a@10', 'c@15']);
    expect(clock.pending).toBe(0);
  });

  it('calls for nothing after it was closed, and leaves no timer', () => {
    const { clock, due, deadlines, watch } = watching();
    watch('a', 10);
    deadlines.close();
    deadlines.close();
    expect(clock.pending).toBe(0);
    clock.advance(20);
    expect(due).toEqual([]);
  });
});
