import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  boundaryAfter,
  boundaryBefore,
  insideOf,
  textInside,
  textLength,
} from '../../../src/wire/json/literal-text.js';
import { anyCharacter } from '../../support/any-character.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';
import { repetitions } from '../../support/repetitions.js';
import { bytesOf } from '../../support/wire.js';

/** Characters of one to four bytes, each as it is and in its escapes; backslashes and halves of characters among them. */
const UNITS = [
  ...['a', 'u', 'n', '7', '\u00e9', '\u20ac', '\u{1f600}', '\ufeff'],
  ...['\\n', '\\\\', '\\"', '\\/', '\\u0041', '\\u00E9', '\\u20ac', '\\ud83d\\ude00', '\\uD83D', '\\ude00'],
];
const insides = fc.array(fc.constantFrom(...UNITS), { maxLength: 40 }).map((units) => bytesOf(units.join('')));

function textOf(inside: Uint8Array): string {
  return JSON.parse(`"${Buffer.from(inside)}"`);
}

describe('the text inside a literal', () => {
  it('is what a parser reads', () => {
    fc.assert(
      fc.property(insides, (inside) => {
        expect(textInside(inside)).toBe(textOf(inside));
      }),
    );
  });

  it('has the length that it has in UTF-8', () => {
    fc.assert(
      fc.property(insides, (inside) => {
        expect(textLength(inside)).toBe(Buffer.byteLength(textOf(inside)));
      }),
    );
  });

  it('is written so that a parser reads it', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        expect(textOf(insideOf(text))).toBe(text);
      }),
    );
  });

  it.each([
    ['backslashes', '\\\\'],
    ['halves of characters', '\\ud83d\\ude00'],
  ])('costs as much as it is long to measure and to cut, also if it consists of %s', (_, unit) => {
    const growth = growthOf((size) => {
      const inside = bytesOf(unit.repeat(size));
      textLength(inside);
      boundaryBefore(inside, inside.length - 1);
      boundaryAfter(inside, inside.length - 1);
    }, 20_000);
    expect(growth).toBeLessThan(LINEAR);
  });
});

describe('a boundary', () => {
  /** Whether the text is the same if it is decoded in two parts. */
  const isBoundary = (inside: Uint8Array, at: number) => {
    try {
      const parts = [inside.subarray(0, at), inside.subarray(at)].map((part) => {
        const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(part);
        return JSON.parse(`"${text}"`) as string;
      });
      const [first = '', second = ''] = parts;
      const isPair = /[\ud800-\udbff]$/.test(first) && /^[\udc00-\udfff]/.test(second);
      return !isPair;
    } catch {
      return false;
    }
  };

  it('is the last or the first place that is between two characters', () => {
    fc.assert(
      fc.property(insides, fc.nat(), (inside, any) => {
        const at = any % (inside.length + 1);
        const places = Array.from({ length: inside.length + 1 }, (_, place) => place).filter((place) =>
          isBoundary(inside, place),
        );
        expect(boundaryBefore(inside, at)).toBe(places.findLast((place) => place <= at));
        expect(boundaryAfter(inside, at)).toBe(places.find((place) => place >= at));
      }),
      { numRuns: repetitions({ full: 2_000, short: 200 }) },
    );
  });

  it('is the same if the search begins at another one before it', () => {
    fc.assert(
      fc.property(insides, fc.nat(), fc.nat(), (inside, one, other) => {
        const [from = 0, at = 0] = [one, other].map((any) => any % (inside.length + 1)).sort((a, b) => a - b);
        const start = boundaryBefore(inside, from);
        expect(boundaryBefore(inside, at, start)).toBe(boundaryBefore(inside, at));
      }),
    );
  });
});
