import { describe, expect, it } from 'vitest';
import { hidesCharacters, hidesCharactersWithin, withoutHiddenCharacters } from '../../src/mcp/hidden-text.js';
import { cpuMsOf } from '../support/cpu-time.js';

describe('a text that hides characters', () => {
  it.each([
    ['an escape', '\u001b[31mred'],
    ['a C1 control', 'a\u009bb'],
    ['NUL', 'a\u0000'],
    ['a line end', 'a\nb'],
    ['an override of direction', 'a\u202egnp'],
    ['an isolate', '\u2066a\u2069'],
    ['a mark of direction among Latin letters', 'a\u200eb'],
    ['a zero-width space', 'a\u200bb'],
    ['a joiner between Latin letters', 'a\u200db'],
    ['a word joiner', 'a\u2060b'],
    ['tag characters', 'a\u{e0041}\u{e0042}'],
    ['tag characters after a flag that is none', '\u{1f3f4}\u{e0041}\u{e0042}\u{e007f}'],
    ['variation selectors after a letter', 'a\ufe0f'],
    ['several variation selectors after an emoji', '😀\ufe0f\ufe0e\ufe0f'],
    ['bytes in variation selectors after an emoji', '😀\u{e0101}\u{e0102}'],
    ['a joiner that joins nothing', '😀\u200d'],
    ['a filler', '\u3164'],
    ['a lone surrogate', '\ud800'],
  ])('is one with %s', (_, text) => {
    expect(hidesCharacters(text)).toBe(true);
    expect(hidesCharactersWithin({ a: [`before ${text} after`] })).toBe(text !== 'a\nb');
  });

  it.each([
    'plain, with "quotes" and \\backslashes\\',
    'é 猫 Ж ß',
    'a family 👩‍👩‍👧‍👦, a heart ❤️, a phone ☎︎, a key 1️⃣, a thumb 👍🏽, a pirate 🏴‍☠️',
    'flags 🇩🇪 🏴󠁧󠁢󠁥󠁮󠁧󠁿',
    'می‌خواهم',
    'क्‍ष',
    'שלום\u200f!',
    '葛\u{e0100}飾区',
    'soft\u00adhyphen',
  ])('is not %j', (text) => {
    expect(hidesCharacters(text)).toBe(false);
  });

  it('may be a name or a value at any depth', () => {
    expect(hidesCharactersWithin({ a: { 'b\u200bc': 1 } })).toBe(true);
    expect(hidesCharactersWithin([[['\u200b']]])).toBe(true);
    expect(hidesCharactersWithin({ description: 'two\r\n\tlines', number: 1, nothing: null, is: true })).toBe(false);
  });

  it.each(['\u200e', '😀\u200d', '1', 'a\u200c', '🏴\u{e0061}'])(
    'is found out in a time that grows with the text only: %j',
    (piece) => {
      const text = `${piece.repeat(1_000_000 / piece.length)}\u200b`;
      expect(cpuMsOf(() => hidesCharacters(text))).toBeLessThan(500);
    },
  );
});

describe('a text without its hidden characters', () => {
  it.each([
    ['\u001b[31mred\u0000', '[31mred'],
    ['a\u202egnp\u2066', 'agnp'],
    ['a\u{e0041}\u{e0042}b\u200bc\ud800', 'abc'],
    ['\ufeffmark', 'mark'],
    ['two\r\n\tlines\rthree', 'two\n\tlines\nthree'],
    ['Latin\u200e and שלום\u200f!', 'Latin\u200e and שלום\u200f!'],
    ['a family 👩‍👩‍👧‍👦 and می‌خواهم 😀\u200d', 'a family 👩‍👩‍👧‍👦 and می‌خواهم 😀'],
  ])('is of %j what can be seen, with line breaks and tabs', (text, visible) => {
    expect(withoutHiddenCharacters(text)).toBe(visible);
  });
});
