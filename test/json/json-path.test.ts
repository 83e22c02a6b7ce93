import { describe, expect, it } from 'vitest';
import { valuesAt } from '../../src/json/json-text.js';
import { bytesOf } from '../support/wire.js';

function textsAt(json: string, path: readonly string[]): string[] {
  const bytes = bytesOf(`[7, ${json}]`);
  const spans = valuesAt(bytes, { start: 4, end: bytes.length - 1 }, path);
  return spans.map(({ start, end }) => Buffer.from(bytes.subarray(start, end)).toString());
}

describe('the values at a path', () => {
  it.each([
    ['{"a":{"b": 1.0 }}', ['a', 'b'], ['1.0']],
    ['{ "x":{"a":2}, "a" : {"b":[1, 2],"c":3} }', ['a', 'b'], ['[1, 2]']],
    ['{"a":1}', ['a'], ['1']],
    ['{"a":1}', [], ['{"a":1}']],
    ['{"\\u0061":{"b\\/":"\\u0041"}}', ['a', 'b/'], ['"\\u0041"']],
    ['{"é":1}', ['é'], ['1']],
    ['{"a":{"b":1,"b":2},"c":0,"a":{"b":3},"a":4}', ['a', 'b'], ['1', '2', '3']],
    ['{"__proto__":{"toString":1}}', ['__proto__', 'toString'], ['1']],
    ['{"a/b":1,"a":{"b":2}}', ['a/b'], ['1']],
  ])('of %s at %j are %j', (json, path, expected) => {
    expect(textsAt(json, path)).toEqual(expected);
  });

  it.each([
    ['{}', ['a']],
    ['{"a":{}}', ['a', 'b']],
    ['{"a":null}', ['a', 'b']],
    ['{"a":[{"b":1}]}', ['a', 'b']],
    ['{"a":"{\\"b\\":1}"}', ['a', 'b']],
    ['{"b":{"a":1}}', ['a']],
    ['[{"a":1}]', ['a']],
    ['"a"', ['a']],
    ['7', ['a']],
    ['{}', ['toString']],
  ])('of %s at %j are none', (json, path) => {
    expect(textsAt(json, path)).toEqual([]);
  });
});
