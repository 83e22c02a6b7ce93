import { describe, expect, it } from 'vitest';
import { RequestsById } from '../../src/jsonrpc/correlation-table.js';

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
