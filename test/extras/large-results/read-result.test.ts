import { describe, expect, it } from 'vitest';
import { findLines, readRange } from '../../../src/extras/large-results/read-result.js';
import { insideOf } from '../../../src/wire/json/literal-text.js';

/** A text, and the number of turns that its readers gave to others. */
function longText(text: string) {
  const counter = { turns: 0 };
  const turn = async () => {
    counter.turns += 1;
  };
  return { counter, text: { inside: insideOf(text), turn } };
}

const SHORT = 'one\ntwo \u00e9\u20ac\u{1f600}\nthree\n';

describe('a range', () => {
  it('has the characters of the text whose bytes are within it', async () => {
    const { text } = longText(SHORT);
    const bytes = Buffer.from(SHORT);
    for (let offset = 0; offset < bytes.length; offset += 1) {
      for (let length = 4; length < 30; length += 1) {
        const range = await readRange(text, offset, length);
        expect(bytes.subarray(range.start, range.end).toString()).toBe(range.text);
        expect(range.start - offset).toBeLessThan(4);
        expect(range.end - range.start).toBeLessThanOrEqual(length);
        const left = Math.min(length, bytes.length - range.start) - (range.end - range.start);
        expect(left).toBeLessThan(4);
      }
    }
  });

  it('continues at its end, so that ranges in a row have the whole text', async () => {
    const whole = 'a\u20ac\u{1f600}\\"\n'.repeat(40_000);
    const { text, counter } = longText(whole);
    const ranges: string[] = [];
    for (let offset = 0; offset < Buffer.byteLength(whole); ) {
      const range = await readRange(text, offset, 100_000);
      ranges.push(range.text);
      offset = range.end;
    }
    expect(ranges.join('')).toBe(whole);
    expect(counter.turns).toBeGreaterThan(0);
  });
});

describe('lines with a text', () => {
  const find = async (whole: string, wanted: string, { offset = 0, maxBytes = 10_000 } = {}) =>
    await findLines(longText(whole).text, offset, maxBytes, wanted);

  it('are found in upper and lower case, with the offsets of their first bytes', async () => {
    const { lines, next } = await find('\u20ac Error: a\nfine\nERROR b\nerror', 'Error');
    expect(lines).toEqual([
      { at: 0, text: '\u20ac Error: a' },
      { at: 18, text: 'ERROR b' },
      { at: 26, text: 'error' },
    ]);
    expect(next).toBeUndefined();
  });

  it('are those with the text itself: operators of patterns mean nothing', async () => {
    expect((await find('a.b\naxb\n(a|b)*', 'a.b')).lines).toEqual([{ at: 0, text: 'a.b' }]);
    expect((await find('a.b\naxb\n[(a|b)*]{2}\\/^$', '[(a|b)*]{2}\\/^$')).lines).toEqual([
      { at: 8, text: '[(a|b)*]{2}\\/^$' },
    ]);
  });

  it('are the parts around the text if there are no short lines, as in JSON without line breaks', async () => {
    const whole = JSON.stringify(
      Array.from({ length: 30_000 }, (_, id) => ({ id, name: id === 12_345 ? 'needle' : 'hay' })),
    );
    const { lines } = await find(whole, 'NEEDLE');
    const [line] = lines;
    expect(lines).toHaveLength(1);
    expect(line?.text).toHaveLength(406);
    expect(whole.slice(line?.at).startsWith(line?.text ?? '-')).toBe(true);
  });

  it('are found wherever the pieces of the text end', async () => {
    for (let shift = 0; shift < 40; shift += 1) {
      const before = `${'\u20ac'.repeat(21_840)}${'x'.repeat(shift)}`;
      const { lines } = await find(`${before} needle${'y'.repeat(300)}\nneedle`, 'needle');
      const bytes = Buffer.from(`${before} needle${'y'.repeat(300)}\nneedle`);
      expect(lines.map(({ at, text }) => bytes.subarray(at).toString().startsWith(text))).toEqual([true, true]);
      expect(lines[1]).toEqual({ at: bytes.length - 6, text: 'needle' });
    }
  });

  it('go on at the line that had no place', async () => {
    const whole = Array.from({ length: 20_000 }, (_, index) => `${index} hit`).join('\n');
    const all: string[] = [];
    let offset: number | undefined = 0;
    while (offset !== undefined) {
      const { lines, next }: Awaited<ReturnType<typeof findLines>> = await find(whole, 'hit', { offset });
      all.push(...lines.map(({ text }) => text));
      offset = next;
    }
    expect(all.join('\n')).toBe(whole);
  });

  it('leave turns to others', async () => {
    const { text, counter } = longText('nothing\n'.repeat(200_000));
    expect(await findLines(text, 0, 1_000, 'needle')).toEqual({ lines: [], next: undefined });
    expect(counter.turns).toBeGreaterThan(1);
  });
});
