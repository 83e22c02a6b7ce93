import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createToolPolicy } from '../../../src/gateway/catalog/tool-policy.js';
import { anyCharacter } from '../../support/any-character.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';
import { repetitions } from '../../support/repetitions.js';

function matches(glob: string, name: string): boolean {
  return createToolPolicy({ allow: [glob], deny: [] })(name);
}

/** Reference implementation: slow and obvious, character by character. */
function matchesNaively(glob: readonly string[], name: readonly string[]): boolean {
  const [first, ...rest] = glob;
  if (first === undefined) return name.length === 0;
  if (first === '*') return matchesNaively(rest, name) || (name.length > 0 && matchesNaively(glob, name.slice(1)));
  return name.length > 0 && (first === '?' || first === name[0]) && matchesNaively(rest, name.slice(1));
}

const character = fc.constantFrom(
  'a',
  'b',
  '.',
  '_',
  '-',
  '+',
  '^',
  '$',
  '(',
  ')',
  '|',
  '[',
  ']',
  '{',
  '}',
  '\\',
  '\n',
  '/',
);

describe('a glob', () => {
  it('matches what it says, character by character', () => {
    const glob = fc.array(fc.oneof(character, fc.constantFrom('*', '?')), { maxLength: 7 });
    const name = fc.array(character, { maxLength: 8 });
    let matched = 0;
    fc.assert(
      fc.property(glob, name, (pattern, text) => {
        const expected = matchesNaively(pattern, text);
        expect(matches(pattern.join(''), text.join(''))).toBe(expected);
        if (expected) matched += 1;
      }),
      { numRuns: 5_000 },
    );
    // More than one in a hundred of the pairs match.
    expect(matched).toBeGreaterThan(50);
  });

  it('matches every name that is made from it', () => {
    const part = fc.oneof(
      fc.tuple(character, fc.constant('')).map(([text]) => ({ glob: text, text })),
      character.map((text) => ({ glob: '?', text })),
      fc.string({ maxLength: 5, unit: anyCharacter }).map((text) => ({ glob: '*', text })),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        expect(matches(parts.map(({ glob }) => glob).join(''), parts.map(({ text }) => text).join(''))).toBe(true);
      }),
      { numRuns: repetitions({ full: 1_000, short: 250 }) },
    );
  });

  it('takes what looks like one character for one', () => {
    expect(matches('a?b', 'a😀b')).toBe(true);
    expect(matches('a??b', 'a😀b')).toBe(false);
  });

  it('does not take long, whatever a server calls its tools', () => {
    const growth = growthOf((times) => {
      expect(matches('*a*b*c*d', 'abc'.repeat(times))).toBe(false);
    }, 1_000);
    expect(growth).toBeLessThan(LINEAR);
  });
});

describe('a policy', () => {
  it.each([
    [{ deny: [] }, { read: true, write: true, '': true }],
    [
      { allow: [], deny: [] },
      { read: false, '': false },
    ],
    [
      { allow: ['read*', 'list'], deny: [] },
      { read: true, read_all: true, list: true, listing: false, write: false },
    ],
    [{ deny: ['*delete*'] }, { read: true, delete: false, x_delete_y: false, DELETE: true }],
    [
      { allow: ['*'], deny: ['write'] },
      { read: true, write: false, writer: true },
    ],
    [{ allow: ['write'], deny: ['*'] }, { write: false }],
    [
      { allow: ['__proto__', 'constructor'], deny: [] },
      { constructor: true, toString: false },
    ],
  ])('of %j lets through what it allows and does not deny', (rules, expected) => {
    const policy = createToolPolicy(rules);
    for (const [name, isAllowed] of Object.entries(expected)) expect(policy(name), name).toBe(isAllowed);
  });
});
