import { describe, expect, test } from 'vitest';
import { suggest } from '../../../src/wire/json/suggest.js';

const KEYS = ['timeout', 'maxTimeout', 'args', 'env', 'cwd', 'prefix'];

describe('suggest', () => {
  test.each([
    ['timout', 'timeout'],
    ['tiemout', 'timeout'],
    ['Timeout', 'timeout'],
    ['maxtimeout', 'maxTimeout'],
    ['arg', 'args'],
    ['ENV', 'env'],
    ['evn', 'env'],
    ['prefx', 'prefix'],
    ['maxTime', 'maxTimeout'],
  ])('takes %s for %s', (word, meant) => {
    expect(suggest(word, KEYS)).toBe(meant);
  });

  test.each(['url', 'headers', 'x', ''])('has nothing to say about "%s"', (word) => {
    expect(suggest(word, KEYS)).toBeUndefined();
  });
});
