import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServerFault } from '../../../src/config/file/config-error.js';
import { expand as expandWith, type Variables } from '../../../src/config/resolve/references.js';

const expand = (text: string, variables: Variables) => expandWith(text, variables, (secret) => `<${secret}>`);

const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]*$/);
const textWithoutReference = fc.string().filter((text) => !text.includes('${'));

describe('expand', () => {
  test.each([
    { text: 'plain $HOME {x} $', result: 'plain $HOME {x} $' },
    { text: `\${A}`, result: 'one' },
    { text: `<\${A}\${A}-\${B}>`, result: '<oneone-two>' },
    { text: `\${NO:-other}`, result: 'other' },
    { text: `\${NO:-}`, result: '' },
    { text: `\${NO:-a:-b}`, result: 'a:-b' },
    { text: `\${A:-other}`, result: 'one' },
    { text: `\${EMPTY}`, result: '' },
    { text: `\${EMPTY:-other}`, result: 'other' },
    { text: `\${secret:KEY_1}!`, result: '<KEY_1>!' },
    { text: `\${secret:-}`, result: '' },
    { text: `$\${secret:KEY}`, result: `\${secret:KEY}` },
    { text: `$\${A}`, result: `\${A}` },
    { text: `$\${`, result: `\${` },
  ])('turns $text into $result', ({ text, result }) => {
    expect(expand(text, { A: 'one', B: 'two', EMPTY: '' })).toBe(result);
  });

  test('a variable that is not set and has no default is named, with a way to give it one', () => {
    expect(() => expand(`x \${TOKEN}`, {})).toThrow(
      expect.objectContaining({
        message: 'the environment variable TOKEN is not set',
        hint: expect.stringContaining(`\${TOKEN:-default}`),
      }),
    );
  });

  test.each([
    `\${`,
    `\${}`,
    `\${A`,
    `\${1}`,
    `\${A-b}`,
    `\${A:b}`,
    `\${secret:}`,
    `\${secret:a-b}`,
    `\${A:-\${B}}`,
    `\${ A }`,
  ])('refuses %s, as it starts no variable', (text) => {
    expect(() => expand(text, { A: 'one', B: 'two' })).toThrow(ServerFault);
  });

  test('a property that every object inherits is not a variable', () => {
    expect(() => expand(`\${constructor}`, {})).toThrow('the environment variable constructor is not set');
    expect(expand(`\${toString:-none}`, {})).toBe('none');
  });

  test('a text without a reference stays as it is', () => {
    fc.assert(fc.property(textWithoutReference, (text) => expand(text, {}) === text));
  });

  test('any text survives once its references are escaped', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('$', '{', '}', '${', 'A', ':-', 'x')), (parts) => {
        const text = parts.join('');
        expect(
          expand(
            text.replaceAll('${', () => '$${'),
            { A: 'one' },
          ),
        ).toBe(text);
      }),
    );
  });

  test('a value is put in as it is, whatever it contains', () => {
    fc.assert(
      fc.property(name, fc.string(), textWithoutReference, (variable, value, after) => {
        expect(expand(`<\${${variable}}${after}`, { [variable]: value })).toBe(`<${value}${after}`);
      }),
    );
  });
});
