import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  clipText,
  describeBytes,
  hidesCharacters,
  hidesCharactersWithin,
  printable,
  quotedPath,
  utf8Length,
  withoutHiddenCharacters,
} from '../../../src/wire/json/printable.js';
import { anyCharacter } from '../../support/any-character.js';
import { cpuMsOf, growthOf, LINEAR } from '../../support/cpu-time.js';

describe('a text made printable', () => {
  it.each([
    ['an escape sequence', '\u001b[31mred', '\\u{1b}[31mred'],
    ['a link for terminals', '\u001b]8;;http://x\u0007', '\\u{1b}]8;;http://x\\u{7}'],
    ['line ends', 'a\r\nb\tc', 'a\\u{d}\\u{a}b\\u{9}c'],
    ['C1 controls', '\u009b1m', '\\u{9b}1m'],
    ['direction overrides', 'a\u202eb\u2066c', 'a\\u{202e}b\\u{2066}c'],
    ['zero-width characters', 'a\u200bb\u200dc\ufeffd', 'a\\u{200b}b\\u{200d}c\\u{feff}d'],
    ['tag characters', 'a\u{e0041}b', 'a\\u{e0041}b'],
    ['line separators', 'a\u2028b\u2029', 'a\\u{2028}b\\u{2029}'],
    ['lone surrogates', 'a\ud800b', 'a\\u{d800}b'],
    ['a soft hyphen', 'a\u00adb', 'a\\u{ad}b'],
    ['fillers', 'a\u034fb\u115fc\u3164d\uffa0', 'a\\u{34f}b\\u{115f}c\\u{3164}d\\u{ffa0}'],
    ['variation selectors', 'a\ufe0fb\u{e0100}', 'a\\u{fe0f}b\\u{e0100}'],
  ])('spells out %s', (_, text, expected) => {
    expect(printable(text)).toBe(expected);
  });

  it.each(['', 'plain ASCII ~', 'Grüße, 猫, 😀', 'a\\u{1b}b'])(
    'is itself when there is nothing to hide: %s',
    (text) => {
      expect(printable(text)).toBe(text);
    },
  );

  it('holds no control or format character, whatever it was, and stays so', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        expect(printable(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect(printable(printable(text))).toBe(printable(text));
      }),
    );
  });
});

const MIB = 1024 ** 2;

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1 KiB'],
  [512 * MIB, '512 MiB'],
  [1024 * MIB, '1 GiB'],
  [1229 * MIB, '1.3 GiB'],
  [3000 * 1024 ** 4, '3000 TiB'],
])('%d bytes read as %s', (bytes, text) => {
  expect(describeBytes(bytes)).toBe(text);
});

it('one byte more than a limit reads as more', () => {
  expect(describeBytes(1024 * MIB + 1)).toBe('1.1 GiB');
});

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

describe('a word for a shell', () => {
  it.each([
    ['a plain path', '/home/ada/c.yaml', '/home/ada/c.yaml', '/home/ada/c.yaml'],
    ['a space', 'a b', "'a b'", '"a b"'],
    ['an apostrophe', "o'ann", "'o'\\''ann'", '"o\'ann"'],
    ['JSON', '{"a":1}', `'{"a":1}'`, '"{\\"a\\":1}"'],
  ])('is quoted for a POSIX shell and for cmd.exe if it has %s', (_, word, posix, windows) => {
    expect(quotedPath(word, 'linux')).toBe(posix);
    expect(quotedPath(word, 'win32')).toBe(windows);
  });
});
