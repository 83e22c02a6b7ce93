import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUiUri, keyInUiAlias, uiAlias, uiPointers } from '../../../src/wire/mcp/ui-uris.js';
import { sha256 } from '../../support/sha256.js';
import { bytesOf } from '../../support/wire.js';

const hash = (key: string, uri: string) => sha256(`${key}\0${uri}`).slice(0, 8);

describe('a URI of a user interface', () => {
  it.each(['ui://a', 'ui://a/b.html', 'ui://'])('is %s', (uri) => {
    expect(isUiUri(uri)).toBe(true);
  });

  it.each(['ui:a', 'uix://a', 'https://ui://a', ' ui://a', ''])('is not %j', (uri) => {
    expect(isUiUri(uri)).toBe(false);
  });
});

describe('an alias', () => {
  it.each([
    ['ui://app/main.html', 'main.html'],
    ['ui://app/a/b?q=1#f', 'a/b?q=1#f'],
    ['ui://app', ''],
    ['ui://app/', ''],
    ['ui://app?q', '?q'],
    ['ui:///a', 'a'],
    ['ui://app//a', '/a'],
    ['ui://é/猫 "', '猫 "'],
  ])('of %s keeps the path', (uri, path) => {
    expect(uiAlias('b', uri, sha256)).toBe(`ui://b--${hash('b', uri)}/${path}`);
  });

  it('tells the key of its server, and is another for each server and URI', () => {
    const key = fc.stringMatching(/^[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*$/).filter(({ length }) => length <= 24);
    const uri = fc.webPath().map((path) => `ui://app${path}`);
    const target = fc.tuple(key, uri);
    fc.assert(
      fc.property(target, target, (one, other) => {
        const [alias, another] = [uiAlias(...one, sha256), uiAlias(...other, sha256)];
        expect(isUiUri(alias)).toBe(true);
        expect(keyInUiAlias(alias)).toBe(one[0]);
        expect(alias === another).toBe(one[0] === other[0] && one[1] === other[1]);
      }),
    );
  });

  it.each([
    ['ui://b--0123abcd', 'b'],
    ['ui://b--0123abcd?x', 'b'],
    ['ui://a-b_c--0123abcd/x--89abcdef/', 'a-b_c'],
    ['ui://b--0123abc/x', undefined],
    ['ui://b--0123abcde/x', undefined],
    ['ui://b--0123ABCD/x', undefined],
    ['ui://b-0123abcd/x', undefined],
    ['ui://--0123abcd/x', undefined],
    ['ui://x/b--0123abcd/', undefined],
    ['http://b--0123abcd/x', undefined],
  ])('of %s is told to be of the server %s', (uri, key) => {
    expect(keyInUiAlias(uri)).toBe(key);
  });
});

describe('the user interface of a tool', () => {
  function pointers(json: string): (readonly [uri: string, text: string])[] {
    const bytes = bytesOf(`  ${json}`);
    return uiPointers(bytes, { start: 2, end: bytes.length }).map(({ uri, span }) => {
      return [uri, Buffer.from(bytes.subarray(span.start, span.end)).toString()];
    });
  }

  it.each([
    ['{"_meta":{"ui":{"resourceUri":"ui://a"}}}', [['ui://a', '"ui://a"']]],
    ['{"_meta":{"ui/resourceUri":"ui://a"}}', [['ui://a', '"ui://a"']]],
    ['{"_meta":{"openai/outputTemplate":"ui://a"}}', [['ui://a', '"ui://a"']]],
    ['{"_meta":{"ui":{"resourceUri":"u\\u0069:\\/\\/a"}}}', [['ui://a', '"u\\u0069:\\/\\/a"']]],
    [
      '{"_meta":{"ui":{"resourceUri":"ui://a"}},"x":1,"_meta":{"ui\\/resourceUri":"ui://b","ui":{"resourceUri":"ui://c"}}}',
      [
        ['ui://a', '"ui://a"'],
        ['ui://c', '"ui://c"'],
        ['ui://b', '"ui://b"'],
      ],
    ],
  ])('is found in %s', (json, expected) => {
    expect(pointers(json)).toEqual(expected);
  });

  it.each([
    '{}',
    '{"_meta":null}',
    '{"_meta":{"ui":"ui://a"}}',
    '{"_meta":{"ui":{"resourceUri":7}}}',
    '{"_meta":{"ui":{"resourceUri":"https://a"}}}',
    '{"_meta":{"other":{"ui":{"resourceUri":"ui://a"}}}}',
    '{"ui":{"resourceUri":"ui://a"},"ui/resourceUri":"ui://a"}',
    '{"inputSchema":{"_meta":{"ui":{"resourceUri":"ui://a"}}}}',
    '{"description":"_meta ui://a"}',
  ])('is nothing in %s', (json) => {
    expect(pointers(json)).toEqual([]);
  });
});
