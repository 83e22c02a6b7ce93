import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exposedName, splitExposedName } from '../../../src/wire/mcp/exposed-name.js';
import { anyCharacter } from '../../support/any-character.js';
import { sha256 } from '../../support/sha256.js';

const key = fc.stringMatching(/^[A-Za-z0-9]{1,8}([-_][A-Za-z0-9]{1,8}){0,1}$/);
const plain = fc.stringMatching(/^[A-Za-z0-9_-]{1,60}$/);
const original = fc.oneof(
  plain,
  fc.string({ minLength: 1, maxLength: 80 }),
  fc.string({ minLength: 1, maxLength: 80, unit: anyCharacter }),
  fc.constantFrom('__proto__', 'constructor', '__', 'a.b', 'a b', 'päckchen', '😀', '\ud800', '\0', 'a'.repeat(500)),
);

function expose(of: string, name: string, prefix = of): string {
  return exposedName(of, prefix, name, sha256);
}

describe('an exposed name', () => {
  it('invariant 10: is one that model APIs take, and leaves space for the prefix of a host', () => {
    fc.assert(
      fc.property(key, original, fc.boolean(), (of, name, isPrefixed) => {
        expect(expose(of, name, isPrefixed ? of : '')).toMatch(/^[A-Za-z0-9_-]{1,48}$/);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is the key, two underscores and the original wherever that is allowed', () => {
    fc.assert(
      fc.property(key, plain, (of, name) => {
        const full = `${of}__${name}`;
        if (full.length <= 48) expect(expose(of, name)).toBe(full);
        else expect(expose(of, name)).toMatch(/_[0-9a-f]{8}$/);
      }),
    );
  });

  it('invariant 10: differs for different tools of one server', () => {
    fc.assert(
      fc.property(key, original, original, (of, one, other) => {
        fc.pre(one !== other);
        expect(expose(of, one)).not.toBe(expose(of, other));
      }),
      { numRuns: 2_000 },
    );
  });

  it('differs for the same tool of different servers', () => {
    fc.assert(
      fc.property(key, key, original, (one, other, name) => {
        fc.pre(one !== other);
        expect(expose(one, name)).not.toBe(expose(other, name));
      }),
    );
  });

  it('F40: differs for tools that only the replaced characters or the end tell apart', () => {
    const long = 'a'.repeat(60);
    const names = ['a.b', 'a b', 'a/b', 'a..b', 'a_b', `${long}1`, `${long}2`, `${long}.1`, long];
    expect(new Set(names.map((name) => expose('k', name))).size).toBe(names.length);
  });

  it.each([
    ['files', 'read', 'files__read'],
    ['files', 'read.all', 'files__read_all_6e11c2c4'],
    ['files', 'päckchen', 'files__p_ckchen_175ff3f1'],
    ['files', '__proto__', 'files____proto__'],
    ['k', 'a'.repeat(45), `k__${'a'.repeat(45)}`],
    ['k', 'a'.repeat(46), 'k__aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_0c0e7bd3'],
  ])('of %s and %s is the same in every run: %s', (of, name, expected) => {
    expect(expose(of, name)).toBe(expected);
  });

  it('is the original alone when the prefix is switched off, but never empty', () => {
    expect(expose('files', 'read', '')).toBe('read');
    expect(expose('files', '', '')).toMatch(/^_[0-9a-f]{8}$/);
    expect(expose('files', 'x'.repeat(49), '')).toHaveLength(48);
  });
});

describe('splitting an exposed name', () => {
  it('returns the parts that were joined, whatever the original', () => {
    fc.assert(
      fc.property(key, fc.string(), (of, name) => {
        expect(splitExposedName(`${of}__${name}`)).toEqual({ prefix: of, original: name });
      }),
    );
  });

  it.each(['read', '__read', '_', '', 'a_b'])('finds no prefix in %j', (name) => {
    expect(splitExposedName(name)).toBeUndefined();
  });
});
