import { describe, expect, it } from 'vitest';
import { StartSlots } from '../../../src/servers/supervision/supervisor.js';
import { FakeClock } from '../../support/fake-clock.js';

function setUp(limit: number) {
  const clock = new FakeClock();
  const started: string[] = [];
  const slow: string[] = [];
  const slots = new StartSlots({ clock, limit, onSlow: (key) => slow.push(key) });
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

  it('passes a slot on after 1 s', () => {
    const { clock, started, request } = setUp(1);
    request('hanging', 'next');
    clock.advance(999);
    expect(started).toEqual(['hanging']);
    clock.advance(1);
    expect(started).toEqual(['hanging', 'next']);
  });

  it('F136: reports a start that has begun 2.5 s ago, and none that waits for its slot or is over', () => {
    const { clock, slots, slow, request } = setUp(1);
    request('hanging', 'ready', 'withdrawn');
    slots.release('withdrawn');
    clock.advance(2_499);
    expect(slow).toEqual([]);
    clock.advance(1);
    slots.release('ready');
    clock.advance(10_000);
    expect([slow, clock.pending]).toEqual([['hanging'], 0]);
  });

  it('begins a start that needs no slot at once, and reports it as slow, too', () => {
    const { clock, slots, started, slow, request } = setUp(1);
    request('process', 'next');
    slots.request('url', () => started.push('url'), false);
    expect(started).toEqual(['process', 'url']);
    slots.release('process');
    expect(started).toEqual(['process', 'url', 'next']);
    slots.release('next');
    clock.advance(2_500);
    expect(slow).toEqual(['url']);
  });

  it('lets a start that a caller waits for begin beyond the limit, once', () => {
    const { slots, started, request } = setUp(1);
    request('a', 'b', 'c');
    slots.hurry('c');
    slots.hurry('c');
    slots.hurry('unknown');
    expect(started).toEqual(['a', 'c']);
    slots.release('a');
    slots.release('c');
    expect(started).toEqual(['a', 'c', 'b']);
  });

  it.each(['before', 'after'])('begins no other %s a caller waits for one, until its end', (when) => {
    const { slots, started, request } = setUp(4);
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
    expect(started).toEqual(['a', 'b', 'c', 'd']);
  });

  it('F202: lets others begin after 500 ms beside a start for which a caller waits', () => {
    const { clock, slots, started, request } = setUp(2);
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
