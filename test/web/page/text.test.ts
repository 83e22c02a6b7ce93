import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clock, dateTime, matches, milliseconds, prettyJson, when } from '../../../src/web/page/text.js';

describe('pretty JSON', () => {
  it('indents objects and lists, and keeps empty ones on a line', () => {
    expect(prettyJson('{"a":[1,{"b":null}],"c":{},"d":[]}')).toBe(
      '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {},\n  "d": []\n}',
    );
  });

  it('keeps the digits of numbers that a parser would round', () => {
    expect(prettyJson('{"id":12345678901234567890,"x":1.10}')).toContain('12345678901234567890,\n  "x": 1.10');
  });

  it('leaves strings alone, also with brackets and escaped quotes', () => {
    expect(prettyJson('["a{\\"b\\":[1,2]}, c"]')).toBe('[\n  "a{\\"b\\":[1,2]}, c"\n]');
  });

  it('escapes characters that hide text or change its direction', () => {
    expect(prettyJson('["a\u202eb\u200bc\u009b31m"]')).toBe('[\n  "a\\u{202e}b\\u{200b}c\\u{9b}31m"\n]');
  });

  it('shows a text that is not JSON as it is', () => {
    expect(prettyJson('{"a":\u001b[31m')).toBe('{"a":\\u{1b}[31m');
  });

  it('means the same as before', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme-ascii' }), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(prettyJson(text))).toEqual(JSON.parse(text));
      }),
    );
  });
});

describe('texts', () => {
  it('match a filter if they have each of its words, in any case', () => {
    expect(matches('files__Read_file editor', 'read EDIT')).toBe(true);
    expect(matches('files__read_file', 'read edit')).toBe(false);
    expect(matches('anything', '')).toBe(true);
  });

  it.each([
    [0.2, '< 1 ms'],
    [17.4, '17 ms'],
    [1_234, '1.2 s'],
    [90_000, '1.5 min'],
  ])('describe %d milliseconds as %s', (value, text) => {
    expect(milliseconds(value)).toBe(text);
  });

  it('give dates and times as in ISO 8601, the date only of another day', () => {
    const date = new Date(2026, 10, 4, 9, 3, 5);
    const at = date.getTime();
    expect([dateTime(date.toISOString()), clock(at)]).toEqual(['2026-11-04 09:03', '09:03:05']);
    const days = [new Date(2026, 10, 4, 23, 59), new Date(2026, 10, 5, 0, 0)];
    expect(days.map((now) => when(at, now.getTime()))).toEqual(['09:03:05', '2026-11-04 09:03']);
  });
});
