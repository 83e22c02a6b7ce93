import { describe, expect, it } from 'vitest';
import {
  AnsweredRequests,
  CorrelationTable,
  RequestsById,
  readId,
} from '../../../src/wire/jsonrpc/correlation-table.js';
import { answerTo, bridging, progressOf, sendCall } from '../../upstream/stdio/bridging.js';

describe('an id that the gateway has given', () => {
  it.each([
    ['1', 1],
    ['1.0', 1],
    ['1e0', 1],
    ['"1"', 1],
    ['"1.0"', 1],
    ['"\\u0031"', 1],
    ['-1', -1],
    ['1.5', 1.5],
    ['"one"', undefined],
    ['""', undefined],
    ['" 1"', undefined],
    ['"0x1"', undefined],
    ['"12345678901234567"', undefined],
    ['null', undefined],
    ['true', undefined],
    ['[1]', undefined],
  ])('comes back as %s, which is read as %s', (token, id) => {
    expect(readId(Buffer.from(token), { start: 0, end: token.length })).toBe(id);
  });
});

describe('the correlation table', () => {
  it('counts ids up from 1 and never gives one twice', () => {
    const pending = new CorrelationTable<string>();
    expect([pending.add('a'), pending.add('b')]).toEqual([1, 2]);
    pending.settle(1);
    pending.abandon(2);
    expect(pending.add('c')).toBe(3);
    pending.drain();
    expect(pending.add('d')).toBe(4);
  });

  it('gives a request back once, and only under its own id', () => {
    const pending = new CorrelationTable<string>();
    const id = pending.add('a');
    expect(pending.get(id)).toBe('a');
    expect(pending.settle(2)).toBeUndefined();
    expect(pending.settle(id)).toBe('a');
    expect(pending.settle(id)).toBeUndefined();
    expect(pending.abandon(id)).toBeUndefined();
    expect(pending.size).toBe(0);
  });

  it('tells a late answer from a second one and from a nonsensical one', () => {
    const pending = new CorrelationTable<string>();
    pending.settle(pending.add('answered'));
    pending.abandon(pending.add('abandoned'));
    expect(pending.stray(1)).toBe('duplicate');
    expect(pending.stray(2)).toBe('late');
    expect(pending.stray(2)).toBe('duplicate');
    for (const id of [undefined, 0, -1, 1.5, 3, Number.POSITIVE_INFINITY]) {
      expect(pending.stray(id), String(id)).toBe('unknown');
    }
  });

  it('remembers the last 1,024 ids that were given up and forgets the oldest', () => {
    const pending = new CorrelationTable<number>();
    for (let count = 1; count <= 1_025; count += 1) pending.abandon(pending.add(count));
    expect(pending.stray(1)).toBe('duplicate');
    expect(pending.stray(2)).toBe('late');
    expect(pending.stray(1_025)).toBe('late');
  });

  it('remembers them for ten minutes', () => {
    const pending = new CorrelationTable<string>();
    for (const at of [0, 1_000]) pending.abandon(pending.add('a'), at);
    expect(pending.stray(1, 10 * 60_000 - 1)).toBe('late');
    pending.abandon(pending.add('b'), 2_000);
    expect(pending.stray(2, 10 * 60_000 + 1_000)).toBe('duplicate');
    expect(pending.stray(3, 10 * 60_000 + 1_000)).toBe('late');
  });

  it('hands over everything that waits, oldest first, and is empty then', () => {
    const pending = new CorrelationTable<string>();
    for (const request of ['a', 'b', 'c']) pending.add(request);
    pending.settle(2);
    expect([...pending.all()]).toEqual(['a', 'c']);
    expect(pending.drain()).toEqual(['a', 'c']);
    expect(pending.size).toBe(0);
    expect(pending.drain()).toEqual([]);
  });
});

describe('requests that became tasks', () => {
  it('stay until they end', () => {
    const lasting = new AnsweredRequests<string>();
    const end = lasting.add(1, 'one');
    lasting.add(2, 'two');
    expect([lasting.get(1), lasting.get(2), lasting.get(3)]).toEqual(['one', 'two', undefined]);
    end();
    end();
    expect([lasting.get(1), lasting.get(2)]).toEqual([undefined, 'two']);
  });

  it('are forgotten, the oldest first, when nobody tells of their end', () => {
    const lasting = new AnsweredRequests<number>();
    for (let id = 1; id <= 300; id += 1) lasting.add(id, id);
    expect([lasting.get(44), lasting.get(45), lasting.get(300)]).toEqual([undefined, 45, 300]);
  });
});

describe('a request at a child that has become a task', () => {
  it('reports progress after its answer until it is over, and only what moves forward', () => {
    const { bridge, say } = bridging();
    const { listener, sent } = sendCall(bridge);
    say(progressOf(1, 1), answerTo(1, { task: {} }));
    const end = sent?.keepProgress();
    say(progressOf(1, 2), progressOf(1, 2), progressOf(1, 1.5));
    expect(listener.reports).toHaveLength(2);
    expect(bridge.counters.staleProgress).toBe(2);
    end?.();
    say(progressOf(1, 3));
    expect(listener.reports).toHaveLength(2);
    expect(bridge.counters.staleProgress).toBe(3);
  });

  it('is not timed out for the silence after its answer', () => {
    const { bridge, say, clock } = bridging();
    const { listener, sent } = sendCall(bridge);
    say(answerTo(1, { task: {} }));
    sent?.keepProgress();
    say(progressOf(1, 1));
    clock.advance(100_000);
    say(progressOf(1, 2));
    expect(listener.told).toHaveLength(1);
    expect(listener.reports).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });
});

describe('requests by their ids', () => {
  it.each(['7', '"7"'])('may share the id %s, and leave in any order', (id) => {
    for (const order of ['abc', 'cba', 'bac', 'bca']) {
      const requests = new RequestsById<string>();
      for (const request of 'abc') requests.add(id, request);
      expect(requests.withId(id)).toEqual(['a', 'b', 'c']);
      const left = new Set('abc');
      for (const request of order) {
        expect(requests.has(id)).toBe(true);
        requests.delete(id, request);
        left.delete(request);
        expect(requests.withId(id)).toEqual([...left]);
        expect(requests.size).toBe(left.size);
      }
      expect(requests.has(id)).toBe(false);
    }
  });

  it('stay when another one leaves under their id', () => {
    const requests = new RequestsById<string>();
    for (const id of ['1', '"1"']) {
      requests.add(id, 'a');
      requests.delete(id, 'b');
      requests.delete('2', 'a');
      expect(requests.withId(id)).toEqual(['a']);
    }
    expect(requests.size).toBe(2);
  });
});
