import { describe, expect, it } from 'vitest';
import { NewestMap } from '../../../src/wire/io/newest-map.js';

describe('a map of the newest entries', () => {
  it('forgets the oldest entry beyond its limit', () => {
    const map = new NewestMap<string, number>(2).set('a', 1).set('b', 2).set('c', 3);
    expect([...map]).toEqual([
      ['b', 2],
      ['c', 3],
    ]);
  });

  it('makes an entry that is set again the newest', () => {
    const map = new NewestMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3).set('c', 4);
    expect([...map]).toEqual([
      ['a', 3],
      ['c', 4],
    ]);
  });
});
