import { describe, expect, it } from 'vitest';
import { StartSlots } from '../../src/supervision/start-slots.js';
import { FakeClock } from '../support/fake-clock.js';

function setUp(limit: number, isComputing: (key: string) => boolean | undefined = () => undefined) {
  const clock = new FakeClock();
  const started: string[] = [];
  const slow: string[] = [];
  const slots = new StartSlots({ clock, limit, isComputing, onSlow: (key) => slow.push(key) });
  const request = (...keys: string[]) => {
    for (const key of keys) slots.request(key, () => started.push(key));
  };
  return { clock, slots, started, slow, request };
}

describe('StartSlots', () => {
  it('starts as many at once as it has slots, in order of arrival', () => {
    const { slots, started, request } = setUp(2);
    request('a', 'b', 'c', 'd');
    expect(started).toEqual(['a', 'b']);
    slots.release('b');
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('passes a slot on as soon as the start waits for something else than the processor', () => {
    let isComputing = true;
    const { clock, started, request } = setUp(1, () => isComputing);
    request('first', 'next');
    clock.advance(1_000);
    expect(started).toEqual(['first']);
    isComputing = false;
    clock.advance(100);
    expect(started).toEqual(['first', 'next']);
  });

  it('passes a slot on after 2 s, even if the start still computes', () => {
    const { clock, started, request } = setUp(1, () => true);
    request('heavy', 'next');
    clock.advance(1_999);
    expect(started).toEqual(['heavy']);
    clock.advance(1);
    expect(started).toEqual(['heavy', 'next']);
  });

  it('passes a slot on after 200 ms if it is unknown whether the start computes', () => {
    const { clock, started, request } = setUp(1);
    request('hanging', 'next');
    clock.advance(199);
    expect(started).toEqual(['hanging']);
    clock.advance(1);
    expect(started).toEqual(['hanging', 'next']);
  });

  it('F136: reports a start that has waited for 1 s without a break, and one that has begun 5 s ago', () => {
    let isBusy = false;
    const { clock, slow, request } = setUp(3, (key) => key === 'computes' || (key === 'seldom' && isBusy));
    request('waits', 'computes', 'seldom');
    clock.advance(900);
    isBusy = true;
    clock.advance(100);
    expect(slow).toEqual(['waits']);
    isBusy = false;
    clock.advance(999);
    expect(slow).toEqual(['waits']);
    clock.advance(1);
    expect(slow).toEqual(['waits', 'seldom']);
    clock.advance(2_999);
    expect(slow).toEqual(['waits', 'seldom']);
    clock.advance(1);
    expect([slow, clock.pending]).toEqual([['waits', 'seldom', 'computes'], 0]);
  });

  it('reports a start after 1.1 s if it is unknown whether it computes', () => {
    const { clock, slow, request } = setUp(1);
    request('a');
    clock.advance(1_099);
    expect(slow).toEqual([]);
    clock.advance(1);
    expect([slow, clock.pending]).toEqual([['a'], 0]);
  });

  it('reports no start that waits for its slot', () => {
    const { clock, slots, slow, request } = setUp(1, () => true);
    request('heavy', 'next');
    clock.advance(1_900);
    slots.release('next');
    clock.advance(3_100);
    expect(slow).toEqual(['heavy']);
  });

  it('reports no start that computes beyond its slot and ends then', () => {
    const { clock, slots, slow, request } = setUp(1, () => true);
    request('heavy', 'next');
    clock.advance(3_000);
    slots.release('heavy');
    slots.release('next');
    expect([slow, clock.pending]).toEqual([[], 0]);
  });

  it('lets a start that somebody waits for begin beyond the limit, once', () => {
    const { clock, slots, started, request } = setUp(1);
    request('a', 'b', 'c');
    slots.hurry('c');
    slots.hurry('c');
    slots.hurry('unknown');
    expect(started).toEqual(['a', 'c']);
    slots.release('a');
    expect(started).toEqual(['a', 'c']);
    clock.advance(220);
    expect(started).toEqual(['a', 'c', 'b']);
  });

  it.each(['before', 'after'])('begins no other %s a caller waits for one, until 20 ms after its end', (when) => {
    const { clock, slots, started, request } = setUp(4);
    if (when === 'after') request('a', 'called');
    slots.request('called', () => {
      started.push('called');
      if (when === 'before') slots.hurry('called');
    });
    if (when === 'after') slots.hurry('called');
    started.length = 0;
    request('b', 'c');
    slots.release('a');
    expect(started).toEqual([]);
    slots.release('called');
    clock.advance(19);
    expect(started).toEqual([]);
    clock.advance(1);
    expect(started).toEqual(['b', 'c']);
  });

  it('begins all for which callers wait at once, and the others after the last of them', () => {
    const { clock, slots, started, request } = setUp(1);
    request('a', 'b', 'c', 'd');
    for (const key of ['a', 'b', 'c']) slots.hurry(key);
    expect(started).toEqual(['a', 'b', 'c']);
    slots.release('a');
    slots.release('c');
    clock.advance(50);
    expect(started).toEqual(['a', 'b', 'c']);
    slots.release('b');
    clock.advance(20);
    expect(started).toEqual(['a', 'b', 'c', 'd']);
  });

  it('F202: lets others begin beside a start for which a caller waits if it computes for 500 ms, or waits itself', () => {
    let isComputing = true;
    const { clock, slots, started, request } = setUp(2, () => isComputing);
    request('slow');
    slots.hurry('slow');
    request('next');
    clock.advance(499);
    expect(started).toEqual(['slow']);
    clock.advance(1);
    expect(started).toEqual(['slow', 'next']);
    // Another call waits for it.
    slots.hurry('slow');
    slots.release('next');
    request('beside');
    expect(started).toEqual(['slow', 'next', 'beside']);
    slots.release('beside');
    isComputing = false;
    request('waits');
    slots.hurry('waits');
    request('last');
    clock.advance(120);
    expect(started).toEqual(['slow', 'next', 'beside', 'waits', 'last']);
  });

  it('withdraws a request that was not served', () => {
    const { clock, slots, started, request } = setUp(1);
    request('a', 'b', 'c');
    slots.release('b');
    clock.advance(200);
    expect(started).toEqual(['a', 'c']);
  });

  it('serves on when a start is over before the request returns', () => {
    const { clock, slots, started } = setUp(1);
    for (const key of ['a', 'b', 'c']) {
      slots.request(key, () => {
        started.push(key);
        slots.release(key);
      });
    }
    expect(started).toEqual(['a', 'b', 'c']);
    expect(clock.pending).toBe(0);
  });
});
