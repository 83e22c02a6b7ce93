import { describe, expect, it } from 'vitest';
import { InFlightExchanges } from '../../src/downstream/in-flight-exchanges.js';
import type { IdKey } from '../../src/jsonrpc/id-key.js';

/** Nothing of an exchange is used here but its key. */
interface Keyed {
  readonly key: IdKey;
}

/** Nothing of an exchange is used here but that it is one. */
function someExchanges(count: number): Keyed[] {
  return Array.from({ length: count }, () => ({}) as Keyed);
}

describe('the requests of a client that were not answered yet', () => {
  it('are found by their ids until they leave', () => {
    const [a, b, c] = someExchanges(3) as [Keyed, Keyed, Keyed];
    const inFlight = new InFlightExchanges<Keyed>();
    inFlight.add('1', a);
    inFlight.add('"1"', b);
    inFlight.delete('1', a);
    inFlight.add('2', c);
    expect([inFlight.has('1'), inFlight.has('"1"'), inFlight.has('2')]).toEqual([false, true, true]);
    expect(inFlight.withId('"1"')).toEqual([b]);
    expect(inFlight.withId('1')).toEqual([]);
    expect(inFlight.all()).toEqual([b, c]);
    expect(inFlight.size).toBe(2);
  });

  it('are told apart by numbers with the same last bits', () => {
    const exchanges = [1, 257, 513].map((key) => ({ key }) as Keyed);
    const [a, b, c] = exchanges as [Keyed, Keyed, Keyed];
    const inFlight = new InFlightExchanges<Keyed>();
    for (const exchange of exchanges) inFlight.add(exchange.key, exchange);
    expect(inFlight.size).toBe(3);
    expect(exchanges.map(({ key }) => inFlight.withId(key))).toEqual([[a], [b], [c]]);
    expect(inFlight.all()).toEqual(expect.arrayContaining(exchanges));
    inFlight.delete(1, a);
    expect([1, 257, 513, 769].map((id) => inFlight.has(id))).toEqual([false, true, true, false]);
    inFlight.delete(257, b);
    inFlight.delete(513, c);
    expect([inFlight.size, inFlight.all()]).toEqual([0, []]);
  });

  it('may share a number, and leave in any order', () => {
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
    ]) {
      const exchanges = [7, 7, 7].map((key) => ({ key }) as Keyed);
      const inFlight = new InFlightExchanges<Keyed>();
      for (const exchange of exchanges) inFlight.add(7, exchange);
      expect(inFlight.withId(7)).toEqual(exchanges);
      for (const [count, index] of order.entries()) {
        expect(inFlight.has(7)).toBe(true);
        inFlight.delete(7, exchanges[index] as Keyed);
        expect(inFlight.size).toBe(2 - count);
      }
      expect(inFlight.has(7)).toBe(false);
    }
  });

  it('may share an id, and leave in any order', () => {
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
      [1, 2, 0],
    ]) {
      const exchanges = someExchanges(3);
      const inFlight = new InFlightExchanges<Keyed>();
      for (const exchange of exchanges) inFlight.add('1', exchange);
      expect(inFlight.size).toBe(3);
      const left = new Set(exchanges);
      for (const index of order) {
        const exchange = exchanges[index] as Keyed;
        inFlight.delete('1', exchange);
        left.delete(exchange);
        expect(inFlight.withId('1')).toHaveLength(left.size);
        expect(inFlight.withId('1').every((each) => left.has(each))).toBe(true);
      }
      expect(inFlight.has('1')).toBe(false);
    }
  });

  it('stay when another one leaves under their id', () => {
    const [a, b] = someExchanges(2) as [Keyed, Keyed];
    const inFlight = new InFlightExchanges<Keyed>();
    inFlight.add('1', a);
    inFlight.delete('2', b);
    expect(inFlight.withId('1')[0]).toBe(a);
  });
});
