import { describe, expect, it } from 'vitest';
import { EventBus } from '../../../../src/host/observe/events/events.js';

const CUT = { kind: 'http.stream-cut', unwrittenBytes: 1 } as const;
const MERGED = { kind: 'lists.merged', tools: 3, only: undefined } as const;

describe('the event bus', () => {
  it('tells every subscriber of a kind, in the order in which they subscribed, and nobody else', () => {
    const bus = new EventBus();
    const told: string[] = [];
    bus.subscribe('lists.merged', ({ tools }) => told.push(`first: ${tools}`));
    bus.subscribe('lists.merged', ({ tools }) => told.push(`second: ${tools}`));
    bus.subscribe('http.stream-cut', () => told.push('cut'));
    bus.emit(MERGED);
    expect(told).toEqual(['first: 3', 'second: 3']);
  });

  it('wants an event only while somebody subscribes to its kind', () => {
    const bus = new EventBus();
    expect(bus.wants('lists.merged')).toBe(false);
    const unsubscribe = [bus.subscribe('lists.merged', () => {}), bus.subscribe('lists.merged', () => {})];
    expect([bus.wants('lists.merged'), bus.wants('http.stream-cut')]).toEqual([true, false]);
    unsubscribe[0]?.();
    expect(bus.wants('lists.merged')).toBe(true);
    unsubscribe[1]?.();
    unsubscribe[1]?.();
    expect(bus.wants('lists.merged')).toBe(false);
  });

  it('lets a listener unsubscribe while it is told', () => {
    const bus = new EventBus();
    const told: string[] = [];
    const unsubscribe = bus.subscribe('http.stream-cut', () => {
      unsubscribe();
      told.push('first');
    });
    bus.subscribe('http.stream-cut', () => told.push('second'));
    bus.emit(CUT);
    bus.emit(CUT);
    expect(told).toEqual(['first', 'second', 'second']);
  });

  it('reports a listener that throws as an internal error, and tells the others all the same', () => {
    const bus = new EventBus();
    const told: unknown[] = [];
    bus.subscribe('internal.error', ({ error }) => told.push(error));
    bus.subscribe('lists.merged', () => {
      throw new Error('broken listener');
    });
    bus.subscribe('lists.merged', () => told.push('other'));
    bus.emit(MERGED);
    expect(told).toEqual([new Error('broken listener'), 'other']);
  });

  it('does not tell a broken listener to internal errors of its own error', () => {
    const bus = new EventBus();
    let calls = 0;
    bus.subscribe('internal.error', () => {
      calls += 1;
      throw new Error('broken again');
    });
    bus.emit({ kind: 'internal.error', error: new Error('first') });
    expect(calls).toBe(1);
  });
});
