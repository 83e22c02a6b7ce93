import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readString } from '../../src/json/json-text.js';
import { StringInterner } from '../../src/json/string-interner.js';

describe('texts that come again', () => {
  it('are what their bytes say, whatever was read before', () => {
    const texts = new StringInterner();
    const name = fc.stringMatching(/^[!-[\]-~]{0,70}$/);
    fc.assert(
      fc.property(name, fc.nat(5), (text, before) => {
        const bytes = Buffer.from(`${'x'.repeat(before)}${text}"`);
        const read = texts.read(bytes, before, before + text.length);
        expect(read).toBe(text.length > 64 ? undefined : text);
      }),
      { numRuns: 5_000 },
    );
  });

  it('are left to others where they have escapes or other alphabets', () => {
    for (const text of ['"a\\nb"', '"é"', '"\\u0061"', `"${'long '.repeat(100)}"`, '""', '"tools/call"']) {
      const bytes = Buffer.from(text);
      expect(readString(bytes, { start: 0, end: bytes.length })).toBe(JSON.parse(text));
    }
  });
});
