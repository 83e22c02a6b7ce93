import { describe, expect, it } from 'vitest';
import { NumberWriter } from '../../../src/wire/json/splice.js';

function textOf({ text, part }: ReturnType<NumberWriter['write']>): string {
  return Buffer.from(text.subarray(part.start, part.end)).toString();
}

describe('the digits of a number', () => {
  it.each([0, 7, 9, 10, 99, 100, 1_000_000, 2 ** 31, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER])(
    'are those of %d',
    (value) => {
      expect(textOf(new NumberWriter().write(value))).toBe(String(value));
    },
  );

  it('stay what they were whatever is written behind them', () => {
    const digits = new NumberWriter();
    const values = Array.from({ length: 2_000 }, (_, index) => index * 7_919);
    const written = values.map((value) => digits.write(value));
    expect(written.map(textOf)).toEqual(values.map(String));
  });
});
