import { describe, expect, it } from 'vitest';
import { RequestsById } from '../../src/jsonrpc/correlation-table.js';
import type { IdKey } from '../../src/jsonrpc/envelope-scanner.js';

describe('requests by their ids', () => {
  it('are found until they are removed', () => {
    const requests = new RequestsById<string>();
    requests.add('1', 'a');
    requests.add('"1"', 'b');
    requests.delete('1', 'a');
    requests.add('2', 'c');
    expect(['1', '"1"', '2'].map((id) => requests.has(id))).toEqual([false, true, true]);
    expect(requests.withId('"1"')).toEqual(['b']);
    expect(requests.withId('1')).toEqual([]);
    expect(requests.all()).toEqual(['b', 'c']);
    expect(requests.size).toBe(2);
  });

  it('are told apart when their numbers have the same last bits', () => {
    const requests = new RequestsById<number>();
    for (const id of [1, 257, 513]) requests.add(id, id);
    expect(requests.size).toBe(3);
    expect([1, 257, 513, 769].map((id) => requests.get(id))).toEqual([1, 257, 513, undefined]);
    expect(requests.all()).toEqual([1, 257, 513]);
    requests.delete(1, 1);
    expect([1, 257, 513, 769].map((id) => requests.has(id))).toEqual([false, true, true, false]);
    requests.delete(257, 257);
    requests.delete(513, 513);
    expect([requests.size, requests.all()]).toEqual([0, []]);
  });

  it.each<IdKey>([7, '"7"'])('may share the id %s, and leave in any order', (id) => {
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
    for (const id of [1, '"1"']) {
      requests.add(id, 'a');
      requests.delete(id, 'b');
      requests.delete(2, 'a');
      expect(requests.get(id)).toBe('a');
    }
    expect(requests.size).toBe(2);
  });
});
