import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeBytes, printable } from '../../src/json/printable.js';

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
      fc.property(fc.string({ unit: 'binary' }), (text) => {
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
