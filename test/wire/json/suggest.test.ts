import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { editDistance, suggest } from '../../../src/wire/json/suggest.js';

const KEYS = ['timeout', 'maxTimeout', 'args', 'env', 'cwd', 'prefix'];

describe('suggest', () => {
  test.each([
    ['timout', 'timeout'],
    ['tiemout', 'timeout'],
    ['Timeout', 'timeout'],
    ['maxtimeout', 'maxTimeout'],
    ['arg', 'args'],
    ['ENV', 'env'],
    ['prefx', 'prefix'],
    ['maxTime', 'maxTimeout'],
  ])('takes %s for %s', (word, meant) => {
    expect(suggest(word, KEYS)).toBe(meant);
  });

  test.each(['url', 'headers', 'x', ''])('has nothing to say about "%s"', (word) => {
    expect(suggest(word, KEYS)).toBeUndefined();
  });
});

describe('editDistance', () => {
  test('counts a swap of neighbours as one slip', () => {
    expect(editDistance('tiemout', 'timeout')).toBe(1);
  });

  test('is nothing for the same word, the same both ways, and never more than the longer word', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, other) => {
        expect(editDistance(one, one)).toBe(0);
        expect(editDistance(one, other)).toBe(editDistance(other, one));
        expect(editDistance(one, other)).toBeLessThanOrEqual(Math.max(one.length, other.length));
      }),
    );
  });
});
