import { describe, expect, it } from 'vitest';
import { NOT_JSON } from '../../../src/wire/json/json-string.js';
import {
  hasTwins,
  isNumber,
  isObject,
  isString,
  readString,
  readText,
  skipColon,
  skipValue,
  skipWhitespace,
  TOO_DEEP,
  valuesAt,
  visitElements,
  visitMembers,
} from '../../../src/wire/json/json-text.js';

const bytes = (text: string) => Buffer.from(text);
const whole = (text: string) => ({ start: 0, end: bytes(text).length });

describe('skipping a value', () => {
  it.each([
    ['null', 4],
    ['true', 4],
    ['false', 5],
    ['"a\\"b"', 6],
    ['"\\u00e9\\/"', 10],
    ['-0.5e+10', 8],
    ['0', 1],
    ['[]', 2],
    ['[ 1 , [2] ]', 11],
    ['{ }', 3],
    ['{"a" : [1,{}] , "b":""}', 23],
  ])('%s ends where the value ends, whatever follows', (value, end) => {
    for (const behind of ['', ' ', ',', '}', ']', '\n{']) expect(skipValue(bytes(value + behind), 0, 8)).toBe(end);
  });

  it.each([
    ...[
      '',
      'nul',
      'tru',
      'True',
      '-',
      '-a',
      '1.',
      '1.e2',
      '1e',
      '1e+',
      '.5',
      '+1',
      '"',
      '"a',
      '"\\',
      '"\\x"',
      '"\\u12g4"',
    ],
    ...['"\t"', '"\n"', '[', '[1', '[1,', '[1,]', '[,1]', '[1 2]', '{', '{"a"', '{"a":', '{"a":1', '{"a":1,}'],
    ...['{a:1}', '{"a" 1}', '{"a":1 "b":2}', '{1:2}', "'a'", '}', ']', ','],
  ])('%j is no value', (text) => {
    expect(skipValue(bytes(text), 0, 8)).toBe(NOT_JSON);
  });

  it('takes a zero for the whole number where another digit follows, so that the digit is out of place', () => {
    expect(skipValue(bytes('01'), 0, 8)).toBe(1);
  });

  it('allows as many levels as it is told', () => {
    expect(skipValue(bytes('[[{}]]'), 0, 3)).toBe(6);
    expect(skipValue(bytes('[[{}]]'), 0, 2)).toBe(TOO_DEEP);
    expect(skipValue(bytes('1'), 0, 0)).toBe(1);
    expect(skipValue(bytes('{}'), 0, 0)).toBe(TOO_DEEP);
  });

  it('refuses depth before it comes to what is wrong below', () => {
    expect(skipValue(bytes('['.repeat(200_000)), 0, 512)).toBe(TOO_DEEP);
  });
});

describe('skipping what stands between values', () => {
  it('passes the four kinds of white space and no other', () => {
    expect(skipWhitespace(bytes(' \t\r\n1'), 0)).toBe(4);
    expect(skipWhitespace(bytes('\u00a01'), 0)).toBe(0);
    expect(skipWhitespace(bytes('\v1'), 0)).toBe(0);
    expect(skipWhitespace(bytes('  '), 0)).toBe(2);
  });

  it('finds a colon between white space', () => {
    expect(skipColon(bytes(' : 1'), 0)).toBe(3);
    expect(skipColon(bytes('1'), 0)).toBe(NOT_JSON);
    expect(skipColon(bytes(''), 0)).toBe(NOT_JSON);
  });
});

describe('visiting members and elements', () => {
  const members = (text: string) => {
    const seen: [string, string][] = [];
    const source = bytes(text);
    const end = visitMembers(source, 0, 8, (key, value) =>
      seen.push([readString(source, key), readText(source, value)]),
    );
    return { seen, end };
  };

  it('tells each member in the order of the text, duplicates and escaped keys too', () => {
    expect(members('{ "a" : 1 , "\\u0061":[2, 3],"":{"b":0} }')).toEqual({
      seen: [
        ['a', '1'],
        ['a', '[2, 3]'],
        ['', '{"b":0}'],
      ],
      end: 40,
    });
    expect(members('{}')).toEqual({ seen: [], end: 2 });
  });

  it('tells each element', () => {
    const source = bytes('[1, "é" ,[ ]]');
    const seen: string[] = [];
    expect(visitElements(source, 0, 8, (element) => seen.push(readText(source, element)))).toBe(source.length);
    expect(seen).toEqual(['1', '"é"', '[ ]']);
    expect(visitElements(bytes('[ ]'), 0, 8, () => seen.push('none'))).toBe(3);
    expect(seen).toHaveLength(3);
  });

  it('says what is wrong', () => {
    expect(members('[]').end).toBe(NOT_JSON);
    expect(members('{"a":1').end).toBe(NOT_JSON);
    expect(members('{"a":1;"b":2}').end).toBe(NOT_JSON);
    expect(visitElements(bytes('{}'), 0, 8, () => {})).toBe(NOT_JSON);
    expect(visitElements(bytes('[1;2]'), 0, 8, () => {})).toBe(NOT_JSON);
    expect(visitElements(bytes('[[[]]]'), 0, 1, () => {})).toBe(TOO_DEEP);
  });
});

describe('reading', () => {
  it.each([
    '""',
    '"plain"',
    `"${'long '.repeat(100)}"`,
    '"\\u0069d"',
    '"é"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"a\\nb"',
    '"~\x7f"',
  ])('%j gives the text that JSON.parse gives', (literal) => {
    expect(readString(bytes(literal), whole(literal))).toBe(JSON.parse(literal));
  });

  it('gives the bytes of a span as text', () => {
    expect(readText(bytes('{"é":1}'), { start: 1, end: 5 })).toBe('"é"');
  });

  it('tells kinds of values by their first byte', () => {
    expect([isString, isNumber, isObject].map((is) => is(bytes('"1"'), whole('"1"')))).toEqual([true, false, false]);
    expect([isString, isNumber, isObject].map((is) => is(bytes('-1'), whole('-1')))).toEqual([false, true, false]);
    expect([isString, isNumber, isObject].map((is) => is(bytes('{}'), whole('{}')))).toEqual([false, false, true]);
    expect(isNumber(bytes('null'), whole('null'))).toBe(false);
  });
});

function textsAt(json: string, path: readonly string[]): string[] {
  const bytes = Buffer.from(`[7, ${json}]`);
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

describe('two members of one name', () => {
  it.each([
    ['{"a":1,"a":2}', true],
    ['{"a":1,"b":{"c":[{"d":1, "d" : 2}]}}', true],
    ['{"a":{"b":{}},"c":1,"a":2}', true],
    ['{"a":1,"\\u0061":2}', true],
    ['{"text":1,"Text":2}', true],
    ['{"Key":1,"key":2}', true],
    ['{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}', false],
    ['{"a":"{\\"a\\":1,\\"a\\":2}","b":"a"}', false],
    ['["a","a"]', false],
    ['{}', false],
    ['"a"', false],
  ])('are found in %s: %s', (json, expected) => {
    expect(hasTwins(bytes(json))).toBe(expected);
  });

  it('are found in one pass, however deep the value nests', () => {
    const deep = bytes(`{"a":${'['.repeat(400)}${Array(2_000).fill('{"b":1}').join()}${']'.repeat(400)}}`);
    let reads = 0;
    const counted = new Proxy<Uint8Array>(deep, {
      get: (target, name) => {
        reads += 1;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    expect(hasTwins(counted)).toBe(false);
    expect(reads).toBeLessThan(20 * deep.length);
  });
});
