import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clipText, utf8Length } from '../../src/json/clip-text.js';
import { growthOf, LINEAR } from '../support/cpu-time.js';

describe('the length in UTF-8', () => {
  it('is that of the encoded text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
    );
  });
});

describe('a clipped text', () => {
  it('is the whole text where that fits', () => {
    expect(clipText('exactly', 7, '…')).toBe('exactly');
    expect(clipText('', 0, '…')).toBe('');
  });

  it('ends with the mark, which counts', () => {
    expect(clipText('abcdefghij', 8, '…')).toBe('abcde…');
    expect(utf8Length('abcde…')).toBe(8);
  });

  it('ends between two words if a space is near', () => {
    expect(clipText('one two three four', 16, ' …')).toBe('one two …');
    expect(clipText('one two\nthree four', 16, ' …')).toBe('one two …');
  });

  it('is empty if nothing but the mark would fit', () => {
    expect([clipText('abc', 2, '…'), clipText('abcdef', 3, '…'), clipText('abc', 0, '…')]).toEqual(['', '', '']);
  });

  it.each([
    ['a letter with an accent of its own', 'e\u0301'],
    ['an emoji', '😀'],
    ['a family', '👩‍👩‍👧‍👦'],
    ['a flag', '🇩🇪'],
    ['a flag of tags', '🏴󠁧󠁢󠁥󠁮󠁧󠁿'],
    ['a colored thumb', '👍🏽'],
    ['a heart', '❤️'],
    ['a syllable of Hangul', '\u1112\u1161\u11ab'],
  ])('is never cut within %s', (_, character) => {
    const text = character.repeat(20);
    for (let maxBytes = 0; maxBytes < utf8Length(text); maxBytes += 1) {
      const pieces = clipText(text, maxBytes, '').split(character);
      expect(pieces.every((piece) => piece === '')).toBe(true);
    }
  });

  it('is cut somewhere within marks that have no end', () => {
    const clipped = clipText(`a${'\u0301'.repeat(1_000)}`, 500, '…');
    expect(utf8Length(clipped)).toBeGreaterThan(300);
    expect(utf8Length(clipped)).toBeLessThanOrEqual(500);
    const pairs = clipText('\u{1e8d0}'.repeat(1_000), 501, '…');
    expect(Buffer.from(pairs).toString()).toBe(pairs);
  });

  it('is found in a time that grows with the text only', () => {
    const growth = growthOf((size) => {
      clipText(`a${' '.repeat(size)}${'x'.repeat(30)}`, size + 20, '…');
    }, 20_000);
    expect(growth).toBeLessThan(LINEAR);
  });

  it('is never longer than allowed, and begins as the text does', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(60), (text, maxBytes) => {
        const clipped = clipText(text, maxBytes, '…');
        expect(utf8Length(clipped)).toBeLessThanOrEqual(maxBytes);
        if (clipped !== text) expect(text.startsWith(clipped.replace(/…$/, ''))).toBe(true);
      }),
    );
  });
});
